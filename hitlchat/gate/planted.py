"""Attention checks: now and then a planted question, which must be answered with no, measures whether people read.

A check is no call and has no approval: it has a table of its own, and nothing that moves, claims or performs calls
knows of it. It is off until an administrator announces it, and comes to nobody who has not read that. The record says
that a check was planted and answered, with digests of for whom and how: administrators read the record, and get totals.
"""

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_administer
from hitlchat.base import schemas
from hitlchat.base.background import Worker
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.problems import Forbidden, Invalid, NotFound
from hitlchat.base.sentences import translatable
from hitlchat.gate import disclosure, meant, oversight, question, schema, stated, transition
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.contents import spelled
from hitlchat.gate.models import Announcement, AnnouncementRead, Approval, AttentionCheck, Decision, ToolCall, Verdict
from hitlchat.gate.models.attention import MOST_DAYS
from hitlchat.gate.provenance import Text
from hitlchat.gate.transition import note

ANNOUNCED: Final = "attention.announced"
ENDED: Final = "attention.ended"
READ: Final = "attention.announcement_read"
PLANTED: Final = "attention.check_planted"
ANSWERED: Final = "attention.check_answered"
USUAL_DAYS: Final = 14
LONGEST: Final = 2000
# Totals are of that time, and of so many people at least. Of one time only: the difference of two would be a person.
COUNTED: Final = timedelta(days=91)
FEWEST: Final = 5
# Of a person's own approved calls so many are looked through for one to plant.
LOOKED_THROUGH: Final = 50
# As long as the call that it is built from was open, within these.
SHORTEST_OPEN, LONGEST_OPEN = timedelta(minutes=5), timedelta(days=1)
MOST_SHOWN: Final = 50
# What a reader must compare with the request.
TOLD_BY: Final = (meant.AMOUNT, meant.RECIPIENT, meant.ADDRESS)
# Cards that show more than the call as it is would speak of the one that was changed; and of what was so then.
UNFIT: Final = frozenset({"preview", "again", "attempt"})
OF_THEN: Final = frozenset({"lastTime", "ranBefore"})
# Other processes learn within so long that checks were turned on or off.
LOOK_SECONDS: Final = 10.0
_AMOUNT: Final = re.compile(r"\d{1,12}(?:\.\d{1,6})?", re.ASCII)
NONE: Final = gettext_noop("There is no such announcement to read.")


class BadAnnouncement(Invalid):
    """Checks cannot be announced so; the message says why, at its field."""


@dataclass(frozen=True)
class Change:
    """What a check shows, and what of it is changed."""

    disclosure: dict[str, Any]
    argument: str
    wanted: str
    planted: str


@dataclass(frozen=True)
class Lookalike:
    """What pages read of an approval. It is no row, and cannot be stored; its call is in no table."""

    pk: UUID
    call: ToolCall
    prompt: str
    disclosure: dict[str, Any]
    digest: str
    created_at: datetime
    same: str = ""

    @property
    def call_id(self) -> UUID:
        return self.pk

    @property
    def decisions(self) -> QuerySet[Decision]:
        return Decision.objects.none()

    def get_deferred_fields(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True)
class Totals:
    """Answers to checks, of everyone together."""

    people: int
    answered: int
    seen: int


@dataclass
class _Switch:
    """Whether checks are on, as this process knows it: where they are off, pages cost no query for them."""

    on: bool = False


switch: Final = _Switch()


# -- The announcement -------------------------------------------------------------------------------------------------


def current() -> Announcement | None:
    """Return the announcement under which checks are on; None: they are off."""
    last = Announcement.objects.order_by("-at", "-pk").first()
    return last if last is not None and last.ended_at is None else None


def worker() -> Worker:
    """Learns of other processes, and of what was announced before this one began."""
    return Worker("attention checks", in_db(_look), LOOK_SECONDS, longest=LOOK_SECONDS)


def announce(text: str, every_days: int, actor: Actor) -> Announcement:
    """Turn checks on, or announce them anew: whoever has read another announcement reads this one first. Raises:
    Forbidden, BadAnnouncement.
    """
    _require_administrator(actor)
    text = storable(text).strip()
    if not text:
        raise BadAnnouncement({"text": gettext_noop("Write what everybody reads before the first check.")})
    if len(text) > LONGEST:
        raise BadAnnouncement({"text": translatable(f"At most {LONGEST:,} characters.")})
    if not 1 <= every_days <= MOST_DAYS:
        raise BadAnnouncement({"every_days": translatable(f"Expected a number from 1 to {MOST_DAYS}.")})
    with transaction.atomic():
        _end()
        made = Announcement.objects.create(text=text, every_days=every_days)
        note(None, ANNOUNCED, actor=actor, data={"id": str(made.pk), "text": text, "everyDays": every_days})
    switch.on = True
    return made


def end(actor: Actor) -> None:
    """Turn checks off, those that are open included. Forbidden."""
    _require_administrator(actor)
    with transaction.atomic():
        if _end():
            note(None, ENDED, actor=actor)
    switch.on = False


def unread_by(user_id: int) -> Announcement | None:
    """Return the announcement that the person has to read before a check can come."""
    found = current()
    return None if found is None or found.read_by.filter(person_id=user_id).exists() else found


def read(announcement_id: UUID, actor: Actor) -> None:
    """Put on record that a person has it before them, the first time. NotFound: it is not, or no longer, announced."""
    found = current()
    if found is None or found.pk != announcement_id or not actor.is_person:
        raise NotFound(NONE)
    with transaction.atomic():
        _, is_first = AnnouncementRead.objects.get_or_create(announcement=found, person_id=actor.user_id)
        if is_first:
            note(None, READ, actor=actor, data={"id": str(found.pk)})


# -- Checks -----------------------------------------------------------------------------------------------------------


def arrive(user: User) -> Announcement | None:
    """Return the announcement that this person has to read first; None: there is none, and if a check is due, and a
    call of theirs makes one, it is planted.
    """
    found = current() if switch.on else None
    if found is None:
        return None
    reading = found.read_by.filter(person=user).first()
    if reading is None:
        return found
    last = _of_person(user.pk).first()
    seed, since = (last.pk, last.at) if last and last.at > reading.at else (reading.pk, reading.at)
    # At a moment that nobody chooses: up to half as long again.
    wait = timedelta(days=found.every_days) * (1 + seed.int % 1000 / 2000)
    if timezone.now() >= since + wait and (source := _source(user)) is not None:
        _plant(reading, seed, *source)
    return None


def open_to(user_id: int) -> AttentionCheck | None:
    """Return the check that waits for this person."""
    if not switch.on:
        return None
    rows = _of_person(user_id).filter(seen=None, until__gt=timezone.now(), reading__announcement__ended_at=None)
    return rows.first()


def one_of(user_id: int, check_id: UUID) -> AttentionCheck | None:
    """Return the check with this id if it is the person's, whatever became of it."""
    return _of_person(user_id).filter(pk=check_id).first()


def over(user_id: int) -> list[AttentionCheck]:
    """Return the person's last checks that are not open, the newest first."""
    return [each for each in _of_person(user_id)[:MOST_SHOWN] if not each.is_open]


def as_question(check: AttentionCheck) -> Approval:
    """Return what the card and the list show of a check: no approval, but what looks like one to them."""
    shown = check.disclosure
    call = transition.in_no_table(
        id=check.pk,
        tool_name=shown["tool"]["name"],
        source=shown["tool"]["source"],
        risk_level=shown["risk"],
        arguments=shown["arguments"],
        caller=check.reading.person,
        caller_kind=shown["caller"]["kind"],
        reason=shown["reason"],
        deadline=check.until,
        created_at=check.at,
    )
    return cast("Approval", Lookalike(check.pk, call, shown["prompt"], shown, disclosure.digest(shown), check.at))


def answer(check_id: UUID, actor: Actor, *, declined: bool) -> AttentionCheck:
    """Keep the answer of its person, the first one while it is open; return the check as it is then. NotFound."""
    found = one_of(actor.user_id or 0, check_id)
    if found is None or actor.means != "session":
        raise NotFound
    now = timezone.now()
    if found.is_open:
        with transaction.atomic():
            # Without a join: PostgreSQL would not look again at what was answered while it waited.
            still_on = AnnouncementRead.objects.filter(announcement__ended_at=None)
            if AttentionCheck.objects.filter(pk=found.pk, seen=None, reading__in=still_on).update(
                seen=declined, answered_at=now
            ):
                found.seen, found.answered_at = declined, now
                _note(ANSWERED, found)
    found.refresh_from_db()
    return found


def totals() -> Totals | None:
    """Return the answers of everyone together; None: of too few people to tell nothing of any one of them."""
    rows = AttentionCheck.objects.filter(at__gte=timezone.now() - COUNTED, seen__isnull=False)
    people, seen = Count("reading__person", distinct=True), Count("pk", filter=Q(seen=True))
    found = Totals(**rows.aggregate(people=people, answered=Count("pk"), seen=seen))
    return found if found.people >= FEWEST else None


def _look() -> None:
    switch.on = current() is not None


def _require_administrator(actor: Actor) -> None:
    if actor.person is None or not may_administer(actor.person):
        raise Forbidden(gettext_noop("Only an administrator may turn attention checks on or off."))


def _end() -> int:
    return Announcement.objects.filter(ended_at=None).update(ended_at=timezone.now())


def _of_person(user_id: int) -> QuerySet[AttentionCheck]:
    rows = AttentionCheck.objects.filter(reading__person_id=user_id)
    return rows.select_related("reading__announcement", "reading__person").order_by("-at", "-pk")


def _plant(reading: AnnouncementRead, seed: UUID, change: Change, lasts: timedelta) -> None:
    now = timezone.now()
    columns = {"argument": change.argument, "wanted": change.wanted, "planted": change.planted}
    made = AttentionCheck(reading=reading, after=seed, nonce=secrets.token_hex(), at=now, until=now + lasts, **columns)
    # Nothing in it leads to the call that it was built from.
    own = {"call": str(made.pk), "conversation": None, "deadline": made.until.isoformat()}
    made.disclosure = change.disclosure | own
    try:
        with transaction.atomic():
            made.save(force_insert=True)
            _note(PLANTED, made)
    except IntegrityError:
        # Planted by another page of theirs at the same time.
        return


def _note(name: str, check: AttentionCheck) -> None:
    note(None, name, actor=SYSTEM, data={"check": str(check.pk), **stated.states("attention check", check.pk)})


def _source(user: User) -> tuple[Change, timedelta] | None:
    """Return one of the person's own approved calls, changed, and for how long it is to be open."""
    decisions = Decision.objects.filter(person=user, absent=None, verdict=Verdict.APPROVE, edited_arguments=None)
    ids = decisions.order_by("-decided_at").values_list("approval", flat=True)[:LOOKED_THROUGH]
    # Only who a call is for decides it in their own right where its tool has no rules about that.
    own = Approval.objects.filter(pk__in=list(ids), call__oversight_digest="")
    rows = list(own.select_related("call__tool").order_by("-created_at"))
    for row in secrets.SystemRandom().sample(rows, len(rows)):
        past = [each.disclosure.get("arguments", {}) for each in rows if each.call.tool_id == row.call.tool_id]
        try:
            if (change := _changed(row.disclosure, row.call, past)) is not None:
                until = datetime.fromisoformat(row.disclosure["deadline"])
                return change, min(max(until - row.created_at, SHORTEST_OPEN), LONGEST_OPEN)
        except KeyError:
            # An older record lacks a part of it.
            continue
    return None


def _changed(shown: dict[str, Any], call: ToolCall, past: list[dict[str, Any]]) -> Change | None:
    """Return the question with one value that contradicts the request on its card; None: nothing in it does.

    `past`: the arguments of the person's approved calls of the tool, the latest first.
    """
    tool, arguments, request = call.tool, shown["arguments"], Text(shown["userPrompt"])
    if tool is None or tool.definition_hash != shown["tool"]["definition"] or UNFIT & shown.keys():
        return None
    shown = {key: part for key, part in shown.items() if key not in OF_THEN} | disclosure.of_tool(tool)
    if question.is_one(call) or oversight.care(shown) >= oversight.HIGHEST_RISK:
        return None
    for name, value in arguments.items():
        if name in shown.get("notGiven", []) or meant.weight(name, value) not in TOLD_BY or not _says(request, value):
            continue
        for other in _other_values(name, value, past):
            edited = {**arguments, name: other}
            if not _says(request, other) and _fits(tool.input_schema, edited):
                made = disclosure.with_edit(shown, edited, tool)
                # As the card of a real one would say it.
                made["lastTime"] = disclosure.last_time(past[0], edited)
                if "provenance" in made:
                    made["provenance"] += [{"path": schemas.step("", name), "from": "model", "source": None}]
                return Change(made, name, spelled(value), spelled(other))
    return None


def _says(request: Text, value: Any) -> bool:
    """Return whether the person wrote the value; False also for one that nobody would look for."""
    is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return is_plain and bool(spelled(value).strip()) and request.says(Text(spelled(value)))


def _other_values(name: str, value: Any, past: list[dict[str, Any]]) -> Iterator[Any]:
    """Yield what may stand in the value's place: ten times as much, or what another call of the person had there."""
    if isinstance(value, int | float):
        yield value * 10 if isinstance(value, int) else round(value * 10, 6)
        return
    if _AMOUNT.fullmatch(value):
        yield f"{Decimal(value) * 10:.{len(value.partition('.')[2])}f}"
    yield from (each[name] for each in past if isinstance(each.get(name), str) and each[name] != value)


def _fits(input_schema: dict[str, Any], arguments: dict[str, Any]) -> bool:
    try:
        schema.validate(input_schema, arguments)
    except schema.BadArguments:
        return False
    return True
