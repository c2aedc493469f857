"""Comparison of calls with the record: is what stands beside their events what these say?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from hitlchat.base.canonical import storable
from hitlchat.base.sentences import part, translatable
from hitlchat.gate import contents, transition
from hitlchat.gate.models import Approval, Attachment, AuditEvent, Decision, Drop, ToolCall, delegation
from hitlchat.gate.status import ENTRIES, MOVES, Status
from hitlchat.record import rows
from hitlchat.record.proofs import Row
from hitlchat.record.report import Finding, Report
from hitlchat.record.rows import batches_of

ASKED: Final = "call.waiting"
APPROVED, DECLINED = "call.approved", "call.declined"
# Where events say until when the question was open.
_UNTIL: Final = {"call.extended": "after", "call.expired": "deadline"}
STATUSES: Final = {f"call.{status.value}": status for status in Status}
# What happens to an open question alone.
WHILE_WAITING: Final = frozenset({"call.counted", "call.yes_taken_back", "call.extended"})
PEOPLE: Final = frozenset({"session", "token", "console", "elicitation"})

Columns = dict[str, Any]


@dataclass(frozen=True)
class Story:
    """A call's row, the question and the answers, and its events in their order. `dropped`: some events of the record
    were, by retention, so that the first ones may be gone.
    """

    call_id: UUID
    call: Columns | None
    events: list[Row]
    approval: Columns | None
    decisions: list[Columns]
    dropped: bool = False
    # Through which agents it came, as pages say it.
    agents: delegation.Agents = field(default_factory=list)
    # After this event each move has a digest of the row; None: no event has one.
    digests_since: int | None = None
    # The digests by which attachments are named, and those of their bytes.
    attachments: list[tuple[str, str]] = field(default_factory=list)

    @property
    def moves(self) -> list[Row]:
        return [event for event in self.events if event["name"] in STATUSES]

    @property
    def is_whole(self) -> bool:
        """Return whether it is told from its beginning."""
        return bool(self.moves) and STATUSES[self.moves[0]["name"]] in ENTRIES

    @property
    def shown(self) -> Columns:
        """The last disclosure, which `_question` has held to its digest."""
        disclosure = self.approval["disclosure"] if self.approval else None
        return disclosure if isinstance(disclosure, dict) else {}

    def last(self, *names: str) -> Row | None:
        return next((event for event in reversed(self.events) if event["name"] in names), None)


def first_wrong(story: Story) -> Finding | None:
    """Return the first thing that is not as the events say; None if all is, as far as they say it."""
    if story.call is None:
        last_id = story.events[-1]["id"] if story.events else None
        return Finding("not what was called", f"Call {story.call_id} cannot even be read any more.", event=last_id)
    if not story.moves:
        if story.dropped:
            return None
        words = translatable(
            f"Call {story.call_id} of {story.call['tool_name']!r} is on no record: no event says how it began."
        )
        return Finding("not on record", words)
    checks: tuple[Callable[[Story], Iterator[Finding]], ...] = (
        _order,
        _status,
        _agents,
        _question,
        _call,
        _answers,
        _row,
        _digests,
        _attachments,
    )
    return next((found for check in checks for found in check(story)), None)


def is_covered(story: Story) -> bool:
    """Return whether the last event about it says all of its row."""
    return bool(story.moves) and "row" in data_of(story.moves[-1])


def data_of(event: Row) -> Columns:
    return event["data"] if isinstance(event["data"], dict) else {}


def _order(story: Story) -> Iterator[Finding]:
    """Yield moves that do not exist, so that nothing executes that was neither approved nor allowed."""
    before: Status | None = None
    for event in story.moves:
        status = STATUSES[event["name"]]
        is_move = status in MOVES[before] if before else status in ENTRIES or story.dropped
        if not is_move:
            yield Finding("not in order", _no_move(event["id"], story.call_id, before, status), event=event["id"])
        if status == Status.APPROVED and (event["actor"] is None or event["means"] not in PEOPLE):
            words = translatable(f"Event {event['id']} says that call {story.call_id} was approved, and by no person.")
            yield Finding("not in order", words, event=event["id"])
        before = status
    yield from _remarks(story)


def _remarks(story: Story) -> Iterator[Finding]:
    """Yield what happened to a question that was not open."""
    if not story.is_whole:
        return
    status: Status | None = None
    for event in story.events:
        status = STATUSES.get(event["name"], status)
        if event["name"] in WHILE_WAITING and status != Status.WAITING:
            label = status.value if status else ""
            words = translatable(
                f"Event {event['id']} ({event['name']}) says that somebody answered or extended call {story.call_id},"
                f" which was {label}."
            )
            yield Finding("not in order", words, event=event["id"])


def _digests(story: Story) -> Iterator[Finding]:
    """Yield moves without a digest of the row, though older ones of the record have one."""
    for event in story.moves:
        if story.digests_since is not None and event["id"] > story.digests_since and "row" not in data_of(event):
            words = translatable(f"Event {event['id']} of call {story.call_id} carries no digest, and older ones do.")
            yield Finding("no digest", words, event=event["id"])


def _attachments(story: Story) -> Iterator[Finding]:
    assert story.call is not None
    back = story.last("call.succeeded", "call.failed")
    event = back["id"] if back else None
    for said, made in story.attachments:
        if said != made:
            words = translatable(f"An attachment of call {story.call_id} is not what came back: {said[:16]}….")
            yield Finding("not what came back", words, event=event)
    there = {said for said, _ in story.attachments}
    for block in contents.attached(ToolCall(source=story.call["source"], result=story.call["result"])):
        if block["sha256"] not in there:
            label = str(block["sha256"])[:16]
            words = translatable(f"An attachment of call {story.call_id} is not there any more: {label}….")
            yield Finding("not what came back", words, event=event)


def _no_move(event: int, call: UUID, before: Status | None, status: Status) -> str:
    label, label2 = status.value, before.value if before else ""
    after = translatable(f"right after it was {label2}") if before else translatable("with nothing before it")
    if status == Status.EXECUTING:
        return translatable(f"Event {event} says that call {call} was {label}, {after}: nobody approved or allowed it.")
    return translatable(f"Event {event} says that call {call} was {label}, {after}.")


def _status(story: Story) -> Iterator[Finding]:
    assert story.call is not None
    last = story.moves[-1]
    if story.call["status"] != STATUSES[last["name"]].value:
        label, label2 = story.call["status"], STATUSES[last["name"]].value
        words = translatable(
            f"Call {story.call_id} is {label}, and event {last['id']}, the last about it, says {label2}."
        )
        yield Finding("not what happened", words, event=last["id"])


def _agents(story: Story) -> Iterator[Finding]:
    """Yield that other agents stand between the call and its person than the event of its beginning names."""
    first = story.moves[0]
    if story.is_whole and data_of(first).get("agents", []) != story.agents:
        words = translatable(
            f"The agents of call {story.call_id} are not those of event {first['id']}, when it was made."
        )
        yield Finding("not what was called", words, event=first["id"])


def _question(story: Story) -> Iterator[Finding]:
    asked = story.last(ASKED)
    if asked is None:
        if story.approval is not None and story.is_whole:
            words = translatable(f"Call {story.call_id} has a question, and no event says that it was asked.")
            yield Finding("not what was shown", words, event=story.moves[-1]["id"])
        return
    data, kept = data_of(asked), story.approval
    digest = data.get("digest")
    is_same = (
        kept is not None
        and digest in (None, kept["digest"])
        and data.get("approval") in (None, str(kept["id"]))
        and rows.digest_of(kept["disclosure"]) == (digest or kept["digest"])
        and kept["prompt"] == storable(_prompt(story))
    )
    if not is_same:
        words = translatable(
            f"What was shown for event {asked['id']} is not on record as it was (call {story.call_id})."
        )
        yield Finding("not what was shown", words, event=asked["id"])


def _prompt(story: Story) -> str:
    """Return the sentence of the question; of a call approved with other arguments, that of the yes."""
    said = data_of(yes) if (yes := story.last(APPROVED)) else {}
    return str(said["prompt"] if "edited" in said and "prompt" in said else story.shown.get("prompt"))


def _call(story: Story) -> Iterator[Finding]:
    """Yield what is wrong by name: which tool, for whom, with which arguments, what came back."""
    assert story.call is not None
    for said, event_id in _origins(story):
        for fact, column in said.items():
            if story.call[column[0]] != column[1]:
                words = translatable(
                    f"The {fact} of call {story.call_id} is not that of event {event_id}, when it was made."
                )
                yield Finding("not what was called", words, event=event_id)
    told_by, digest = _arguments(story)
    if digest is not None and rows.digest_of(story.call["arguments"]) != digest:
        words = translatable(
            f"The arguments of call {story.call_id} are not those of event {told_by}, when it was shown, changed, let"
            " run or refused."
        )
        yield Finding("not what was called", words, event=told_by)
    back = story.last("call.succeeded", "call.failed")
    said_back = data_of(back).get("resultDigest") if back else None
    kept_back = {name: story.call[name] for name in transition.RESULT_COLUMNS}
    if back and said_back is not None and said_back != transition.facts_digest(kept_back):
        words = translatable(f"The result of call {story.call_id} is not what came back at event {back['id']}.")
        yield Finding("not what came back", words, event=back["id"])
    yield from _deadline(story)


def _origins(story: Story) -> Iterator[tuple[dict[str, tuple[str, Any]], int]]:
    """Yield what the event of its beginning says, and what was shown."""
    first, asked = story.moves[0], story.last(ASKED)
    places = [(data_of(first), first["id"], "id")] + ([(story.shown, asked["id"], "user")] if asked else [])
    for said, event_id, person in places:
        tool, caller = said.get("tool"), said.get("caller")
        found: dict[str, tuple[str, Any]] = {}
        if isinstance(tool, dict):
            found = {
                part("tool"): ("tool_name", tool.get("name")),
                part("tool's source"): ("source", tool.get("source")),
                part("tool's definition"): ("definition_hash", tool.get("definition")),
            }
        if isinstance(caller, dict):
            found |= {
                part("caller"): ("caller_id", caller.get(person)),
                part("kind of caller"): ("caller_kind", caller.get("kind")),
            }
        yield found, event_id


def _arguments(story: Story) -> tuple[int | None, str | None]:
    """Return the arguments' digest by the last event that tells it, and which that is."""
    found: tuple[int | None, str | None] = (None, None)
    last_asked = story.last(ASKED)
    for event in story.events:
        data = data_of(event)
        if event is last_asked and "arguments" in story.shown:
            found = event["id"], rows.digest_of(story.shown["arguments"])
        elif event["name"] == APPROVED and "edited" in data:
            found = event["id"], rows.digest_of(data["edited"])
        elif event["name"] in STATUSES and "argumentsDigest" in data:
            found = event["id"], data["argumentsDigest"]
    return found


def _deadline(story: Story) -> Iterator[Finding]:
    assert story.call is not None
    event, until = story.last(ASKED), story.shown.get("deadline")
    if event is None:
        return
    for later in story.events:
        said = data_of(later).get(_UNTIL.get(later["name"], ""))
        if said is not None and later["id"] > event["id"]:
            event, until = later, said
    if until is not None and story.call["deadline"] != _time(until):
        words = translatable(f"The deadline of call {story.call_id} is not that of event {event['id']}.")
        yield Finding("not what was shown", words, event=event["id"])


def _answers(story: Story) -> Iterator[Finding]:
    """Yield answers that no event tells of, and those that are missing."""
    if not story.is_whole:
        return
    told = _answer_events(story)
    there = {(row["person_id"], row["round"]): row for row in story.decisions}
    for key, event in told.items():
        row, data = there.get(key), data_of(event)
        verdict = "decline" if event["name"] == DECLINED else "approve"
        said = data.get("decision")
        is_same = (
            row is not None
            and (row["verdict"], row["digest"], row["means"]) == (verdict, data.get("digest"), event["means"])
            and (said is None or transition.are_same_facts(said, transition.DECISION_COLUMNS, row))
        )
        if not is_same:
            words = translatable(
                f"The answer of event {event['id']} is not kept as it was given (call {story.call_id})."
            )
            yield Finding("not what was decided", words, event=event["id"])
    if strangers := there.keys() - told.keys():
        person, _ = min(strangers)
        words = translatable(f"Call {story.call_id} has an answer of person {person} that no event tells of.")
        yield Finding("not what was decided", words, event=story.moves[-1]["id"])


def _answer_events(story: Story) -> dict[tuple[int, int], Row]:
    """The event of the answer that is kept, for each person in each round of asking."""
    found: dict[tuple[int, int], Row] = {}
    number = 0
    for event in story.events:
        key = (event["actor"], number)
        match event["name"]:
            case "call.waiting":
                number += 1
            case "call.counted" | "call.declined":
                found[key] = event
            case "call.approved":
                # Of who had said yes before, that is kept.
                found.setdefault(key, event)
            case "call.yes_taken_back":
                found.pop(key, None)
    return found


def _row(story: Story) -> Iterator[Finding]:
    """Compare the rest of the row at once."""
    assert story.call is not None
    last = story.moves[-1]
    said = data_of(last).get("row")
    if said is not None and not transition.are_same_facts(said, transition.CALL_COLUMNS, story.call):
        words = translatable(f"Call {story.call_id} is not as event {last['id']}, the last about it, left it.")
        yield Finding("not what was called", words, event=last["id"])


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


AT_ONCE = 200
ATTEMPTS = 5
_CALL = (*transition.CALL_COLUMNS[transition.FACTS_VERSION], "deadline")
_DECISION = transition.DECISION_COLUMNS[transition.FACTS_VERSION]
_APPROVAL = ("id", "call_id", "prompt", "disclosure", "digest")


def compare(report: Report) -> Iterator[Finding | None]:
    """Yield for each call the first thing that is not as its events say.

    There is None after each page of calls. How many there are
    goes into `report`.
    """
    dropped, since = Drop.objects.exists(), _digests_since()
    after: UUID | None = None
    while ids := _next(after):
        after = ids[-1]
        for story in _stories(ids, dropped=dropped, since=since):
            yield from _compared(story, report)
        report.calls += len(ids)
        yield None


def disclosures(call_id: Any) -> list[dict[str, Any]]:
    """Return all disclosures that were shown about one call, the first one first."""
    events = AuditEvent.objects.filter(call_id=call_id, name=ASKED).order_by("pk")
    before = [event.data["before"] for event in events if "before" in event.data]
    return before + list(Approval.objects.filter(call_id=call_id).values_list("disclosure", flat=True))


def _next(after: UUID | None) -> list[UUID]:
    calls = ToolCall.objects.order_by("pk") if after is None else ToolCall.objects.filter(pk__gt=after).order_by("pk")
    return list(calls.values_list("pk", flat=True)[:AT_ONCE])


def _digests_since() -> int | None:
    """Return the first event that has a digest of its call's row."""
    moves = AuditEvent.objects.filter(call__isnull=False, data__contains='"row":').order_by("pk")
    return moves.values_list("pk", flat=True).first()


def _stories(ids: list[UUID], *, dropped: bool, since: int | None) -> Iterator[Story]:
    """Yield the stories as they are read now; while something happens to a call, its row and events may not fit."""
    calls = _by(ToolCall, "id", Q(pk__in=ids), _CALL)
    approvals = _by(Approval, "call_id", Q(call_id__in=ids), _APPROVAL)
    decisions = _by(Decision, "approval__call_id", Q(approval__call_id__in=ids), _DECISION)
    events, attachments = rows.by_call(ids), _attached(ids)
    agents = delegation.agents_of({own[0]["conversation_id"] for own in calls.values()} - {None})
    for call_id in ids:
        own = calls.get(call_id)
        yield Story(
            call_id=call_id,
            call=own[0] if own else None,
            events=events.get(str(call_id), []),
            approval=next(iter(approvals.get(call_id, [])), None),
            decisions=decisions.get(call_id, []),
            dropped=dropped,
            agents=agents.get(own[0]["conversation_id"], []) if own else [],
            digests_since=since,
            attachments=attachments.get(call_id, []),
        )


def _attached(ids: list[UUID]) -> dict[UUID, list[tuple[str, str]]]:
    """Map calls to the digests by which their attachments are kept, and those of the bytes."""
    found: dict[UUID, list[tuple[str, str]]] = {}
    rows_of = Attachment.objects.filter(call_id__in=ids).order_by("pk").values_list("call_id", "digest", "data")
    for call_id, digest, data in rows_of.iterator(chunk_size=10):
        found.setdefault(call_id, []).append((digest, contents.digest(bytes(data))))
    return found


def _by(model: Any, key: str, where: Q, columns: tuple[str, ...]) -> dict[UUID, list[dict[str, Any]]]:
    found: dict[UUID, list[dict[str, Any]]] = {}
    for row in rows.readable_values(model.objects.filter(where), {*columns, key}):
        found.setdefault(row[key], []).append(row)
    return found


def _compared(story: Story, report: Report) -> Iterator[Finding]:
    wrong = first_wrong(story)
    if wrong is not None:
        story = _settled(story)
        wrong = first_wrong(story)
    if wrong is None:
        _count(story, report)
        return
    batch = batches_of([wrong.event]).get(wrong.event) if wrong.event is not None else None
    yield replace(wrong, batch=batch)


def _settled(story: Story) -> Story:
    """Read again, until nothing happened to the call meanwhile."""
    for _ in range(ATTEMPTS):
        before = _newest(story.call_id)
        story = next(_stories([story.call_id], dropped=story.dropped, since=story.digests_since))
        if before == _newest(story.call_id):
            break
    return story


def _newest(call_id: UUID) -> int:
    return rows.newest_id(AuditEvent.objects.filter(call_id=call_id))


def _count(story: Story, report: Report) -> None:
    """Count calls whose events say not all of them, since they are older or were dropped."""
    if is_covered(story):
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
            yield Finding("not the name", self._renamed(person, name, row["id"]), batch, row["id"])

    def _renamed(self, person: int, name: object, event: int) -> str:
        if person not in self.names:
            return translatable(f"Person {person} is not there any more, and was “{name}” in event {event}.")
        now = self.names[person]
        return translatable(f"Person {person} is called “{now}”, and was “{name}” in event {event}.")


def _named(row: Row) -> list[dict[str, Any]]:
    data = row["data"] if isinstance(row["data"], dict) else {}
    return [who for who in (data.get("by"), data.get("caller")) if isinstance(who, dict) and "name" in who]
