"""Simulation: what the rules would say about a made-up call. Nothing is recorded or run, no preview either."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate import deciders, oversight, policy, sources, who
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool
from hitlchat.gate.policies.rule import Outcome, Spoke, outcome
from hitlchat.gate.tools import tools_for


class NoSuchTool(LookupError):
    """No tool has this name that such a caller may call."""


@dataclass(frozen=True)
class Simulated:
    verdict: Outcome
    reason: str
    spoke: tuple[Spoke, ...]
    arguments: dict[str, Any]
    # Who would have to answer, in a sentence; empty if nobody is asked.
    who: str = ""


async def simulate(tool_name: str, arguments: str | dict[str, Any], user: User, kind: Any) -> Simulated:
    """Judge a call as if `user` had it made from there, outside of any conversation.

    Raises: NoSuchTool, BadArguments.
    """
    caller = Caller(kind, user.pk, user.get_username())
    tool = await in_db(_find)(caller, tool_name)
    whole = await sources.accepted(tool, arguments)
    judgement = await policy.judge(tool, whole, caller)
    said = outcome(judgement.verdict)
    decides = await in_db(_who)(tool, caller) if said == "ask" else ""
    return Simulated(said, judgement.verdict.reason, judgement.spoke, whole, decides)


def _who(tool: Tool, caller: Caller) -> str:
    rules = oversight.of(tool)
    if rules != oversight.Rules():
        return who.words(rules.as_json, caller.user_name)
    if caller.kind != "mcp":
        return translatable(f"{caller.user_name} decides.")
    if deciders.will_do(tool):
        return translatable(
            f"{caller.user_name} decides: signed in, or through a client at which an administrator says they sit."
        )
    return translatable(
        f"{caller.user_name} decides, signed in: a signed-in person must decide, the client's word is not enough."
    )


def _find(caller: Caller, name: str) -> Tool:
    found = tools_for(caller).filter(name=name).first()
    if found is None:
        raise NoSuchTool(f"There is no published tool named {name[:64]!r} here.")
    return found


def example(tool: Tool) -> dict[str, Any]:
    """Arguments to begin with: the tool's own example, or what it takes at least, empty."""
    if tool.example is not None:
        return dict(tool.example)
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    return {name: _empty(properties.get(name, {})) for name in tool.input_schema.get("required", [])}


def _empty(part: Any) -> Any:
    if not isinstance(part, dict):
        return None
    if "default" in part:
        return part["default"]
    if choices := part.get("enum"):
        return choices[0]
    empty: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    kind = part.get("type")
    return empty.get(kind) if isinstance(kind, str) else None
