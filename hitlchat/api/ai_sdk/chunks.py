"""Chunks of the UI message stream: what a client does not have yet of a run, from its rows; and messages made of them.

One message of the protocol is all that the assistant says in one run, with the id of the run; each turn is a step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from hitlchat.agent.models import Message, MessageState, Role
from hitlchat.api.approvals import Approval
from hitlchat.base import canonical
from hitlchat.gate import decide, question, results
from hitlchat.gate.history.finding import approval_of, decisions_of, ran_unasked
from hitlchat.gate.models import HitlMode, ToolCall
from hitlchat.gate.status import SETTLED, STARTED, Status

Chunk = dict[str, Any]
Part = dict[str, Any]

YES: Final = frozenset({Status.ALLOWED, Status.APPROVED, *STARTED})
# Of a question whose wording does not matter any more.
BEFORE: Final = "asked before"
# With an approval the protocol calls it denied.
NOT_RUN: Final = frozenset({Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN})


@dataclass(frozen=True)
class Turn:
    """A message of the run, with its calls in the model's order."""

    message: Message
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A question about a call, as this client's person has it before them."""

    shape: Approval
    may_decide: bool


@dataclass
class _SentCall:
    """One call as the client has it: its arguments, the question, its answer, its status."""

    arguments: str = ""
    question: str = ""
    answer: tuple[bool, str] | None = None
    state: str = ""
    is_over: bool = False


@dataclass
class Telling:
    """A run as far as a client has it, so that it is told the rest. The first `steps` it has from before, whole."""

    run_id: UUID
    steps: int = 0
    # Where the last step is in the conversation: there may be more to tell from there on.
    since: int = 0
    _place: int = 0
    _step: UUID | None = None
    _is_in_step: bool = False
    _sent: dict[UUID, int] = field(default_factory=dict)
    _open: UUID | None = None
    _thoughts: set[UUID] = field(default_factory=set)
    _notices: set[UUID] = field(default_factory=set)
    _calls: dict[UUID, _SentCall] = field(default_factory=dict)
    _of_agents: dict[str, Chunk] = field(default_factory=dict)

    def knows(self, call_id: UUID, state: str) -> None:
        """Note that the client has this call, in a state that the protocol has for parts."""
        sent = self._calls.setdefault(call_id, _SentCall())
        sent.question = BEFORE if state.startswith("approval-") else ""
        sent.is_over = state.startswith("output-")

    def update(
        self, turns: Iterable[Turn], asked: dict[UUID, Asked], of_agents: Iterable[Asked] = (), thoughts: str = ""
    ) -> Iterator[Chunk]:
        """Tell what is new in these turns, of which the first is that of the last step, if it is still there.

        `of_agents`: the questions about calls of agents that work in these turns; they are data, since the protocol has
        approvals of a message's own calls alone. `thoughts`: those of the answer that is being written, where more of
        them are known than stored.
        """
        found = list(turns)
        if self._step is not None and all(turn.message.pk != self._step for turn in found):
            # Its process died, and it is asked for again.
            yield {"type": "reset-step"}
            self._step, self._open = None, None
        for turn in found:
            if turn.message.role == Role.ASSISTANT:
                yield from self._turn(turn, asked, thoughts)
            elif turn.message.pk not in self._notices:
                self._notices.add(turn.message.pk)
                kind = "summary" if turn.message.role == Role.SUMMARY else "notice"
                data = {"kind": kind, "text": turn.message.content}
                yield {"type": "data-notice", "id": str(turn.message.pk), "data": data}
        for each in of_agents:
            name, described = str(each.shape.id), _described(each)
            if self._of_agents.get(name) != described:
                self._of_agents[name] = described
                yield {"type": "data-approval", "id": name, "data": described}

    def delta(self, message_id: UUID, base: int, text: str) -> Iterator[Chunk] | None:
        """Tell more of the answer that is being written, whose characters from `base` on are `text`.

        None: something before it is missing, or it is not known to be written.
        """
        sent = self._sent.get(message_id, 0)
        if message_id != self._step or (self._open is None and sent) or base > sent:
            return None
        return self._grown(message_id, text[sent - base :])

    def end(self) -> Iterator[Chunk]:
        """Close what is open."""
        yield from self._closed_text()
        if self._is_in_step:
            self._is_in_step = False
            yield {"type": "finish-step"}

    def _turn(self, turn: Turn, asked: dict[UUID, Asked], thoughts: str) -> Iterator[Chunk]:
        message = turn.message
        is_written = message.state == MessageState.STREAMING
        if message.pk != self._step:
            yield from self._begun(message)
        known = message.reasoning or (thoughts if is_written else "")
        # Those of an answer that has begun are whole.
        if known and message.pk not in self._thoughts and (message.content or not is_written):
            self._thoughts.add(message.pk)
            name = f"{message.pk}-thoughts"
            yield {"type": "reasoning-start", "id": name}
            yield {"type": "reasoning-delta", "id": name, "delta": known}
            yield {"type": "reasoning-end", "id": name}
        if message.pk not in self._sent or self._open == message.pk:
            yield from self._grown(message.pk, message.content[self._sent.get(message.pk, 0) :])
            if not is_written:
                yield from self._closed_text()
        for call in turn.calls:
            yield from self._call(call, asked.get(call.pk))

    def _begun(self, message: Message) -> Iterator[Chunk]:
        self._place += 1
        is_known = self._place <= self.steps
        if not is_known and not (self._is_in_step and self._step is None):
            yield from self.end()
            yield {"type": "start-step"}
        self._step, self.since, self._is_in_step = message.pk, message.seq, True
        if is_known:
            self._sent[message.pk] = len(message.content)
            self._thoughts.add(message.pk)

    def _grown(self, message_id: UUID, text: str) -> Iterator[Chunk]:
        if not text:
            return
        if self._open is None:
            self._open = message_id
            yield {"type": "text-start", "id": str(message_id)}
        self._sent[message_id] = self._sent.get(message_id, 0) + len(text)
        yield {"type": "text-delta", "id": str(message_id), "delta": text}

    def _closed_text(self) -> Iterator[Chunk]:
        if self._open is not None:
            yield {"type": "text-end", "id": str(self._open)}
            self._open = None

    def _call(self, call: ToolCall, asked: Asked | None) -> Iterator[Chunk]:
        is_new = call.pk not in self._calls
        sent = self._calls.setdefault(call.pk, _SentCall())
        if sent.is_over:
            return
        arguments = canonical.dumps(_arguments(call))
        if is_new or sent.arguments not in ("", arguments):
            yield _input(call)
        sent.arguments = arguments
        if call.status == Status.REJECTED:
            sent.is_over = True
        if asked is not None or _is_automatic(call):
            yield from self._question(call, sent, asked)
        if call.status != sent.state:
            # In our own words: the protocol has fewer.
            sent.state = call.status
            data = {"toolCallId": str(call.pk), "status": call.status, "isAutomatic": ran_unasked(call)}
            yield {"type": "data-call", "id": str(call.pk), "data": data}
        if call.status in SETTLED and not sent.is_over:
            sent.is_over = True
            yield _output(call)

    def _question(self, call: ToolCall, sent: _SentCall, asked: Asked | None) -> Iterator[Chunk]:
        """Tell that people are asked, again where something about the question has changed, and their answer."""
        name = f"{self.run_id}::{call.pk}"
        # What was answered already is asked once, so that the answer has its place.
        shown = sent.question or BEFORE
        if call.status == Status.WAITING and asked is not None:
            shown = f"{asked.shape.consent_digest} {asked.may_decide} {asked.shape.approved_by}"
        if shown != sent.question:
            sent.question, sent.answer = shown, None
            yield {"type": "tool-approval-request", "approvalId": name, "toolCallId": str(call.pk)} | _facts(asked)
        answer = _answer(call)
        if answer is not None and answer != sent.answer:
            sent.answer = answer
            reason = {"reason": answer[1]} if answer[1] else {}
            yield {"type": "tool-approval-response", "approvalId": name, "approved": answer[0]} | reason


class Parts:
    """The parts of one message, put together of chunks in the way in which the AI SDK does it."""

    def __init__(self) -> None:
        self.found: list[Part] = []
        self._by_id: dict[str, Part] = {}

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> list[Part]:
        parts = cls()
        for chunk in chunks:
            _READERS[chunk["type"]](parts, chunk)
        return parts.found

    def begin(self, chunk: Chunk) -> None:
        kind = chunk["type"].removesuffix("-start")
        own = {"id": chunk["id"]} if kind == "reasoning" else {}
        self._add(chunk["id"], {"type": kind, **own, "text": "", "state": "streaming"})

    def grow(self, chunk: Chunk) -> None:
        self._by_id[chunk["id"]]["text"] += chunk["delta"]

    def close(self, chunk: Chunk) -> None:
        self._by_id[chunk["id"]]["state"] = "done"

    def step(self, _chunk: Chunk) -> None:
        self.found.append({"type": "step-start"})

    def data(self, chunk: Chunk) -> None:
        name = f"{chunk['type']} {chunk['id']}"
        part = self._by_id.get(name) or self._add(name, {"type": chunk["type"], "id": chunk["id"]})
        part["data"] = chunk["data"]

    def call(self, chunk: Chunk) -> None:
        name, call = chunk["toolName"], chunk["toolCallId"]
        kind: Part = {"type": "dynamic-tool", "toolName": name} if chunk.get("dynamic") else {"type": f"tool-{name}"}
        part = self._by_id.get(call) or self._add(call, {**kind, "toolCallId": call})
        part |= {"state": "input-available", "input": chunk["input"]}
        if chunk["type"] == "tool-input-error":
            part |= {"state": "output-error", "errorText": chunk["errorText"]}

    def request(self, chunk: Chunk) -> None:
        names = {"approvalId": "id", "approvalDescriptor": "descriptor", "reason": "requestReason"}
        approval = {names.get(name, name): chunk[name] for name in chunk if name not in ("type", "toolCallId")}
        part = self._by_id[chunk["approvalId"]] = self._by_id[chunk["toolCallId"]]
        part |= {"state": "approval-requested", "approval": approval}

    def response(self, chunk: Chunk) -> None:
        part = self._by_id[chunk["approvalId"]]
        part["state"] = "approval-responded"
        part["approval"] |= {name: chunk[name] for name in ("approved", "reason") if name in chunk}

    def output(self, chunk: Chunk) -> None:
        output: Part = {name: chunk[name] for name in ("output", "errorText") if name in chunk}
        self._by_id[chunk["toolCallId"]] |= {"state": chunk["type"].removeprefix("tool-"), **output}

    def _add(self, name: str, part: Part) -> Part:
        self.found.append(part)
        self._by_id[name] = part
        return part


def _input(call: ToolCall) -> Chunk:
    named = {"toolCallId": str(call.pk), "toolName": call.tool_name, "input": _arguments(call)}
    if call.status == Status.REJECTED:
        return {"type": "tool-input-error", **named, "errorText": call.reason, "dynamic": True}
    # What the client answers itself, it knows beforehand.
    return {"type": "tool-input-available", **named} | ({} if question.is_one(call) else {"dynamic": True})


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return what was called with. The answer to a question is kept there too, and is what the client gave."""
    is_question = question.is_one(call)
    return {name: value for name, value in call.arguments.items() if not (is_question and name == question.ANSWER)}


def _facts(asked: Asked | None) -> Chunk:
    if asked is None:
        return {"isAutomatic": True}
    shape, described = asked.shape, _described(asked, "arguments")
    # The digest comes back with the answer, which so says to what it is one.
    return {"reason": shape.reason, "signature": shape.consent_digest, "approvalDescriptor": described}


def _described(asked: Asked, *hidden: str) -> Chunk:
    shown = asked.shape.model_dump(mode="json", by_alias=True, exclude={"result", "error", "decisions", *hidden})
    return shown | {"mayDecide": asked.may_decide}


def _is_automatic(call: ToolCall) -> bool:
    """Return whether rules, or a grant, answered in a person's place. A tool that never asks is asked about by none."""
    if approval_of(call) is not None:
        return False
    may_ask = call.grant_id is not None or call.tool is None or call.tool.hitl_mode != HitlMode.DISABLED
    return call.status == Status.REFUSED or (ran_unasked(call) and may_ask)


def _answer(call: ToolCall) -> tuple[bool, str] | None:
    status = Status(call.status)
    if status == Status.WAITING:
        return None
    is_yes = status in YES
    if approval_of(call) is None:
        return is_yes, call.reason
    return is_yes, decide.given(decisions_of(call)) if is_yes or status == Status.DECLINED else _why_not(call)


def _why_not(call: ToolCall) -> str:
    said = results.MESSAGES[Status(call.status)]
    return f"{said} {call.reason}" if call.status == Status.WITHDRAWN and call.reason else said


def _output(call: ToolCall) -> Chunk:
    named, status = {"toolCallId": str(call.pk)}, Status(call.status)
    if status == Status.SUCCEEDED:
        output = call.arguments.get(question.ANSWER) if question.is_one(call) else call.result
        return {"type": "tool-output-available", **named, "output": output}
    if status == Status.REFUSED or (status in NOT_RUN and approval_of(call) and not question.is_one(call)):
        return {"type": "tool-output-denied", **named}
    if status == Status.FAILED and call.error:
        return {"type": "tool-output-error", **named, "errorText": results.sentence(call.error)}
    return {"type": "tool-output-error", **named, "errorText": _why_not(call)}


_READERS: Final[Mapping[str, Callable[[Parts, Chunk], None]]] = {
    **dict.fromkeys(("text-start", "reasoning-start"), Parts.begin),
    **dict.fromkeys(("text-delta", "reasoning-delta"), Parts.grow),
    **dict.fromkeys(("text-end", "reasoning-end"), Parts.close),
    "start-step": Parts.step,
    "finish-step": lambda _parts, _chunk: None,
    **dict.fromkeys(("data-notice", "data-call", "data-approval"), Parts.data),
    **dict.fromkeys(("tool-input-available", "tool-input-error"), Parts.call),
    "tool-approval-request": Parts.request,
    "tool-approval-response": Parts.response,
    **dict.fromkeys(("tool-output-available", "tool-output-error", "tool-output-denied"), Parts.output),
}
