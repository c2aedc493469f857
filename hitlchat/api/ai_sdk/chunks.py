"""Messages of the AI SDK, made of the rows of a run; and chunks of its stream: what a client does not have yet of one.

One message of the protocol is all that the assistant says in one run, with the id of the run; each turn is a step.
"""

from collections.abc import Iterable, Iterator
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
# With an approval the protocol calls it denied.
NOT_RUN: Final = frozenset({Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN})
# What of an approval in a part is the answer; and what the others are called in a chunk.
ANSWER: Final = ("approved", "reason")
PROTOCOL: Final = {"id": "approvalId", "requestReason": "reason", "descriptor": "approvalDescriptor"}


@dataclass(frozen=True)
class Turn:
    """A message of the run, with its calls in the model's order."""

    message: Message
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Asked:
    """The approval of a call, as the client's person sees it."""

    shape: Approval
    may_decide: bool


@dataclass
class ClientCopy:
    """The part of a run that a client already has. Its first `steps` were complete before this stream."""

    run_id: UUID
    steps: int = 0
    # Where the last step is in the conversation: there may be more to send from there on.
    since: int = 0
    _step: str = ""
    _is_in_step: bool = False
    _open: str = ""
    _begun: set[str] = field(default_factory=set)
    # How much of each text was sent.
    _lengths: dict[str, int] = field(default_factory=dict)
    _parts: dict[str, Part] = field(default_factory=dict)

    def knows(self, call_id: UUID, state: str) -> None:
        """Record that the client has this call, in this state of the protocol."""
        self._parts[str(call_id)] = {"state": state} | ({"approval": {}} if state.startswith("approval-") else {})

    def update(
        self, turns: list[Turn], questions: dict[UUID, Asked], of_agents: Iterable[Asked] = (), thoughts: str = ""
    ) -> Iterator[Chunk]:
        """Yield the chunks for what is new in these turns, which begin with that of the client's last step."""
        messages = {str(turn.message.pk): turn.message for turn in turns if turn.message.role == Role.ASSISTANT}
        if self._step and self._step not in messages:
            # Its process died, and it is asked for again.
            yield {"type": "reset-step"}
            self._step = self._open = ""
        made = parts(self.run_id, turns, questions, of_agents, thoughts)
        for name, message in messages.items():
            self.since = message.seq
            if self.steps and name not in self._begun:
                self.steps -= 1
                self._begun.add(name)
                self._step, self._is_in_step, self._lengths[name] = name, True, len(message.content)
                self._parts[f"{name}-thoughts"] = made.get(f"{name}-thoughts", {})
        yield from self._diff(made)

    def delta(self, message_id: UUID, base: int, text: str) -> Iterator[Chunk] | None:
        """Yield the rest of the answer that is being written; `text` begins at its character `base`.

        None if the client lacks something before that.
        """
        name = str(message_id)
        sent = self._lengths.get(name, 0)
        if name != self._step or (not self._open and sent) or base > sent:
            return None
        return self._grow(name, text[sent - base :])

    def end(self) -> Iterator[Chunk]:
        """Yield the ends of the open text and step."""
        yield from self._close_text()
        if self._is_in_step:
            self._is_in_step = False
            yield {"type": "finish-step"}

    def _diff(self, made: dict[str, Part]) -> Iterator[Chunk]:
        is_over = {name for name, part in self._parts.items() if part.get("state", "").startswith("output-")}
        for name, part in made.items():
            if part["type"] == "text":
                yield from self._text(name, part)
            elif part["type"] == "step-start":
                yield from self._begin(name)
            elif name.removesuffix("-status") not in is_over:
                before, self._parts[name] = self._parts.get(name), part
                if "toolCallId" in part:
                    is_rejected = made[f"{name}-status"]["data"]["status"] == Status.REJECTED
                    yield from _call_chunks(before, part, is_rejected=is_rejected)
                elif "data" in part and part != before:
                    yield part
                elif part["type"] == "reasoning" and before is None:
                    # Sent whole, and once.
                    yield {"type": "reasoning-start", "id": name}
                    yield {"type": "reasoning-delta", "id": name, "delta": part["text"]}
                    yield {"type": "reasoning-end", "id": name}

    def _begin(self, name: str) -> Iterator[Chunk]:
        step = name.removesuffix("-step")
        if step in self._begun:
            return
        if self._step or not self._is_in_step:
            yield from self.end()
            yield {"type": "start-step"}
        self._begun.add(step)
        self._step, self._is_in_step = step, True

    def _text(self, name: str, part: Part) -> Iterator[Chunk]:
        if name not in self._lengths or self._open == name:
            yield from self._grow(name, part["text"][self._lengths.get(name, 0) :])
            if part["state"] == "done":
                yield from self._close_text()

    def _grow(self, name: str, text: str) -> Iterator[Chunk]:
        if not text:
            return
        if not self._open:
            self._open = name
            yield {"type": "text-start", "id": name}
        self._lengths[name] = self._lengths.get(name, 0) + len(text)
        yield {"type": "text-delta", "id": name, "delta": text}

    def _close_text(self) -> Iterator[Chunk]:
        if self._open:
            yield {"type": "text-end", "id": self._open}
            self._open = ""


def parts(
    run_id: UUID,
    turns: Iterable[Turn],
    questions: dict[UUID, Asked],
    of_agents: Iterable[Asked] = (),
    thoughts: str = "",
) -> dict[str, Part]:
    """Return the parts of an assistant's message, each under a stable name.

    `of_agents`: approvals of calls by agents that work in these turns. They are sent as data, since the protocol only
    has approvals of the message's own calls. `thoughts`: the reasoning of the answer that is being written.
    """
    made: dict[str, Part] = {}
    for turn in turns:
        message, name = turn.message, str(turn.message.pk)
        if message.role != Role.ASSISTANT:
            kind = "summary" if message.role == Role.SUMMARY else "notice"
            made[name] = {"type": "data-notice", "id": name, "data": {"kind": kind, "text": message.content}}
            continue
        made[f"{name}-step"] = {"type": "step-start"}
        is_written = message.state == MessageState.STREAMING
        reasoning = message.reasoning or (thoughts if is_written else "")
        # Those of an answer that has begun are whole.
        if reasoning and (message.content or not is_written):
            key = f"{name}-thoughts"
            made[key] = {"type": "reasoning", "id": key, "text": reasoning, "state": "done"}
        if message.content:
            made[name] = {"type": "text", "text": message.content, "state": "streaming" if is_written else "done"}
        for call in turn.calls:
            call_id = str(call.pk)
            made[call_id] = _call_part(run_id, call, questions.get(call.pk))
            # In our own words: the protocol has fewer.
            data = {"toolCallId": call_id, "status": call.status, "isAutomatic": ran_unasked(call)}
            made[f"{call_id}-status"] = {"type": "data-call", "id": call_id, "data": data}
    for each in of_agents:
        key = str(each.shape.id)
        made[f"{key}-approval"] = {"type": "data-approval", "id": key, "data": _described(each)}
    return made


def _call_part(run_id: UUID, call: ToolCall, about: Asked | None) -> Part:
    # What the client answers itself, it knows beforehand.
    is_static = question.is_one(call) and call.status != Status.REJECTED
    part: Part = {"type": f"tool-{call.tool_name}"}
    if not is_static:
        part = {"type": "dynamic-tool", "toolName": call.tool_name}
    part |= {"toolCallId": str(call.pk), "state": "input-available", "input": _arguments(call)}
    if about is not None or _is_automatic(call):
        part["state"], part["approval"] = "approval-requested", {"id": f"{run_id}::{call.pk}"} | _facts(about)
        if (answer := _answer(call)) is not None:
            part["state"] = "approval-responded"
            part["approval"] |= {"approved": answer[0]} | ({"reason": answer[1]} if answer[1] else {})
    return part | (_output(call) if call.status in SETTLED else {})


def _call_chunks(before: Part | None, part: Part, *, is_rejected: bool) -> Iterator[Chunk]:
    """Yield the chunks that bring the client's copy of a call up to date."""
    call, old = {"toolCallId": part["toolCallId"]}, before or {}
    outcome: Chunk = {name: part[name] for name in ("output", "errorText") if name in part}
    # Of a call that the client sent along the arguments are not known, and are its own.
    if before is None or canonical.dumps(old.get("input", part["input"])) != canonical.dumps(part["input"]):
        is_dynamic = part["type"] == "dynamic-tool"
        name = part["toolName"] if is_dynamic else part["type"].removeprefix("tool-")
        named = call | {"toolName": name, "input": part["input"]} | ({"dynamic": True} if is_dynamic else {})
        yield {"type": "tool-input-available", **named} | (
            {"type": "tool-input-error", **outcome} if is_rejected else {}
        )
    approval: Part | None = part.get("approval")
    if approval is not None:
        was: Part | None = old.get("approval")
        # Again where it waits again, or something about the question has changed. What was answered already is asked
        # once, so that the answer has its place.
        is_open = part["state"] == "approval-requested"
        is_asked = was is None or (is_open and (old["state"] != part["state"] or _question(approval) != _question(was)))
        if is_asked:
            facts = {PROTOCOL.get(name, name): value for name, value in approval.items() if name not in ANSWER}
            yield {"type": "tool-approval-request", **call, **facts}
        answer: Chunk = {name: approval[name] for name in ANSWER if name in approval}
        if answer and (is_asked or answer != {name: was[name] for name in ANSWER if was and name in was}):
            yield {"type": "tool-approval-response", "approvalId": approval["id"], **answer}
    if part["state"].startswith("output-") and not is_rejected:
        yield {"type": f"tool-{part['state']}", **call, **outcome}


def _question(approval: Part) -> list[Any]:
    described = approval.get("descriptor", {})
    return [approval.get("signature"), described.get("mayDecide"), described.get("approvedBy")]


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments without the answer to a question, which the client gave itself."""
    is_question = question.is_one(call)
    return {name: value for name, value in call.arguments.items() if not (is_question and name == question.ANSWER)}


def _facts(about: Asked | None) -> Chunk:
    if about is None:
        return {"isAutomatic": True}
    shape, described = about.shape, _described(about, "arguments")
    # The digest comes back with the answer, which so says to what it is one.
    return {"requestReason": shape.reason, "signature": shape.consent_digest, "descriptor": described}


def _described(about: Asked, *hidden: str) -> Chunk:
    shown = about.shape.model_dump(mode="json", by_alias=True, exclude={"result", "error", "decisions", *hidden})
    return shown | {"mayDecide": about.may_decide}


def _is_automatic(call: ToolCall) -> bool:
    """Return whether a rule or a grant decided in a person's place; of a tool that never asks, nobody decides."""
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
    if call.status == Status.ANSWERED:
        return results.for_model(call)
    sentence = results.MESSAGES[Status(call.status)]
    return f"{sentence} {call.reason}" if call.status == Status.WITHDRAWN and call.reason else sentence


def _output(call: ToolCall) -> Part:
    status = Status(call.status)
    if status == Status.SUCCEEDED:
        output = call.arguments.get(question.ANSWER) if question.is_one(call) else call.result
        return {"state": "output-available", "output": output}
    if status == Status.REJECTED:
        return {"state": "output-error", "errorText": call.reason}
    if status == Status.REFUSED or (status in NOT_RUN and approval_of(call) and not question.is_one(call)):
        return {"state": "output-denied"}
    text = results.sentence(call.error) if status == Status.FAILED and call.error else _why_not(call)
    return {"state": "output-error", "errorText": text}
