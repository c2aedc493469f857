"""Calls against the record: what people read of them, their questions and answers, a page of calls at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from hitlchat.gate import facts
from hitlchat.gate.models import Approval, AuditEvent, Decision, Drop, ToolCall
from hitlchat.record import lives, rows
from hitlchat.record.checking import Finding, Report
from hitlchat.record.lives import Story
from hitlchat.record.rows import batches_of
from hitlchat.record.seals import Row

AT_ONCE = 200
ATTEMPTS = 5
_CALL = (*facts.CALL_COLUMNS[facts.VERSION], "deadline")
_DECISION = facts.DECISION_COLUMNS[facts.VERSION]
_APPROVAL = ("id", "call_id", "prompt", "disclosure", "digest")


def compare(report: Report) -> Iterator[Finding | None]:
    """Yield for each call the first thing that is not as its events say.

    There is None after each page of calls. How many there are
    goes into `report`.
    """
    dropped = Drop.objects.exists()
    after: UUID | None = None
    while ids := _next(after):
        after = ids[-1]
        for story in _stories(ids, dropped=dropped):
            yield from _compared(story, report)
        report.calls += len(ids)
        yield None


def disclosures(call_id: Any) -> list[dict[str, Any]]:
    """All that were shown about one call, the first one first."""
    events = AuditEvent.objects.filter(call_id=call_id, name=lives.ASKED).order_by("pk")
    before = [event.data["before"] for event in events if "before" in event.data]
    return before + list(Approval.objects.filter(call_id=call_id).values_list("disclosure", flat=True))


def _next(after: UUID | None) -> list[UUID]:
    calls = ToolCall.objects.order_by("pk") if after is None else ToolCall.objects.filter(pk__gt=after).order_by("pk")
    return list(calls.values_list("pk", flat=True)[:AT_ONCE])


def _stories(ids: list[UUID], *, dropped: bool) -> Iterator[Story]:
    """Yield the stories as they are read now; while something happens to a call, its row and events may not fit."""
    calls = _by(ToolCall, "id", Q(pk__in=ids), _CALL)
    approvals = _by(Approval, "call_id", Q(call_id__in=ids), _APPROVAL)
    decisions = _by(Decision, "approval__call_id", Q(approval__call_id__in=ids), _DECISION)
    events: dict[str, list[Row]] = {}
    for row in rows.read(Q(call_id__in=ids)):
        if rows.is_readable(row):
            events.setdefault(row["call"], []).append(row)
    for call_id in ids:
        own = calls.get(call_id)
        yield Story(
            call_id=call_id,
            call=own[0] if own else None,
            events=events.get(str(call_id), []),
            approval=next(iter(approvals.get(call_id, [])), None),
            decisions=decisions.get(call_id, []),
            dropped=dropped,
        )


def _by(model: Any, key: str, where: Q, columns: tuple[str, ...]) -> dict[UUID, list[dict[str, Any]]]:
    found: dict[UUID, list[dict[str, Any]]] = {}
    for row in _read(model.objects.filter(where), (*columns, key) if key not in columns else columns):
        found.setdefault(row[key], []).append(row)
    return found


def _read(found: Any, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the events without those that are not even of the right kind."""
    try:
        return list(found.values(*columns))
    except rows.UNREADABLE:
        keys = list(found.values_list("pk", flat=True))
        if len(keys) <= 1:
            return []
        return [row for key in keys for row in _read(found.filter(pk=key), columns)]


def _compared(story: Story, report: Report) -> Iterator[Finding]:
    wrong = lives.wrong(story)
    if wrong is not None:
        story = _settled(story)
        wrong = lives.wrong(story)
    if wrong is None:
        _count(story, report)
        return
    batch = batches_of([wrong.event]).get(wrong.event) if wrong.event is not None else None
    yield Finding(wrong.kind, wrong.words, batch, wrong.event)


def _settled(story: Story) -> Story:
    """Read again, until nothing happened to the call meanwhile."""
    for _ in range(ATTEMPTS):
        before = _newest(story.call_id)
        story = next(_stories([story.call_id], dropped=story.dropped))
        if before == _newest(story.call_id):
            break
    return story


def _newest(call_id: UUID) -> int:
    return rows.newest_id(AuditEvent.objects.filter(call_id=call_id))


def _count(story: Story, report: Report) -> None:
    """A call from before its events said all of it, or whose events were dropped, is told apart from one that fits."""
    if lives.is_covered(story):
        return
    report.uncovered += 1
    at: datetime | None = story.call["created_at"] if story.call else None
    if at is not None and (not report.uncovered_until or rows.iso(at) > report.uncovered_until):
        report.uncovered_until = rows.iso(at)


@dataclass
class People:
    """The names that people have now, by id; each that is another one than in an event is said once."""

    names: dict[int, str]
    said: set[int]

    def compare(self, row: Row, batch: int | None) -> Iterator[Finding]:
        for who in _named(row):
            person, name = who.get("id"), who.get("name")
            if not isinstance(person, int) or person in self.said or self.names.get(person) == name:
                continue
            self.said.add(person)
            now = f"is called “{self.names[person]}”" if person in self.names else "is not there any more"
            words = f"Person {person} {now}, and was “{name}” in event {row['id']}."
            yield Finding("not the name", words, batch, row["id"])


def _named(row: Row) -> list[dict[str, Any]]:
    data = row["data"] if isinstance(row["data"], dict) else {}
    return [who for who in (data.get("by"), data.get("caller")) if isinstance(who, dict) and "name" in who]
