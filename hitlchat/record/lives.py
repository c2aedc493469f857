"""One call as its events tell it: is what is kept beside them what they say? The first thing that is not, in words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.gate import facts
from hitlchat.gate.status import ENTRIES, MOVES, Status
from hitlchat.record.checking import Kind
from hitlchat.record.seals import Row

ASKED: Final = "call.waiting"
APPROVED, DECLINED = "call.approved", "call.declined"
# Where events say until when the question was open.
_UNTIL: Final = {"call.extended": "after", "call.expired": "deadline"}
STATUSES: Final = {f"call.{status.value}": status for status in Status}
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


@dataclass(frozen=True)
class Wrong:
    kind: Kind
    words: str
    event: int | None = None


def wrong(story: Story) -> Wrong | None:
    """None: everything is as the events say, as far as they say it."""
    if story.call is None:
        return Wrong("not what was called", f"Call {story.call_id} cannot even be read any more.", _last_id(story))
    if not story.moves:
        if story.dropped:
            return None
        words = f"Call {story.call_id} of {story.call['tool_name']!r} is on no record: no event says how it began."
        return Wrong("not on record", words)
    checks: tuple[Callable[[Story], Iterator[Wrong]], ...] = (_order, _status, _question, _call, _answers, _row)
    return next((found for check in checks for found in check(story)), None)


def is_covered(story: Story) -> bool:
    """Return whether the last event about it says all of its row."""
    return bool(story.moves) and "row" in data_of(story.moves[-1])


def data_of(event: Row) -> Columns:
    return event["data"] if isinstance(event["data"], dict) else {}


def _order(story: Story) -> Iterator[Wrong]:
    """Yield moves that do not exist, so that nothing executes that was neither approved nor allowed."""
    before: Status | None = None
    for event in story.moves:
        status = STATUSES[event["name"]]
        is_move = status in MOVES[before] if before else status in ENTRIES or story.dropped
        if not is_move:
            after = f"right after it was {before.value}" if before else "with nothing before it"
            unasked = ": nobody approved or allowed it" if status == Status.EXECUTING else ""
            words = f"Event {event['id']} says that call {story.call_id} was {status.value}, {after}{unasked}."
            yield Wrong("not in order", words, event["id"])
        if status == Status.APPROVED and (event["actor"] is None or event["means"] not in PEOPLE):
            words = f"Event {event['id']} says that call {story.call_id} was approved, and by no person."
            yield Wrong("not in order", words, event["id"])
        before = status


def _status(story: Story) -> Iterator[Wrong]:
    assert story.call is not None
    last = story.moves[-1]
    if story.call["status"] != STATUSES[last["name"]].value:
        words = f"Call {story.call_id} is {story.call['status']}, and event {last['id']}, the last about it, says"
        yield Wrong("not what happened", f"{words} {STATUSES[last['name']].value}.", last["id"])


def _question(story: Story) -> Iterator[Wrong]:
    asked = story.last(ASKED)
    if asked is None:
        if story.approval is not None and story.is_whole:
            words = f"Call {story.call_id} has a question, and no event says that it was asked."
            yield Wrong("not what was shown", words, story.moves[-1]["id"])
        return
    data, kept = data_of(asked), story.approval
    digest = data.get("digest")
    is_same = (
        kept is not None
        and digest in (None, kept["digest"])
        and data.get("approval") in (None, str(kept["id"]))
        and _digest(kept["disclosure"]) == (digest or kept["digest"])
        and kept["prompt"] == storable(_prompt(story))
    )
    if not is_same:
        words = f"What was shown for event {asked['id']} is not on record as it was (call {story.call_id})."
        yield Wrong("not what was shown", words, asked["id"])


def _prompt(story: Story) -> str:
    """Return the sentence of the question; of a call approved with other arguments, that of the yes."""
    said = data_of(yes) if (yes := story.last(APPROVED)) else {}
    return str(said["prompt"] if "edited" in said and "prompt" in said else story.shown.get("prompt"))


def _call(story: Story) -> Iterator[Wrong]:
    """Yield what is wrong by name: which tool, for whom, with which arguments, what came back."""
    assert story.call is not None
    for said, event_id in _origins(story):
        for name, column in said.items():
            if story.call[column[0]] != column[1]:
                words = f"The {name} of call {story.call_id} is not that of event {event_id}, when it was made."
                yield Wrong("not what was called", words, event_id)
    told_by, digest = _arguments(story)
    if digest is not None and _digest(story.call["arguments"]) != digest:
        words = f"The arguments of call {story.call_id} are not those of event {told_by}"
        yield Wrong("not what was called", f"{words}, when it was shown, changed, let run or refused.", told_by)
    back = story.last("call.succeeded", "call.failed")
    said_back = data_of(back).get("resultDigest") if back else None
    if back and said_back is not None and said_back != facts.digest(_pick(story.call, facts.RESULT_COLUMNS)):
        words = f"The result of call {story.call_id} is not what came back at event {back['id']}."
        yield Wrong("not what came back", words, back["id"])
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
                "tool": ("tool_name", tool.get("name")),
                "tool's source": ("source", tool.get("source")),
                "tool's definition": ("definition_hash", tool.get("definition")),
            }
        if isinstance(caller, dict):
            found |= {
                "caller": ("caller_id", caller.get(person)),
                "kind of caller": ("caller_kind", caller.get("kind")),
            }
        yield found, event_id


def _arguments(story: Story) -> tuple[int | None, str | None]:
    """Return the arguments' digest by the last event that tells it, and which that is."""
    found: tuple[int | None, str | None] = (None, None)
    last_asked = story.last(ASKED)
    for event in story.events:
        data = data_of(event)
        if event is last_asked and "arguments" in story.shown:
            found = event["id"], _digest(story.shown["arguments"])
        elif event["name"] == APPROVED and "edited" in data:
            found = event["id"], _digest(data["edited"])
        elif event["name"] in STATUSES and "argumentsDigest" in data:
            found = event["id"], data["argumentsDigest"]
    return found


def _deadline(story: Story) -> Iterator[Wrong]:
    assert story.call is not None
    event, until = story.last(ASKED), story.shown.get("deadline")
    if event is None:
        return
    for later in story.events:
        said = data_of(later).get(_UNTIL.get(later["name"], ""))
        if said is not None and later["id"] > event["id"]:
            event, until = later, said
    if until is not None and story.call["deadline"] != _time(until):
        words = f"The deadline of call {story.call_id} is not that of event {event['id']}."
        yield Wrong("not what was shown", words, event["id"])


def _answers(story: Story) -> Iterator[Wrong]:
    """Yield answers that no event tells of, and those that are missing."""
    if not story.is_whole:
        return
    told = _told(story)
    there = {(row["person_id"], row["round"]): row for row in story.decisions}
    for key, event in told.items():
        row, data = there.get(key), data_of(event)
        verdict = "decline" if event["name"] == DECLINED else "approve"
        said = data.get("decision")
        is_same = (
            row is not None
            and (row["verdict"], row["digest"], row["means"]) == (verdict, data.get("digest"), event["means"])
            and (said is None or facts.is_same(said, facts.DECISION_COLUMNS, row))
        )
        if not is_same:
            words = f"The answer of event {event['id']} is not kept as it was given (call {story.call_id})."
            yield Wrong("not what was decided", words, event["id"])
    if strangers := there.keys() - told.keys():
        person, _ = min(strangers)
        words = f"Call {story.call_id} has an answer of person {person} that no event tells of."
        yield Wrong("not what was decided", words, story.moves[-1]["id"])


def _told(story: Story) -> dict[tuple[int, int], Row]:
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


def _row(story: Story) -> Iterator[Wrong]:
    """All the rest of it at once."""
    assert story.call is not None
    last = story.moves[-1]
    said = data_of(last).get("row")
    if said is not None and not facts.is_same(said, facts.CALL_COLUMNS, story.call):
        words = f"Call {story.call_id} is not as event {last['id']}, the last about it, left it."
        yield Wrong("not what was called", words, last["id"])


def _digest(value: Any) -> str:
    try:
        return canonical.sha256(value)
    except canonical.NotJson:
        return ""


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _pick(row: Columns, names: tuple[str, ...]) -> Columns:
    return {name: row[name] for name in names}


def _last_id(story: Story) -> int | None:
    return story.events[-1]["id"] if story.events else None
