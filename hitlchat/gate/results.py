"""Results for the model: the truth about a call, each outcome told apart (a contract).

In our or an operator's words.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate import loosening, queue, stated
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import ModelText, Outcome, Tool, ToolCall
from hitlchat.gate.models.tools import LONGEST_TEXT
from hitlchat.gate.prompt import short
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

# By outcome, as they are to be used; an empty one has none.
Texts = Mapping[str, str]

LONGEST_VALUE = 500
# So that what stands beside it is read as well, however often a template names a long value.
LONGEST_FILLED = 4000
_TOOL, _ARGUMENTS, _FEEDBACK, _REASON = "toolName", "args", "feedback", "reason"
# As others spell them.
SPELLINGS = {"tool_name": _TOOL, "final_tool_params": _ARGUMENTS}
KNOWN: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(Outcome, (_TOOL, _ARGUMENTS)),
    Outcome.FEEDBACK: (_TOOL, _ARGUMENTS, _FEEDBACK),
    Outcome.REFUSED: (_TOOL, _ARGUMENTS, _REASON),
}
OTHER_WORDS: Final = gettext_noop("Models read different texts about calls that ended without a result.")
_BRACES = re.compile(r"\{([^{}]*)\}")
# These outcomes have the names of statuses.
_STATUSES: Mapping[str, Status] = {
    **{outcome: Status(outcome) for outcome in (Outcome.DECLINED, Outcome.EXPIRED, Outcome.REFUSED)},
    Outcome.FEEDBACK: Status.DECLINED,
    Outcome.EDITED: Status.SUCCEEDED,
}

# Provably not entered, or not sent.
_KINDS_BEFORE_A_RUN = frozenset(
    {"arguments", "busy", "changed", "gone", "late", "syntax", "unavailable", "unreachable", "unsent"}
)
# By what came back.
RAN = frozenset({"error", "result", "timeout", "tool"})
_NOT_RUN = "It was not run"

NEVER_RAN = "The call failed before it was run. It was not executed."
NOBODY_ASKED = "Nobody was asked about this call, because too many other calls are waiting. It was not executed."
NOBODY_ASKED_STATUS = "nobody_asked"
STILL_RUNNING = "It was still executing when the run ended; its outcome is not known yet. Do not repeat it."

MESSAGES = {
    Status.DECLINED: "The user declined this call. It was not executed. Do not call it again for this request.",
    Status.ANSWERED: "The tool was not executed. A person answered in its place, with answer_given_by_a_person.",
    Status.EXPIRED: "Nobody answered the approval in time. It was not executed.",
    Status.WITHDRAWN: "The call was withdrawn before it started. It was not executed.",
    Status.REFUSED: "A policy refused this call. It was not executed.",
    Status.REJECTED: "The call was rejected. It was not executed and nobody was asked.",
    Status.FAILED: "The call failed.",
    Status.UNKNOWN: "The outcome is unknown: it may or may not have happened. Do not repeat it.",
    Status.EXECUTING: STILL_RUNNING,
}
SUGGESTED = (
    "The user declined this call and says what to do instead. It was not executed. Do what they say; if that "
    "takes this tool, call it again."
)
EDITED = "The user changed the arguments before approving."
TOLD = "The user approved this call, and said something to you with it."
NOT_EXECUTED = (*(Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN, Status.REFUSED, Status.REJECTED),)
# What people say with a yes, to be done instead of a call, and in place of a result.
SAID: Final = "said_by_the_user"
INSTEAD: Final = "instruction_given_by_the_user"
ANSWER: Final = "answer_given_by_a_person"
_FEEDBACK_OF: Final = {
    Status.DECLINED: "reason_given_by_the_user",
    **dict.fromkeys((Status.EXECUTING, Status.FAILED, Status.UNKNOWN), SAID),
}
# Without templates: all words are ours.
OURS: Texts = {}

# What holds without a template.
DEFAULTS: Mapping[str, str] = {
    **{outcome: MESSAGES[status] for outcome, status in _STATUSES.items() if outcome == status},
    Outcome.FEEDBACK: "",
    Outcome.EDITED: EDITED,
}


class BadTexts(Invalid):
    """Nothing was saved: `errors` has what was expected, by outcome."""

    def __str__(self) -> str:
        return " ".join(f"{name}: {said}" for name, said in self.errors.items())


@dataclass(frozen=True)
class Bound:
    """The limit of a text in characters, and the setting that says so, if there is one."""

    characters: int
    setting: str = ""

    def cut(self, text: str) -> str:
        hidden = len(text) - self.characters
        by = f" by {self.setting}" if self.setting else ""
        if hidden <= 0:
            return text
        return f"{text[: self.characters]}\n[cut here{by}: {hidden:,} more characters are kept in the record]"


# What a model in the chat reads of a result.
IN_CHAT = Bound(16_000)


@dataclass(frozen=True)
class TextField:
    """`text` is the template itself, `instead` what holds while it is empty; `problem` says what is wrong with it."""

    outcome: str
    label: str
    text: str
    instead: str
    placeholders: tuple[str, ...]
    example: str
    problem: str = ""


@dataclass(frozen=True)
class MadeUp:
    """A call for an example: no row, and never one."""

    tool_name: str
    arguments: dict[str, Any]
    status: str
    reason: str = "Refunds are not made on Sundays."
    result: str = "done"
    error: None = None


Subject = ToolCall | MadeUp


def own_words(tool: Tool | None) -> dict[str, str]:
    """Return the templates of this tool alone, or those for all tools; only the outcomes that have one."""
    return dict(ModelText.objects.filter(tool=tool).values_list("outcome", "text"))


def in_force(tool_id: object) -> dict[str, str]:
    """Return the templates that hold for a tool: its own before those for all."""
    rows = ModelText.objects.filter(Q(tool=None) | Q(tool_id=tool_id)).values_list("tool", "outcome", "text")
    return {outcome: text for _, outcome, text in sorted(rows, key=lambda row: row[0] is not None)}


def of(call: ToolCall, *, edited: bool) -> dict[str, str]:
    """Return the templates for `call`. The database is read only where there could be one."""
    return in_force(call.tool_id) if matter(call, edited=edited) else {}


def matter(call: Subject, *, edited: bool) -> bool:
    """Return whether a template could apply to the outcome of the call."""
    return call.status in Outcome.values or (edited and call.status == Status.SUCCEEDED)


def message(call: Subject, texts: Texts, *, feedback: str = "") -> str:
    """Return the operator's words for a call that came to nothing; empty without a template."""
    words = [fill(texts.get(call.status, ""), call)]
    if call.status == Status.DECLINED and feedback:
        words.append(fill(texts.get(Outcome.FEEDBACK, ""), call, feedback=feedback))
    return " ".join(filter(None, words))


def fill(template: str, call: Subject, *, feedback: str = "") -> str:
    """`template` with its placeholders filled in, in one go: what is in a value is never filled in itself."""
    values = {
        _TOOL: call.tool_name,
        _ARGUMENTS: canonical.pretty(call.arguments),
        _FEEDBACK: feedback,
        _REASON: call.reason,
    }

    def one(match: re.Match[str]) -> str:
        name = SPELLINGS.get(match[1], match[1])
        return short(values[name], LONGEST_VALUE) if name in values else match[0]

    return short(_BRACES.sub(one, template), LONGEST_FILLED)


def save(
    tool: Tool | None, wanted: Mapping[str, str | None], actor: Actor, *, confirmed: bool = False
) -> dict[str, str]:
    """Set templates, of the tool or for all; None or an empty one takes it away. Return those that hold now.

    `confirmed`: a person said that models may read other words. BadTexts, NotConfirmed.
    """
    clean = {outcome: tidy(text or "") for outcome, text in wanted.items()}
    if problems := {outcome: why for outcome, text in clean.items() if (why := problem(outcome, text))}:
        raise BadTexts(problems)
    with transaction.atomic():
        before = own_words(tool)
        for outcome, text in clean.items():
            if text:
                ModelText.objects.update_or_create(tool=tool, outcome=outcome, defaults={"text": text})
            else:
                ModelText.objects.filter(tool=tool, outcome=outcome).delete()
        if (after := own_words(tool)) != before:
            loosening.require(tool.name if tool else "", (OTHER_WORDS,), confirmed=confirmed)
            data: dict[str, Any] = {"tool": tool.name if tool else None, "before": before, "after": after}
            data |= {"weaker": [OTHER_WORDS], **stated.states("texts", tool.pk if tool else "")}
            note(None, "texts.changed", actor=actor, data=data)
    return after


def tidy(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def problem(outcome: str, text: str) -> str:
    """Return what is wrong with a template, and what is expected; empty if nothing is."""
    names = KNOWN.get(outcome)
    if names is None:
        return translatable(f"There is no such outcome; expected one of {', '.join(KNOWN)}.")
    if len(text) > LONGEST_TEXT:
        return translatable(f"The text has {len(text):,} characters; at most {LONGEST_TEXT:,} are allowed.")
    if storable(text) != text:
        return "The text has a character that cannot be stored, such as U+0000."
    for name in _BRACES.findall(text):
        if SPELLINGS.get(name, name) not in names:
            return translatable(f"{{{name[:40]}}} is unknown here; known are {', '.join(placeholders(outcome))}.")
    return ""


def placeholders(outcome: str) -> list[str]:
    return [f"{{{name}}}" for name in KNOWN[outcome]]


def ran(error: dict[str, Any]) -> bool | None:
    """Return whether the tool was run before the error; None if its kind does not tell."""
    kind = error.get("kind")
    return None if kind not in _KINDS_BEFORE_A_RUN | RAN else kind in RAN


def sentence(error: dict[str, Any]) -> str:
    line = f" (line {error['line']})" if error.get("line") else ""
    lead = {True: "It was run and failed", False: _NOT_RUN, None: "It failed"}[ran(error)]
    return f"{lead}{line}: {str(error.get('message', '')).removeprefix(f'{_NOT_RUN}: ')}"


def for_model(
    call: Subject,
    *,
    feedback: str = "",
    edited: bool = False,
    suggested: bool = False,
    templates: Texts = OURS,
    bound: Bound = IN_CHAT,
) -> str:
    """Return the text of the tool message: the result itself, or a JSON object with `status` and `message`.

    Where the message is an operator's template, the facts that it must not change stand beside it, as `executed` and
    `fact`. `feedback`: the person's words with a no or a yes; `suggested`: what they want instead.
    What is beyond `bound` is cut off, and the text says so.
    """
    status = Status(call.status)
    if status == Status.SUCCEEDED:
        return bound.cut(_success(call, edited, feedback, templates))
    facts: dict[str, object] = {"status": status.value, "message": MESSAGES.get(status, "It was not executed.")}
    if status in NOT_EXECUTED:
        facts["executed"] = False
    facts |= _said(call, feedback, suggested=suggested)
    if status in (Status.REFUSED, Status.REJECTED, Status.WITHDRAWN):
        facts["reason"] = call.reason
    if call.reason in queue.REASONS:
        # No policy did.
        facts |= {"status": NOBODY_ASKED_STATUS, "message": NOBODY_ASKED}
    elif words := message(call, templates, feedback=feedback):
        # Last, as the longest: what is cut off is never a fact.
        facts |= {"fact": facts.pop("message"), "message": words}
    if status == Status.FAILED and call.error:
        has_run = ran(call.error)
        facts |= {"message": NEVER_RAN} if has_run is False else {}
        facts |= {"executed": has_run, "error": call.error.get("message"), "line": call.error.get("line")}
    return bound.cut(canonical.pretty({name: fact for name, fact in facts.items() if fact is not None}))


def fields(tool: Tool | None, typed: Texts | None = None) -> list[TextField]:
    """Return the fields of the tool, or of all tools; as stored, or as `typed` and not saved yet."""
    own = dict(own_words(tool) if typed is None else typed)
    above = own_words(None) if tool else {}
    problems = {outcome: problem(outcome, text) for outcome, text in own.items()}
    sound = {outcome: text for outcome, text in own.items() if text and not problems[outcome]}
    return [
        TextField(
            outcome=outcome.value,
            label=outcome.label,
            text=own.get(outcome, ""),
            instead=above.get(outcome) or DEFAULTS[outcome],
            placeholders=tuple(placeholders(outcome)),
            example=example(outcome, tool, above | sound),
            problem=problems.get(outcome, ""),
        )
        for outcome in Outcome
    ]


def example(outcome: Outcome, tool: Tool | None, templates: Texts) -> str:
    """Return what a model would read about a made-up call of the tool."""
    call = MadeUp(
        tool_name=tool.name if tool else "refund_order",
        arguments=(tool.example if tool else None) or {"order": "4711", "amount": 12.5},
        status=_STATUSES[outcome],
    )
    feedback = "Wrong arguments" if outcome == Outcome.FEEDBACK else ""
    return for_model(call, feedback=feedback, edited=outcome == Outcome.EDITED, templates=templates)


def _said(call: Subject, feedback: str, *, suggested: bool) -> dict[str, object]:
    """Return a person's words about what did not succeed."""
    if call.status == Status.ANSWERED:
        return {ANSWER: call.result}
    if suggested:
        return {"message": SUGGESTED, INSTEAD: feedback}
    name = _FEEDBACK_OF.get(Status(call.status))
    return {name: feedback} if name and feedback else {}


def _success(call: Subject, edited: bool, feedback: str, templates: Texts) -> str:
    if edited or feedback:
        words = fill(templates.get(Outcome.EDITED, ""), call) if edited else ""
        facts = {"status": "succeeded", **({"fact": EDITED} if words else {})}
        facts["message"] = words or (EDITED if edited else TOLD)
        words_of_person: dict[str, Any] = {SAID: feedback} if feedback else {}
        changed = {"arguments": call.arguments} if edited else {}
        return canonical.pretty({**facts, **words_of_person, **changed, "result": call.result})
    return call.result if isinstance(call.result, str) else canonical.pretty(call.result)
