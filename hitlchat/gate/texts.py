"""Templates for what models read of a call that was declined, edited, not answered, or refused. A template gives the
message its words and nothing else: what is a fact stands in fields beside it, which no template reaches."""

import re
from collections.abc import Mapping
from typing import Any, Protocol

from django.db import transaction
from django.db.models import Q

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import ModelText, Outcome, Tool, ToolCall
from hitlchat.gate.models.tools import LONGEST_TEXT
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note


class Told(Protocol):
    """What a text tells of: a call, or one that is made up for an example."""

    @property
    def status(self) -> str: ...
    @property
    def tool_name(self) -> str: ...
    @property
    def arguments(self) -> Any: ...
    @property
    def reason(self) -> str: ...
    @property
    def result(self) -> Any: ...
    @property
    def error(self) -> Any: ...


# By outcome, as they are to be used; an empty one has none.
Texts = Mapping[str, str]

LONGEST_VALUE = 500
# So that what stands beside it is read as well, however often a template names a long value.
LONGEST_FILLED = 4000
_TOOL, _ARGUMENTS, _FEEDBACK, _REASON = "toolName", "args", "feedback", "reason"
# As others spell them.
SPELLINGS = {"tool_name": _TOOL, "final_tool_params": _ARGUMENTS}
KNOWN: Mapping[str, tuple[str, ...]] = {
    Outcome.DECLINED: (_TOOL, _ARGUMENTS),
    Outcome.FEEDBACK: (_TOOL, _ARGUMENTS, _FEEDBACK),
    Outcome.EDITED: (_TOOL, _ARGUMENTS),
    Outcome.EXPIRED: (_TOOL, _ARGUMENTS),
    Outcome.REFUSED: (_TOOL, _ARGUMENTS, _REASON),
}
_BRACES = re.compile(r"\{([^{}]*)\}")
_OUTCOMES: Mapping[str, str] = {
    Status.DECLINED: Outcome.DECLINED,
    Status.EXPIRED: Outcome.EXPIRED,
    Status.REFUSED: Outcome.REFUSED,
}


class BadTexts(ValueError):
    """Nothing was saved: `problems` has what was expected, by outcome."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__(" ".join(f"{name}: {said}" for name, said in problems.items()))
        self.problems = problems


def own(tool: Tool | None) -> dict[str, str]:
    """The templates of this tool alone, or those for all tools; only the outcomes that have one."""
    return dict(ModelText.objects.filter(tool=tool).values_list("outcome", "text"))


def in_force(tool_id: object) -> dict[str, str]:
    """The tool's own before those for all."""
    rows = ModelText.objects.filter(Q(tool=None) | Q(tool_id=tool_id)).values_list("tool", "outcome", "text")
    return {outcome: text for _, outcome, text in sorted(rows, key=lambda row: row[0] is not None)}


def of(call: ToolCall, *, edited: bool) -> dict[str, str]:
    """The templates for telling of `call`; the database is asked only where there could be one."""
    return in_force(call.tool_id) if matter(call, edited=edited) else {}


def matter(call: Told, *, edited: bool) -> bool:
    """Whether there could be a template for what became of it."""
    return call.status in _OUTCOMES or (edited and call.status == Status.SUCCEEDED)


def message(call: Told, texts: Texts, *, feedback: str = "") -> str:
    """The words for a call that came to nothing; empty without a template for how."""
    outcome = _OUTCOMES.get(call.status, "")
    said = [fill(texts.get(outcome, ""), call)]
    if outcome == Outcome.DECLINED and feedback:
        said.append(fill(texts.get(Outcome.FEEDBACK, ""), call, feedback=feedback))
    return " ".join(filter(None, said))


def fill(template: str, call: Told, *, feedback: str = "") -> str:
    """`template` with its placeholders filled in, in one go: what is in a value is never filled in itself."""
    values = {
        _TOOL: call.tool_name,
        _ARGUMENTS: canonical.pretty(call.arguments),
        _FEEDBACK: feedback,
        _REASON: call.reason,
    }

    def one(match: re.Match[str]) -> str:
        name = SPELLINGS.get(match[1], match[1])
        return _short(values[name], LONGEST_VALUE) if name in values else match[0]

    return _short(_BRACES.sub(one, template), LONGEST_FILLED)


def save(tool: Tool | None, wanted: Mapping[str, str | None], actor: Actor) -> dict[str, str]:
    """Set templates, of the tool or for all; None or an empty one takes it away. Those that stand now. BadTexts."""
    clean = {outcome: tidy(text or "") for outcome, text in wanted.items()}
    if problems := {outcome: said for outcome, text in clean.items() if (said := problem(outcome, text))}:
        raise BadTexts(problems)
    with transaction.atomic():
        before = own(tool)
        for outcome, text in clean.items():
            if text:
                ModelText.objects.update_or_create(tool=tool, outcome=outcome, defaults={"text": text})
            else:
                ModelText.objects.filter(tool=tool, outcome=outcome).delete()
        if (after := own(tool)) != before:
            data: dict[str, Any] = {"tool": tool.name if tool else None, "before": before, "after": after}
            note(None, "texts.changed", actor=actor, data=data)
    return after


def tidy(text: str) -> str:
    """As it is kept."""
    return text.replace("\r\n", "\n").strip()


def problem(outcome: str, text: str) -> str:
    """What is wrong with a template, and what is expected; empty if nothing is."""
    known = KNOWN.get(outcome)
    if known is None:
        return f"There is no such outcome; expected one of {', '.join(KNOWN)}."
    if len(text) > LONGEST_TEXT:
        return f"It has {len(text):,} characters; at most {LONGEST_TEXT:,} are kept."
    if storable(text) != text:
        return "It has a character that cannot be kept, such as U+0000."
    for name in _BRACES.findall(text):
        if SPELLINGS.get(name, name) not in known:
            return f"{{{name[:40]}}} is unknown here; known are {', '.join(placeholders(outcome))}."
    return ""


def placeholders(outcome: str) -> list[str]:
    return [f"{{{name}}}" for name in KNOWN[outcome]]


def _short(text: str, longest: int) -> str:
    hidden = len(text) - longest
    return text if hidden <= 0 else f"{text[:longest]}… (and {hidden:,} more characters)"
