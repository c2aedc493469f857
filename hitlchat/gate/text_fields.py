"""The templates for what models read, one field for each outcome, with what a model would read by it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hitlchat.gate import results, texts
from hitlchat.gate.models import Outcome, Tool
from hitlchat.gate.status import Status
from hitlchat.gate.texts import Texts

SAMPLE_TOOL = "refund_order"
SAMPLE_ARGUMENTS = {"order": "4711", "amount": 12.5}
SAMPLE_FEEDBACK = "Wrong arguments"
SAMPLE_REASON = "Refunds are not made on Sundays."
SAMPLE_RESULT = "done"

# What holds without a template.
DEFAULTS: Mapping[str, str] = {
    Outcome.DECLINED: results.MESSAGES[Status.DECLINED],
    Outcome.FEEDBACK: "",
    Outcome.EDITED: results.EDITED,
    Outcome.EXPIRED: results.MESSAGES[Status.EXPIRED],
    Outcome.REFUSED: results.MESSAGES[Status.REFUSED],
}
_STATUSES = {
    Outcome.DECLINED: Status.DECLINED,
    Outcome.FEEDBACK: Status.DECLINED,
    Outcome.EDITED: Status.SUCCEEDED,
    Outcome.EXPIRED: Status.EXPIRED,
    Outcome.REFUSED: Status.REFUSED,
}


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
    reason: str = SAMPLE_REASON
    result: str = SAMPLE_RESULT
    error: None = None


def fields(tool: Tool | None, typed: Texts | None = None) -> list[TextField]:
    """Of the tool, or of all tools; as stored, or as `typed` and not saved yet."""
    own = dict(texts.own(tool) if typed is None else typed)
    above = texts.own(None) if tool else {}
    problems = {outcome: texts.problem(outcome, text) for outcome, text in own.items()}
    sound = {outcome: text for outcome, text in own.items() if text and not problems[outcome]}
    return [
        TextField(
            outcome=outcome.value,
            label=outcome.label,
            text=own.get(outcome, ""),
            instead=above.get(outcome) or DEFAULTS[outcome],
            placeholders=tuple(texts.placeholders(outcome)),
            example=example(outcome, tool, above | sound),
            problem=problems.get(outcome, ""),
        )
        for outcome in Outcome
    ]


def example(outcome: Outcome, tool: Tool | None, templates: Texts) -> str:
    """What a model would read about a made-up call of the tool."""
    call = MadeUp(
        tool_name=tool.name if tool else SAMPLE_TOOL,
        arguments=(tool.example if tool else None) or SAMPLE_ARGUMENTS,
        status=_STATUSES[outcome],
    )
    feedback = SAMPLE_FEEDBACK if outcome == Outcome.FEEDBACK else ""
    return results.for_model(call, decline_reason=feedback, edited=outcome == Outcome.EDITED, templates=templates)
