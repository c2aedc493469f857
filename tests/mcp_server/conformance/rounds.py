"""Tools and a prompt that ask for more than a yes, of clients of 2026-07-28: hitlchat has no such."""

import json
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types

Asks = dict[str, types.InputRequest]

STRING: Final[dict[str, Any]] = {"type": "string"}


def form(message: str, **properties: Any) -> types.ElicitRequest:
    """A form, all of whose fields are required."""
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str) -> types.CreateMessageRequest:
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[said], max_tokens=100))


@dataclass(frozen=True)
class Rounds:
    """What is asked, round after round; what has been reached stands in the state, where there is one."""

    rounds: tuple[Asks, ...]
    is_stateful: bool = True

    def next(self, given: types.InputResponseRequestParams) -> types.InputRequiredResult | None:
        """None once all is answered."""
        reached = int(given.request_state or 0)
        if set(self.rounds[reached]) <= set(given.input_responses or {}):
            reached += 1
        if reached == len(self.rounds):
            return None
        state = str(reached) if self.is_stateful else None
        return types.InputRequiredResult(input_requests=self.rounds[reached], request_state=state)


NAME: Final[Asks] = {"user_name": form("What is your name?", name=STRING)}
ROOTS: Final[Asks] = {"client_roots": types.ListRootsRequest()}
CAPITAL: Final[Asks] = {"capital_question": sampling("What is the capital of France?")}
GREETING: Final[Asks] = {"greeting": sampling("Generate a greeting")}

TOOLS: Final[dict[str, Rounds]] = {
    "elicitation": Rounds((NAME,), is_stateful=False),
    "sampling": Rounds((CAPITAL,), is_stateful=False),
    "list_roots": Rounds((ROOTS,), is_stateful=False),
    "request_state": Rounds(({"confirm": form("Please confirm", ok={"type": "boolean"})},)),
    "multiple_inputs": Rounds((NAME | GREETING | ROOTS,)),
    "multi_round": Rounds(
        (
            {"step1": form("Step 1: What is your name?", name=STRING)},
            {"step2": form("Step 2: What is your favorite color?", color=STRING)},
        )
    ),
}
PROMPT: Final = Rounds(({"user_context": form("What context should the prompt use?", context=STRING)},), False)


def answers(given: types.InputResponseRequestParams) -> str:
    """As a text."""
    told = {key: answer.model_dump(mode="json") for key, answer in (given.input_responses or {}).items()}
    return f"state-ok {json.dumps(told)}"
