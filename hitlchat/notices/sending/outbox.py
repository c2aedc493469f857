"""Which notices are to be sent now, by which process, and what follows from how that went.

At least once: a process that dies between sending and noting so leaves it to another, which sends the same again under
the same id.
"""

import logging
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from hitlchat.base import database
from hitlchat.base.background import me
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.transition import note
from hitlchat.notices.models import Kind, Notice, NoticeKind, Receiver, State


@dataclass(frozen=True)
class Result:
    """`trouble`: why it was not delivered, in words without anything secret; empty: it was. `final`: trying again is no
    use. `gone`: the receiver wants nothing more. `answer`: how its answer began."""

    trouble: str = ""
    status: int | None = None
    final: bool = False
    gone: bool = False
    answer: str = ""


logger = logging.getLogger(__name__)

# A mail takes several exchanges with its server, each of which may take its time-out.
MAIL_EXCHANGES = 10
FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(hours=6)
GROWTH = 4
JITTER = 0.2
GIVEN_UP_AFTER = timedelta(hours=24)
# To one place at the same time; all mail is one place.
MOST_PER_PLACE = 2
MAIL = "e-mail"


def place_of(receiver: Receiver) -> str:
    return MAIL if receiver.is_mail else receiver.place


def claim(most: int, busy: Mapping[str, int]) -> list[Notice]:
    """At most so many that are due, for this process to send; no more to one place than it may have at once, of which
    some are `busy` with others."""
    taken, full = Counter(busy), [place for place, count in busy.items() if count >= MOST_PER_PLACE]
    now = database.now()
    rows = Notice.objects.filter(_free(now), state=State.DUE, next_try_at__lte=now)
    rows = rows.exclude(receiver__place__in=full)
    if MAIL in full:
        rows = rows.exclude(receiver__kind=Kind.EMAIL)
    found: list[Notice] = []
    for notice in rows.select_related("receiver__person").order_by("next_try_at", "pk")[: 2 * most]:
        if _is_gone(notice.receiver):
            drop(notice.receiver_id)
            continue
        place = place_of(notice.receiver)
        if len(found) < most and taken[place] < MOST_PER_PLACE and _take(notice, now):
            taken[place] += 1
            found.append(notice)
    return found


def _is_gone(receiver: Receiver) -> bool:
    """Deactivated since the notice was made."""
    return receiver.person is not None and not receiver.person.is_active


def _free(now: datetime) -> Q:
    # Further ahead than any can be: the clock was set back since.
    return Q(lease_until=None) | Q(lease_until__lt=now) | Q(lease_until__gt=now + _longest())


def _longest() -> timedelta:
    longest = max(MAIL_EXCHANGES * settings.EMAIL_TIMEOUT, settings.NOTICE_TIMEOUT_SECONDS)
    return timedelta(seconds=longest + settings.LEASE_SECONDS)


def lease(receiver: Receiver) -> timedelta:
    """Longer than an attempt takes: so long others leave it to the process that has it."""
    longest = MAIL_EXCHANGES * settings.EMAIL_TIMEOUT if receiver.is_mail else settings.NOTICE_TIMEOUT_SECONDS
    return timedelta(seconds=longest + settings.LEASE_SECONDS)


def _take(notice: Notice, now: datetime) -> bool:
    rows = Notice.objects.filter(_free(now), pk=notice.pk, state=State.DUE)
    return rows.update(owner=me(), lease_until=now + lease(notice.receiver)) == 1


def release(notice: Notice) -> None:
    """This process ends before it knows how it went: the next one sends it."""
    Notice.objects.filter(pk=notice.pk, owner=me(), state=State.DUE).update(lease_until=None, owner="")


def settle(notice: Notice, result: Result, begun: datetime) -> None:
    """Note how it went, unless another process has it by now."""
    now = database.now()
    columns = {
        "tries": notice.tries + 1,
        "tried_at": begun,
        "took_ms": max(0, round((now - begun).total_seconds() * 1000)),
        "status": result.status,
        "trouble": result.trouble[:300],
        "answer": result.answer[:300],
        "lease_until": None,
        "owner": "",
    }
    state, onward = _onward(notice, result, now)
    columns |= {"state": state, **onward}
    with transaction.atomic():
        if Notice.objects.filter(pk=notice.pk, owner=me(), state=State.DUE).update(**columns) == 1 and result.gone:
            _switch_off(notice.receiver_id)
    logger.info("notice.%s %s", state.value, notice.pk)


def _onward(notice: Notice, result: Result, now: datetime) -> tuple[State, dict[str, datetime]]:
    if not result.trouble:
        return State.SENT, {"done_at": now}
    # Who presses “Test” looks at what comes back, and presses again.
    if result.final or notice.kind == NoticeKind.TEST or now - notice.made_at >= GIVEN_UP_AFTER:
        return State.GIVEN_UP, {"done_at": now}
    return State.DUE, {"next_try_at": now + pause(notice.tries)}


def pause(tries: int) -> timedelta:
    """Until the next attempt, after `tries` before this one: longer each time, and never for all the same."""
    longest = min(LONGEST_PAUSE.total_seconds(), FIRST_PAUSE.total_seconds() * GROWTH ** min(tries, 20))
    return timedelta(seconds=longest * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311


def drop(receiver_id: UUID) -> None:
    """What is on its way to it is not sent any more."""
    rows = Notice.objects.filter(receiver_id=receiver_id, state=State.DUE)
    rows.update(state=State.DROPPED, done_at=database.now(), lease_until=None, owner="")


def _switch_off(receiver_id: UUID) -> None:
    why = "It answered 410 Gone: it wants no more notices."
    if Receiver.objects.filter(pk=receiver_id, enabled=True).update(enabled=False, off_why=why):
        drop(receiver_id)
        note(None, "notice.webhook_gone", actor=SYSTEM, data={"receiver": str(receiver_id), "reason": why})
