"""Looking back: of the calls that ran without asking a share comes to their person afterwards: was that fine?

Which calls these are follows from their ids, which nobody chooses: nothing is stored before somebody answers.
"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import database
from hitlchat.base.problems import Conflict, NotFound
from hitlchat.gate.actor import Actor
from hitlchat.gate.grants import giving
from hitlchat.gate.models import CallerKind, Hindsight, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

LOOKED_BACK: Final = "call.looked_back"
# Of a person's latest calls so many are looked through, back to then, and so many come to them at a time.
LATEST: Final = 500
PERIOD: Final = timedelta(days=14)
MOST: Final = 10
# Below this level nothing is changed that anybody would miss.
LEAST_RISK: Final = 1
RAN: Final = frozenset({Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN})
NONE: Final = gettext_noop("There is no such call to look back at.")


class SaidBefore(Conflict):
    sentence = gettext_noop("You have already looked back at this call.")


def due(user_id: int) -> list[UUID]:
    """Return the ids of the calls that this person is to look back at, the newest first."""
    columns = ("pk", "status", "deadline", "caller_kind", "risk_level", "hindsight")
    latest = ToolCall.objects.filter(caller_id=user_id, created_at__gte=timezone.now() - PERIOD).order_by("-created_at")
    rows = latest.values_list(*columns, named=True)[:LATEST]
    found = [row.pk for row in rows if _ran_unasked(row) and row.hindsight is None and _is_chosen(row.pk)]
    return found[:MOST]


def look_back(call_id: UUID, actor: Actor, verdict: Hindsight.Verdict) -> None:
    """Put on record what the person whose call it was says of it. NotFound; SaidBefore."""
    call = ToolCall.objects.filter(pk=call_id, caller_id=actor.user_id, deadline=None, status__in=RAN).first()
    if call is None or not actor.is_person:
        raise NotFound(NONE)
    try:
        with database.durable():
            Hindsight.objects.create(call=call, person_id=call.caller_id, verdict=verdict, at=database.now())
            should_ask = {"shouldAsk": True} if verdict == Hindsight.Verdict.SHOULD_ASK else {}
            note(call.pk, LOOKED_BACK, actor=actor, data=should_ask)
            if should_ask and call.grant_id is not None:
                giving.regretted(call, actor)
    except IntegrityError:
        raise SaidBefore from None


def counted(since: datetime, user: User | None = None) -> dict[str, tuple[int, int]]:
    """Return for each tool how many calls were fine, and how many should have been asked about; of everyone, if there
    is no `user`.
    """
    rows = Hindsight.objects.filter(at__gte=since).order_by()
    rows = rows.filter(person=user) if user else rows
    count, fine = Count("pk"), Count("pk", filter=Q(verdict=Hindsight.Verdict.FINE))
    found = rows.values_list("call__tool_name").annotate(count=count, fine=fine)
    return {name: (fine, count - fine) for name, count, fine in found}


def _ran_unasked(row: Any) -> bool:
    is_use = row.caller_kind != CallerKind.STUDIO and row.risk_level >= LEAST_RISK
    return is_use and row.status in RAN and row.deadline is None


def _is_chosen(call_id: UUID) -> bool:
    return call_id.int % 100 < settings.HITL_LOOK_BACK_PERCENT
