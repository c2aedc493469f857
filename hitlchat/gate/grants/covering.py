"""Coverage: whether a call runs without asking because of a grant, looked up when judged, counted when recorded."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Count, F

from hitlchat.base.database import in_db
from hitlchat.gate import policy
from hitlchat.gate.actor import SYSTEM, Caller
from hitlchat.gate.grants import giving, standing
from hitlchat.gate.models import Decision, Grant, Tool, ToolCall, Verdict
from hitlchat.gate.transition import note

# Of so many at most, the oldest first.
MOST = 20
MISCOUNTED = "the record of the grant was changed"


async def covering(
    tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None
) -> tuple[Grant, ...]:
    """Return those that may cover such a call, in the order in which they are to be used.

    Of those that are void by now, this is put on record.
    """
    if not standing.may_be_granted(tool):
        return ()
    found = await in_db(_standing)(tool, arguments, caller, conversation_id)
    return tuple([grant for grant in found if not grant.condition or await _holds(grant.condition, arguments)])


def _standing(tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None) -> list[Grant]:
    mine = Grant.objects.filter(standing.ACTIVE, person_id=caller.user_id, tool_id=tool.pk, caller_kind=caller.kind)
    rows = mine.filter(standing.scope(arguments, conversation_id, caller.token_id))
    # In one statement, and so of one moment: each use is counted twice.
    counted = rows.select_related("tool__oversight", "person").annotate(uses=Count("covered"))
    return [grant for grant in counted[:MOST] if not _is_void(grant, grant.uses)]


def _is_void(grant: Grant, uses: int) -> bool:
    why = standing.why_void(grant) or (MISCOUNTED if grant.used != uses or not _was_given(grant) else None)
    if why is not None:
        giving.void(grant, why)
    return why is not None


def _was_given(grant: Grant) -> bool:
    """Return whether the grant was given with a yes of that person to that call."""
    yes = Decision.objects.filter(approval_id=grant.approval_id, verdict=Verdict.APPROVE, means__in=standing.MEANS)
    return yes.filter(person_id=grant.person_id).exists()


async def _holds(condition: str, arguments: dict[str, Any]) -> bool:
    try:
        return await policy.holds(condition, arguments)
    except policy.NoAnswer:
        return False


def hold(grants: Iterable[Grant]) -> None:
    """Hold the grants that these calls may use.

    Before several are recorded in one transaction: all, in the one order that everybody
    takes them in, so that two such transactions never wait for each other.
    """
    ids = {grant.pk for grant in grants}
    if ids:
        list(Grant.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))


def has_left(grants: Iterable[Grant]) -> bool:
    """Return whether one of them may still be used.

    Among what was held before, this stays so until the transaction ends.
    """
    ids = {grant.pk for grant in grants}
    return bool(ids) and Grant.objects.filter(standing.ACTIVE, pk__in=ids).exists()


def take(grants: Iterable[Grant], call: ToolCall) -> Grant | None:
    """Use up one call of the first of `grants` that has one left for `call`, which is about to be recorded in this same
    transaction; None if none has: then a person is asked.
    """
    for grant in grants:
        rows = Grant.objects.filter(standing.ACTIVE, standing.like(call), pk=grant.pk, seal=grant.seal)
        # Of two calls that want the last use, the second waits here for the first and finds nothing left.
        if rows.update(used=F("used") + 1) == 1:
            return Grant.objects.select_related("person").get(pk=grant.pk)
    return None


def record(grant: Grant, call: ToolCall) -> None:
    """Record that `call`, which was just recorded, runs on the grant."""
    data = {"grant": str(grant.pk), "used": grant.used, "calls": grant.calls}
    note(call.pk, "grant.used", actor=SYSTEM, data=data)
    if grant.calls == grant.used:
        note(call.pk, "grant.used_up", actor=SYSTEM, data=data)
    giving.tell(grant, call.conversation_id)
