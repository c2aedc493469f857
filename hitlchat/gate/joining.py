"""Identical calls that wait together: they have one card, with one deadline and one answer (SR-41)."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Count, QuerySet

from hitlchat.base.statements import compiled
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status


def leads(rows: Iterable[Approval]) -> list[tuple[Approval, int]]:
    """Return the waiting approvals that get a card: of identical ones the first, with how many there are."""
    found: dict[str, list[Approval]] = {}
    for row in rows:
        found.setdefault(row.same or str(row.pk), []).append(row)
    return [(same[0], len(same)) for same in found.values()]


def times(waiting: Iterable[Approval]) -> dict[UUID, int]:
    """Return how often the call of each of these, which wait, is asked about; in one query for all of them."""
    rows = list(waiting)
    joined = Approval.objects.filter(
        same__in={row.same for row in rows if row.same},
        call__conversation_id__in={row.call.conversation_id for row in rows},
        call__status=Status.WAITING,
    )
    counts = dict(joined.order_by().values_list("same").annotate(Count("pk")))
    return {row.pk: counts.get(row.same, 1) for row in rows}


def twins(approval: Approval) -> list[Approval]:
    """Return the other waiting approvals that are identical to this one, whatever became of it."""
    call = approval.call
    if not approval.same or call.conversation_id is None:
        return []
    return list(_twins(approval.pk, approval.same, call.caller_id, call.conversation_id))


@compiled
def _twins(approval_id: UUID, same: str, caller_id: int, conversation_id: UUID) -> QuerySet[Approval]:
    here = {"call__caller_id": caller_id, "call__conversation_id": conversation_id}
    rows = Approval.objects.select_related("call").filter(same=same, call__status=Status.WAITING, **here)
    return rows.exclude(pk=approval_id)
