"""Comparison of the rows of calls, questions and answers with their events."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from hitlchat.base.canonical import storable
from hitlchat.base.sentences import part, translatable
from hitlchat.gate import contents, transition
from hitlchat.gate.counting import PASSED_ON
from hitlchat.gate.models import Approval, Attachment, AuditEvent, Decision, Drop, ToolCall, delegation
from hitlchat.gate.status import ENTRIES, MOVES, Status
from hitlchat.record import rows
from hitlchat.record.proofs import Row
from hitlchat.record.report import Finding, Report

AT_ONCE: Final = 200
ATTEMPTS: Final = 5
ASKED, APPROVED = "call.waiting", "call.approved"
# Any other event of an answer is of a yes.
VERDICTS: Final = {"call.declined": ("decline", "suggest"), "call.answered": ("answer",)}
STATUSES: Final = {f"call.{status.value}": status for status in Status}
# These happen to an open question alone.
WHILE_WAITING: Final = frozenset(
    {
        *("call.counted", "call.yes_taken_back", "call.extended", "call.taken_up", "call.let_go"),
        *("call.asked_why", "call.cautioned", PASSED_ON),
    }
)
PEOPLE: Final = frozenset({"session", "token", "console", "elicitation"})
# Where events say until when the question was open.
_UNTIL: Final = {"call.extended": "after", "call.expired": "deadline"}
_CALL: Final = (*transition.CALL_COLUMNS, "deadline", "caution_takes_tick")
_DECISION: Final = (*transition.DECISION_COLUMNS, "absent_id", "absent_name", "for_group")
_APPROVAL: Final = ("id", "call_id", "prompt", "disclosure", "digest")

Columns = dict[str, Any]


@dataclass(frozen=True)
class Story:
    """A call's row, the question and the answers, and its events in their order; `call` is empty if it cannot be read.

    `dropped`: retention dropped some events of the record, so that the first ones may be gone. `agents`: those between
    the call and its person, as pages name them. `digests_since`: each move after this event has a digest of the row;
    None: none has one. `attachments`: the digests by which they are named, and those of their bytes.
    """

    call_id: UUID
    call: Columns
    events: list[Row]
    approval: Columns | None
    decisions: list[Columns]
    agents: delegation.Agents
    attachments: list[tuple[str, str]]
    dropped: bool
    digests_since: int | None

    @property
    def moves(self) -> list[Row]:
        return [event for event in self.events if event["name"] in STATUSES]

    @property
    def is_whole(self) -> bool:
        """Return whether its events begin with the call's first status."""
        return bool(self.moves) and STATUSES[self.moves[0]["name"]] in ENTRIES

    @property
    def shown(self) -> Columns:
        """The last disclosure, which `_question` compares with its digest."""
        disclosure = self.approval["disclosure"] if self.approval else None
        return disclosure if isinstance(disclosure, dict) else {}

    def last(self, *names: str) -> Row | None:
        return next((event for event in reversed(self.events) if event["name"] in names), None)


def compare(report: Report) -> Iterator[Finding | None]:
    """Yield for each call the first thing that is not as its events say, and None after each page of calls.

    How many calls there are goes into `report`.
    """
    dropped = Drop.objects.exists()
    with_digest = AuditEvent.objects.filter(call__isnull=False, data__contains='"row":').order_by("pk")
    since = with_digest.values_list("pk", flat=True).first()
    rest = Q()
    while ids := list(ToolCall.objects.filter(rest).order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        rest = Q(pk__gt=ids[-1])
        for read in _stories(ids, dropped=dropped, since=since):
            # Something may have happened to the call while it was read.
            story = read if (wrong := first_wrong(read)) is None else _settled(read)
            if wrong is not None and (wrong := first_wrong(story)) is not None:
                batch = rows.batches_of([wrong.event]).get(wrong.event) if wrong.event is not None else None
                yield replace(wrong, batch=batch)
            elif not story.moves or "row" not in story.moves[-1]["data"]:
                # Its events do not cover the whole row, since they are older or were dropped.
                report.uncovered += 1
                report.uncovered_until = max(report.uncovered_until, rows.iso(story.call["created_at"]))
        report.calls += len(ids)
        yield None


def first_wrong(story: Story) -> Finding | None:
    """Return the first thing that is not as the events say; None if all is, as far as they say it."""
    if not story.call:
        last_id = story.events[-1]["id"] if story.events else None
        return Finding("not what was called", f"Call {story.call_id} can no longer be read.", event=last_id)
    if not story.moves:
        if story.dropped:
            return None
        return Finding(
            "not on record",
            f"Call {story.call_id} of {story.call['tool_name']!r} is not on record: no event says how it began.",
        )
    return next((found for check in _CHECKS for found in check(story)), None)


def _stories(ids: list[UUID], *, dropped: bool, since: int | None) -> Iterator[Story]:
    """Yield the stories as they are read now; while something happens to a call, its row and events may not fit."""
    calls = _by(ToolCall, "id", Q(pk__in=ids), _CALL)
    approvals = _by(Approval, "call_id", Q(call_id__in=ids), _APPROVAL)
    decisions = _by(Decision, "approval__call_id", Q(approval__call_id__in=ids), _DECISION)
    events = rows.by_call(ids)
    attachments: dict[UUID, list[tuple[str, str]]] = {}
    files = Attachment.objects.filter(call_id__in=ids).order_by("pk").values_list("call_id", "digest", "data")
    for call_id, digest, data in files.iterator(chunk_size=10):
        attachments.setdefault(call_id, []).append((digest, contents.digest(bytes(data))))
    agents = delegation.agents_of({own[0]["conversation_id"] for own in calls.values()} - {None})
    for call_id in ids:
        call = next(iter(calls.get(call_id, [])), {})
        yield Story(
            call_id=call_id,
            call=call,
            events=[
                {**row, "data": row["data"] if isinstance(row["data"], dict) else {}}
                for row in events.get(str(call_id), [])
            ],
            approval=next(iter(approvals.get(call_id, [])), None),
            decisions=decisions.get(call_id, []),
            agents=agents.get(call.get("conversation_id"), []),
            attachments=attachments.get(call_id, []),
            dropped=dropped,
            digests_since=since,
        )


def _by(model: Any, key: str, where: Q, columns: tuple[str, ...]) -> dict[UUID, list[Columns]]:
    found: dict[UUID, list[Columns]] = {}
    for row in rows.readable_values(model.objects.filter(where), {*columns, key}):
        found.setdefault(row[key], []).append(row)
    return found


def _settled(story: Story) -> Story:
    """Read again, until nothing happened to the call meanwhile."""
    for _ in range(ATTEMPTS):
        before = rows.newest_id(story.call_id)
        story = next(_stories([story.call_id], dropped=story.dropped, since=story.digests_since))
        if before == rows.newest_id(story.call_id):
            break
    return story


def _order(story: Story) -> Iterator[Finding]:
    """Yield moves that do not exist, so that nothing executes that was neither approved nor allowed.

    Likewise what happened to a question that was not open.
    """
    before: Status | None = None
    for event in story.events:
        status = STATUSES.get(event["name"])
        if status is None:
            if event["name"] in WHILE_WAITING and before != Status.WAITING and story.is_whole:
                label = before.value if before else ""
                words = translatable(
                    f"Event {event['id']} ({event['name']}) says that call {story.call_id} was answered or "
                    f"extended, but it was {label}."
                )
                yield Finding("not in order", words, event=event["id"])
            continue
        if status not in (MOVES[before] if before else ENTRIES) and (before or not story.dropped):
            yield Finding("not in order", _no_move(event["id"], story.call_id, before, status), event=event["id"])
        if status == Status.APPROVED and (event["actor"] is None or event["means"] not in PEOPLE):
            words = translatable(
                f"Event {event['id']} says that call {story.call_id} was approved, but names no person."
            )
            yield Finding("not in order", words, event=event["id"])
        before = status


def _no_move(event: int, call: UUID, before: Status | None, status: Status) -> str:
    label, label2 = status.value, before.value if before else ""
    after = translatable(f"right after it was {label2}") if before else translatable("with nothing before it")
    if status == Status.EXECUTING:
        return translatable(f"Event {event} says that call {call} was {label}, {after}: nobody approved or allowed it.")
    return translatable(f"Event {event} says that call {call} was {label}, {after}.")


def _status(story: Story) -> Iterator[Finding]:
    last = story.moves[-1]
    if story.call["status"] != STATUSES[last["name"]].value:
        label, label2 = story.call["status"], STATUSES[last["name"]].value
        words = translatable(f"Call {story.call_id} is {label}, but event {last['id']}, its last one, says {label2}.")
        yield Finding("not what happened", words, event=last["id"])


def _agents(story: Story) -> Iterator[Finding]:
    """Compare the agents between the call and its person with those that the event of its beginning names."""
    first = story.moves[0]
    if story.is_whole and first["data"].get("agents", []) != story.agents:
        words = translatable(
            f"The agents of call {story.call_id} differ from those in event {first['id']}, when the call was made."
        )
        yield Finding("not what was called", words, event=first["id"])


def _question(story: Story) -> Iterator[Finding]:
    question, approval = story.last(ASKED), story.approval
    if question is None:
        if approval is not None and story.is_whole:
            words = translatable(f"Call {story.call_id} has a question, but no event records that it was asked.")
            yield Finding("not what was shown", words, event=story.moves[-1]["id"])
        return
    digest, yes = question["data"].get("digest"), story.last(APPROVED)
    # The sentence of the question; of a call approved with other arguments, that of the yes.
    is_edited = yes is not None and {"edited", "prompt"} <= yes["data"].keys()
    prompt = str((yes["data"] if yes and is_edited else story.shown).get("prompt"))
    is_same = (
        approval is not None
        and digest in (None, approval["digest"])
        and question["data"].get("approval") in (None, str(approval["id"]))
        and rows.digest_of(approval["disclosure"]) == (digest or approval["digest"])
        and approval["prompt"] == storable(prompt)
    )
    if not is_same:
        words = translatable(
            f"The stored question differs from the one shown in event {question['id']} (call {story.call_id})."
        )
        yield Finding("not what was shown", words, event=question["id"])


def _origin(story: Story) -> Iterator[Finding]:
    """Compare the tool and the caller with the event of its beginning, and with the disclosure."""
    first, question = story.moves[0], story.last(ASKED)
    places = [(first["data"], first["id"], "id")] + ([(story.shown, question["id"], "user")] if question else [])
    for data, event_id, person in places:
        tool, caller = data.get("tool"), data.get("caller")
        facts = {
            part("tool"): (tool, "name", "tool_name"),
            part("tool's source"): (tool, "source", "source"),
            part("tool's definition"): (tool, "definition", "definition_hash"),
            part("caller"): (caller, person, "caller_id"),
            part("kind of caller"): (caller, "kind", "caller_kind"),
        }
        for fact, (there, name, column) in facts.items():
            if isinstance(there, dict) and story.call[column] != there.get(name):
                words = translatable(f"The {fact} of call {story.call_id} differs from the one in event {event_id}.")
                yield Finding("not what was called", words, event=event_id)


def _arguments(story: Story) -> Iterator[Finding]:
    """Compare them with the last event that states them."""
    event_id, digest = None, None
    question = story.last(ASKED)
    for event in story.events:
        data = event["data"]
        if event is question and "arguments" in story.shown:
            event_id, digest = event["id"], rows.digest_of(story.shown["arguments"])
        elif event["name"] == APPROVED and "edited" in data:
            event_id, digest = event["id"], rows.digest_of(data["edited"])
        elif event["name"] in STATUSES and "argumentsDigest" in data:
            event_id, digest = event["id"], data["argumentsDigest"]
    if digest is not None and rows.digest_of(story.call["arguments"]) != digest:
        words = translatable(
            f"The arguments of call {story.call_id} differ from those in event {event_id}, when the call "
            "was shown, changed, allowed or refused."
        )
        yield Finding("not what was called", words, event=event_id)


def _result(story: Story) -> Iterator[Finding]:
    back = story.last("call.succeeded", "call.failed")
    digest = back["data"].get("resultDigest") if back else None
    came_back = {name: story.call[name] for name in transition.RESULT_COLUMNS}
    if back and digest is not None and digest != transition.facts_digest(came_back):
        words = translatable(
            f"The result of call {story.call_id} differs from what the tool returned in event {back['id']}."
        )
        yield Finding("not what came back", words, event=back["id"])


def _deadline(story: Story) -> Iterator[Finding]:
    event, until = story.last(ASKED), story.shown.get("deadline")
    if event is None:
        return
    for later in story.events:
        extended = later["data"].get(_UNTIL.get(later["name"], ""))
        if extended is not None and later["id"] > event["id"]:
            event, until = later, extended
    if until is None:
        return
    try:
        deadline = datetime.fromisoformat(until)
    except (TypeError, ValueError):
        deadline = None
    if story.call["deadline"] != deadline:
        words = translatable(f"The deadline of call {story.call_id} differs from the one in event {event['id']}.")
        yield Finding("not what was shown", words, event=event["id"])


def _caution(story: Story) -> Iterator[Finding]:
    event = story.last("call.cautioned")
    takes_tick = event["data"].get("takesTick") if event else None
    if story.call["caution_takes_tick"] != takes_tick and (event or not story.dropped):
        words = translatable(f"What the caution about call {story.call_id} takes differs from its event, or has none.")
        yield Finding("not what was shown", words, event=event["id"] if event else None)


def _answers(story: Story) -> Iterator[Finding]:
    """Yield answers without an event, and those that are missing or differ from theirs."""
    if not story.is_whole:
        return
    events = _answer_events(story)
    there = {(row["person_id"], row["round"]): row for row in story.decisions}
    for key, event in events.items():
        row, data = there.get(key), event["data"]
        digest = data.get("decision")
        is_same = (
            row is not None
            and row["verdict"] in VERDICTS.get(event["name"], ("approve",))
            and (row["digest"], row["means"]) == (data.get("digest"), event["means"])
            and (
                digest is None
                or transition.are_same_facts(
                    digest, transition.decision_columns(row["absent_id"], row["for_group"]), row
                )
            )
        )
        if not is_same:
            words = translatable(
                f"The answer in event {event['id']} differs from the stored one (call {story.call_id})."
            )
            yield Finding("not what was decided", words, event=event["id"])
    if strangers := there.keys() - events.keys():
        person, _ = min(strangers)
        words = translatable(f"Call {story.call_id} has an answer by person {person} that no event records.")
        yield Finding("not what was decided", words, event=story.moves[-1]["id"])


def _answer_events(story: Story) -> dict[tuple[int, int], Row]:
    """Return the event of the answer that counts, for each person in each round of asking."""
    found: dict[tuple[int, int], Row] = {}
    number = 0
    for event in story.events:
        key = (event["actor"], number)
        match event["name"]:
            case "call.waiting":
                number += 1
            case "call.counted" | "call.declined" | "call.answered":
                found[key] = event
            case "call.approved":
                # The yes of a person who had counted before is the earlier one.
                found.setdefault(key, event)
            case "call.yes_taken_back":
                found.pop(key, None)
    return found


def _row(story: Story) -> Iterator[Finding]:
    """Compare the rest of the row at once."""
    # In a chain, whose turn it is changes without a move.
    last = story.last(*STATUSES, PASSED_ON) or story.moves[-1]
    digest = last["data"].get("row")
    if digest is not None and not transition.are_same_facts(digest, transition.CALL_COLUMNS, story.call):
        words = translatable(f"Call {story.call_id} was changed after event {last['id']}, its last one.")
        yield Finding("not what was called", words, event=last["id"])


def _digests(story: Story) -> Iterator[Finding]:
    """Yield moves without a digest of the row, though older ones of the record have one."""
    for event in story.moves:
        if story.digests_since is not None and event["id"] > story.digests_since and "row" not in event["data"]:
            words = translatable(
                f"Event {event['id']} of call {story.call_id} has no digest, although older events do."
            )
            yield Finding("no digest", words, event=event["id"])


def _attachments(story: Story) -> Iterator[Finding]:
    back = story.last("call.succeeded", "call.failed")
    event = back["id"] if back else None
    for digest, made in story.attachments:
        if digest != made:
            words = translatable(
                f"An attachment of call {story.call_id} differs from what the tool returned: {digest[:16]}…."
            )
            yield Finding("not what came back", words, event=event)
    there = {name for name, _ in story.attachments}
    for block in contents.attached(ToolCall(source=story.call["source"], result=story.call["result"])):
        if block["sha256"] not in there:
            label = str(block["sha256"])[:16]
            words = translatable(f"An attachment of call {story.call_id} is missing: {label}….")
            yield Finding("not what came back", words, event=event)


_CHECKS: Final[tuple[Callable[[Story], Iterator[Finding]], ...]] = (
    *(_order, _status, _agents, _question, _origin, _arguments, _result, _deadline),
    *(_caution, _answers, _row, _digests, _attachments),
)
