"""Calls as the page of a conversation shows them: a line, what can be unfolded below it, and the steps of an agent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.moments import about
from hitlchat.base.sentences import translated
from hitlchat.base.statements import compiled, prefetch
from hitlchat.gate import attention, contents, decide, disclosure, question, results, stopping, who
from hitlchat.gate.card import key
from hitlchat.gate.grants import scope
from hitlchat.gate.models import Approval, Decision, Grant, ToolCall, Verdict, delegation
from hitlchat.gate.status import Status
from hitlchat.gate.tools import AGENT
from hitlchat.upstreams.models import UpstreamQuestion
from hitlchat.upstreams.pages.questions import QuestionCard
from hitlchat.upstreams.pages.questions import card as question_card

SHOWN_OF_RESULT: Final = 4000
# A longer result is folded.
LONG_RESULT: Final = 1000
SHOWN_OF_ARGUMENTS: Final = 20_000
# Of an agent: all of them are on its own page.
MOST_STEPS: Final = 50
WITHOUT_A_RUN: Final = {
    Status.DECLINED.value: gettext_noop("It was not executed."),
    Status.EXPIRED.value: gettext_noop("Nobody answered in time, and the call did not run."),
    Status.ANSWERED.value: gettext_noop("The tool did not run. The model reads that a person answered."),
}
# Of a result that is shown as a table.
MOST_ROWS: Final = 50
MOST_COLUMNS: Final = 12
MOST_FIELDS: Final = 30
LONGEST_CELL: Final = 300
MOST_INNER: Final = 3


@dataclass(frozen=True)
class Grid:
    """Text by rows. Without `columns` the first cell of each row is its name; `more` rows are in the raw result.
    `name`: the field whose list it is. `inner`: tables of lists in fields, which stand below.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0
    name: str = ""
    inner: Sequence["Grid"] = ()


@dataclass(frozen=True)
class CallView:
    call: ToolCall
    summary: str
    result: str
    # The same as a table, if it is one.
    grid: Grid | None
    # Characters of the whole result.
    size: int
    # What its line says of an answer beyond its status.
    verdict: str
    fate: str
    arguments: str
    # What it printed.
    output: str
    # The arguments as they were requested, if a person changed them.
    requested: str
    approval: Approval | None
    # Of the card that asks about it.
    card_key: str
    decided_at: datetime | None
    # How long what was answered had been shown, in sentences.
    looked: str
    questions: list[QuestionCard]
    can_stop: bool
    # Of a call of an agent, once it works.
    agent: "AgentView | None"

    @property
    def is_long(self) -> bool:
        return self.size > LONG_RESULT

    @property
    def hidden(self) -> int:
        return self.size - len(self.result)

    @property
    def granted_until(self) -> datetime | None:
        grants = self.approval.grants.all() if self.approval else ()
        return next((each.until for each in grants), None)


@dataclass(frozen=True)
class StepView:
    call: ToolCall
    summary: str
    agent: "AgentView | None" = None


@dataclass(frozen=True)
class AgentView:
    """The calls of an agent that works for a call, with what agents below it do, and where all of it can be read."""

    conversation_id: UUID
    steps: list[StepView]
    more: bool


def of_id(conversation_id: UUID, call_id: UUID) -> CallView | None:
    found = _calls(list(_of_id(conversation_id, call_id)))
    return next((view for views in found.values() for view in views), None)


def of_turns(turn_ids: list[UUID]) -> dict[UUID | None, list[CallView]]:
    return _calls(list(_of_turns(turn_ids))) if turn_ids else {}


def fate(row: ToolCall, approval: Approval | None) -> str:
    """Return the outcome of a call in plain sentences: who decided, how long it took, and how it ended."""
    sentences = []
    if approval is not None:
        grant = _("A grant was given with it: {grant}")
        sentences += [_answer(decision, row) for decision in approval.decisions.all()]
        sentences += [grant.format(grant=scope.sentence(each, translated)) for each in approval.grants.all()]
    return " ".join(filter(None, (*sentences, _ending(row))))


def grid(value: Any) -> Grid | None:
    """Return the table that `value` is, or None: then it is text or JSON to read as it stands."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(found := next(iter(value.values())), list):
        value = found
    if isinstance(value, list):
        return _of_objects(value)
    return _of_fields(value) if isinstance(value, dict) else None


def _of_objects(value: list[Any]) -> Grid | None:
    if not value or not all(isinstance(each, dict) and each for each in value):
        return None
    columns = [*dict.fromkeys(name for each in value for name in each)]
    shown = [[_cell(each[name]) if name in each else "" for name in columns] for each in value[:MOST_ROWS]]
    rows = [[cell for cell in row if cell is not None] for row in shown]
    if len(columns) > MOST_COLUMNS or any(len(row) < len(columns) for row in rows):
        return None
    return Grid(columns, rows, more=len(value) - len(rows))


def _of_fields(value: dict[str, Any]) -> Grid | None:
    if not 1 < len(value) <= MOST_FIELDS:
        return None
    lists = {name: _of_objects(each) for name, each in value.items() if isinstance(each, list)}
    inner = tuple(replace(found, name=name) for name, found in lists.items() if found)
    rows = [[name, cell] for name, each in value.items() if (cell := _cell(each)) is not None]
    is_whole = len(rows) + len(inner) == len(value) and len(inner) <= MOST_INNER
    return Grid((), rows, inner=inner) if is_whole else None


def _cell(value: Any) -> str | None:
    """Return a short value as text; None for one that no cell can show whole."""
    text = value if isinstance(value, str) else "" if value is None else canonical.pretty(value)
    return None if isinstance(value, dict | list) or len(text) > LONGEST_CELL else text


def beginning(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    left = _("%(hidden)s more characters are kept in the record.") % {"hidden": f"{len(text) - most:,}"}
    return f"{text[:most]}…\n{left}"


def _calls(listed: list[ToolCall]) -> dict[UUID | None, list[CallView]]:
    found = dict[UUID | None, list[CallView]]()
    approvals = [row.approval for row in listed if hasattr(row, "approval")]
    prefetch(approvals, "decisions", _decisions, "approval_id")
    prefetch(approvals, "grants", _grants, "approval_id")
    prefetch(listed, "questions", _questions, "call_id")
    agents = _agents([row.pk for row in listed if row.source == AGENT])
    for row in listed:
        found.setdefault(row.turn_id, []).append(_call(row, agents.get(row.pk)))
    return found


@compiled
def _of_turns(turn_ids: list[UUID]) -> QuerySet[ToolCall]:
    return _shown(ToolCall.objects.filter(turn_id__in=turn_ids))


@compiled
def _of_id(conversation_id: UUID, call_id: UUID) -> QuerySet[ToolCall]:
    return _shown(ToolCall.objects.filter(pk=call_id, conversation_id=conversation_id))


def _shown(rows: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
    schemas = ("tool__input_schema", "tool__output_schema", "tool__description")
    return rows.select_related("approval", "tool").defer(*schemas).order_by("position", "created_at")


@compiled
def _decisions(approval_ids: list[UUID]) -> QuerySet[Decision]:
    return Decision.objects.filter(approval__pk__in=approval_ids).select_related("person")


@compiled
def _grants(approval_ids: list[UUID]) -> QuerySet[Grant]:
    return Grant.objects.filter(approval__pk__in=approval_ids)


@compiled
def _questions(call_ids: list[UUID]) -> QuerySet[UpstreamQuestion]:
    return UpstreamQuestion.objects.filter(call__pk__in=call_ids).select_related("answered_by")


def _agents(call_ids: list[UUID]) -> dict[UUID, AgentView]:
    begun = delegation.begun_by(call_ids) if call_ids else {}
    if not begun:
        return {}
    rows = ToolCall.objects.filter(conversation_id__in=begun.values()).select_related("approval")
    listed = list(disclosure.with_words(rows).order_by("created_at", "position"))
    # As deep as agents may call agents.
    below = _agents([row.pk for row in listed if row.source == AGENT])
    steps: dict[UUID | None, list[StepView]] = {}
    for row in listed:
        steps.setdefault(row.conversation_id, []).append(StepView(row, disclosure.sentence(row), below.get(row.pk)))
    return {
        call_id: AgentView(where, steps.get(where, [])[:MOST_STEPS], len(steps.get(where, [])) > MOST_STEPS)
        for call_id, where in begun.items()
    }


def _call(row: ToolCall, agent: AgentView | None) -> CallView:
    approval: Approval | None = getattr(row, "approval", None)
    # One for each time it was asked about and answered.
    decisions = list(approval.decisions.all()) if approval else []
    text = contents.text(row) if row.status == Status.SUCCEEDED else ""
    requested = ""
    if approval is not None and not question.is_one(row):
        before = approval.disclosure["arguments"]
        is_changed = canonical.dumps(before) != canonical.dumps(row.arguments)
        requested = beginning(canonical.pretty(before, indent=2), SHOWN_OF_ARGUMENTS) if is_changed else ""
    return CallView(
        call=row,
        summary=disclosure.sentence(row),
        result=text[:SHOWN_OF_RESULT],
        grid=None if contents.has_text_beside(row) or not text else grid(contents.structured(row)),
        size=len(text),
        verdict=_verdict(decisions[-1], row) if decisions else "",
        fate=fate(row, approval),
        arguments=beginning(canonical.pretty(row.arguments, indent=2), SHOWN_OF_ARGUMENTS),
        output=beginning(row.output, SHOWN_OF_ARGUMENTS),
        requested=requested,
        approval=approval,
        card_key=key(approval.pk, row.round) if approval else "",
        decided_at=decisions[-1].decided_at if decisions else None,
        looked=attention.words(decisions[-1], approval.disclosure, timed=True) if approval and decisions else "",
        questions=[question_card(each) for each in row.questions.all()],
        can_stop=stopping.can_stop(row) and not stopping.is_requested(row),
        agent=agent,
    )


def _verdict(last: Decision, row: ToolCall) -> str:
    name = translated(who.name(last))
    if last.verdict == Verdict.APPROVE:
        if question.is_one(row):
            return _("Answered by {name}: “{answer}”").format(name=name, answer=question.in_words(row.arguments))
        return "" if last.edited_arguments is None else _("Approved with changes by {name}").format(name=name)
    if last.verdict == Verdict.ANSWER:
        return _("Answered in the tool's place by {name}").format(name=name)
    if last.verdict == Verdict.SUGGEST:
        return _("Declined by {name}, to do instead: “{reason}”").format(name=name, reason=last.reason)
    if not last.reason:
        return _("Declined by {name}").format(name=name)
    return _("Declined by {name}: “{reason}”").format(name=name, reason=decide.shown_reason(last.reason))


def _answer(decision: Decision, row: ToolCall) -> str:
    seconds, yes = (decision.decided_at - row.created_at).total_seconds(), decision.verdict == "approve"
    words = _("Approved by {name}, {how}, after {span}.") if yes else _("Declined by {name}, {how}, after {span}.")
    if yes and question.is_one(row):
        words = _("Answered by {name}, {how}, after {span}.")
    if decision.verdict == Verdict.ANSWER:
        words = _("Answered in the tool's place by {name}, {how}, after {span}.")
    words = words.format(name=translated(who.name(decision)), how=translated(who.how(decision)), span=about(seconds))
    if decision.edited_arguments is not None and not question.is_one(row):
        words += " " + _("The arguments were changed first.")
    if decision.reason:
        why = _("Note: “{reason}”") if yes else _("Reason: “{reason}”")
        if decision.verdict == Verdict.SUGGEST:
            why = _("To do instead: “{reason}”")
        words += " " + why.format(reason=decide.shown_reason(decision.reason))
    if decision.round < row.round:
        words += " " + _("This call was asked about again because its preview had changed.")
    return words


def _ending(row: ToolCall) -> str:
    match Status(row.status):
        case Status.DECLINED | Status.EXPIRED if question.is_one(row):
            return _("The model was told that there was no answer.")
        case Status.DECLINED | Status.EXPIRED | Status.ANSWERED:
            return _(WITHOUT_A_RUN[row.status])
        case Status.WITHDRAWN | Status.REFUSED | Status.REJECTED:
            return translated(row.reason)
        case Status.UNKNOWN:
            again = _("It may or may not have happened. It will not be repeated automatically.")
            return f"{_why_unknown(row)} {again}"
        case Status.FAILED:
            return results.sentence(row.error or {})
        case Status.APPROVED | Status.ALLOWED:
            return _(stopping.outlook(row))
        case Status.EXECUTING:
            name = stopping.requested_by(row)
            stopped = _("{name} requested a stop. It may still be running.")
            return stopped.format(name=name) if name else _("Running now.")
        case _:
            return ""


def _why_unknown(row: ToolCall) -> str:
    event = row.events.filter(name="call.unknown").last()
    why = str(event.data.get("reason", "")) if event else ""
    sentence = f"{why[:1].upper()}{why[1:].rstrip('.')}." if why else "The server stopped while this was executing."
    return _(sentence)
