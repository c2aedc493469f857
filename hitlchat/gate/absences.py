"""Absences: between two moments that a person names, a delegate may decide in their place.

The delegate's right is that of the person alone, and goes no further: deciders.py judges it in the statement that moves
the call. What was passed on to somebody is never passed on by them.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest, Now
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_administer
from hitlchat.base import database
from hitlchat.base.problems import Invalid, NotFound
from hitlchat.base.sentences import translatable
from hitlchat.gate import stated
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Absence
from hitlchat.gate.transition import note

MADE: Final = "delegation.made"
ENDED: Final = "delegation.ended"
LONGEST: Final = timedelta(days=365)
# One that was ended before its beginning has no time.
NOT_ENDED_BEFORE: Final = Q(until__gt=F("since"))
NONE: Final = gettext_noop("There is no delegation with this id for you to end.")


class BadAbsence(Invalid):
    """Nobody may decide so in another's place; the message says why, at its field."""


def open_ones(**which: Any) -> QuerySet[Absence]:
    """Return those that are not over, for people to read; some may not have begun."""
    rows = Absence.objects.filter(NOT_ENDED_BEFORE, until__gt=Now(), **which)
    return rows.select_related("person", "delegate")


def seen_by(user: User) -> QuerySet[Absence]:
    return open_ones() if may_administer(user) else open_ones().filter(Q(person=user) | Q(delegate=user))


def begin(person_id: int, name: str, since: datetime | None, until: datetime, actor: Actor) -> Absence:
    """Let the person called `name` decide in the person's place from `since`, or now, until `until`. Raises: BadAbsence

    For somebody else only an administrator may, and never name themselves.
    """
    with transaction.atomic():
        # One after the other: two that are made at once would not see each other.
        list(ContentType.objects.select_for_update(of=("self",)).filter(app_label="gate", model="absence"))
        now = database.now()
        # Never of before: what was over then is nobody else's to see.
        found = _found(person_id, name, actor)
        made = Absence(person_id=person_id, delegate=found, since=max(since or now, now), until=until)
        if made.until <= made.since:
            raise BadAbsence({"until": gettext_noop("Expected a moment after the beginning, and later than now.")})
        if made.until - made.since > LONGEST:
            raise BadAbsence({"until": translatable(f"At most {LONGEST.days} days after the beginning.")})
        _check_others(made, name)
        made.save(force_insert=True)
        _note(MADE, made, actor)
    return made


def end(absence_id: UUID, actor: Actor) -> None:
    """End it now. NotFound: it is over, or neither the person's own, nor do they administer."""
    found = open_ones(pk=absence_id).first()
    if found is None or not _may_change(found.person_id, actor):
        raise NotFound(NONE)
    with transaction.atomic():
        if Absence.objects.filter(pk=found.pk, until__gt=Now()).update(until=Greatest(Now(), F("since"))):
            _note(ENDED, found, actor)


def hold(person_id: int, delegate_id: int) -> None:
    """Keep what the delegate may decide from being ended until the transaction is over, so that an end comes before a
    yes or after it. Whether it is in force, the statement that moves the call judges next.
    """
    # By a write: whoever ends it waits, or has ended it.
    Absence.objects.filter(person_id=person_id, delegate_id=delegate_id).update(until=F("until"))


def _may_change(person_id: int, actor: Actor) -> bool:
    person = actor.person
    return person is not None and person.is_active and (person.pk == person_id or may_administer(person))


def _found(person_id: int, name: str, actor: Actor) -> User:
    if not _may_change(person_id, actor):
        raise NotFound(NONE)
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise BadAbsence({"delegate": gettext_noop("There is no active person with this name.")})
    if found.pk == person_id:
        raise BadAbsence({"delegate": gettext_noop("Nobody can decide in their own place: name somebody else.")})
    if found.pk == actor.user_id:
        words = gettext_noop("You cannot name yourself for somebody else. Name another person.")
        raise BadAbsence({"delegate": words})
    return found


def _check_others(made: Absence, name: str) -> None:
    """Require one delegate at a time, who is not away then: so there is no circle, and no chain that grows."""
    meanwhile = Absence.objects.filter(NOT_ENDED_BEFORE, since__lt=made.until, until__gt=made.since)
    if meanwhile.filter(person_id=made.person_id).exists():
        raise BadAbsence(
            {"delegate": gettext_noop("Somebody is named for a part of this time already: end that first.")}
        )
    if meanwhile.filter(person_id=made.delegate_id).exists():
        raise BadAbsence({"delegate": translatable(f"{name} has named somebody else for a part of this time.")})


def _note(name: str, absence: Absence, actor: Actor) -> None:
    people = {"person": absence.person.get_username(), "person_id": absence.person_id}
    named = User.objects.values_list("username", flat=True).get(pk=absence.delegate_id)
    delegate = {"delegate": named, "delegate_id": absence.delegate_id}
    dates = {"since": absence.since.isoformat(), "until": absence.until.isoformat()}
    data = {**people, **delegate, **dates, **stated.states("delegation", absence.pk)}
    note(None, name, actor=actor, data=data)
