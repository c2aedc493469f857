"""Identical calls that wait at the same time in one conversation are one card, and have one answer (SR-41).

A yes is one to exactly one call: the others are withdrawn, and the model reads where the outcome is. A no declines all.
The others are answered once that decision is committed, each by a move of its own: where that is interrupted they wait
on, and none of them runs without a yes of its own.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.db.models import Count, QuerySet

from hitlchat.gate import decide, withdraw
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.deciders import NotEntitled
from hitlchat.gate.models import Approval, Decision, Verdict
from hitlchat.gate.status import Status
from hitlchat.gate.transition import call_moved


def listen() -> None:
    call_moved.connect(_on_move, dispatch_uid="joining")


def leads(rows: Iterable[Approval]) -> list[tuple[Approval, int]]:
    """Of waiting approvals those that get a card: of identical ones the first, with how many there are."""
    found: dict[str, list[Approval]] = {}
    for row in rows:
        found.setdefault(row.same or str(row.pk), []).append(row)
    return [(same[0], len(same)) for same in found.values()]


def times(waiting: Iterable[Approval]) -> dict[UUID, int]:
    """How often the call of each of these, which wait, is asked about; in one query for all of them."""
    rows = list(waiting)
    joined = Approval.objects.filter(
        same__in={row.same for row in rows if row.same},
        call__conversation_id__in={row.call.conversation_id for row in rows},
        call__status=Status.WAITING,
    )
    counts = dict(joined.order_by().values_list("same").annotate(Count("pk")))
    return {row.pk: counts.get(row.same, 1) for row in rows}


def twins(approval: Approval) -> list[Approval]:
    """The other waiting ones that are identical to this one, whatever became of it."""
    if not approval.same or approval.call.conversation_id is None:
        return []
    rows: QuerySet[Approval] = Approval.objects.select_related("call").filter(
        same=approval.same,
        call__caller_id=approval.call.caller_id,
        call__conversation_id=approval.call.conversation_id,
        call__status=Status.WAITING,
    )
    return list(rows.exclude(pk=approval.pk))


def _on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status not in (Status.APPROVED, Status.DECLINED):
        return
    approval = Approval.objects.select_related("call").filter(call_id=call_id).exclude(same="").first()
    others = twins(approval) if approval else []
    decision = _answer_to(approval, status) if approval and others else None
    if approval is None or decision is None:
        return
    for other in others:
        _answer(other, approval, decision)


def _answer_to(approval: Approval, status: Status) -> Decision | None:
    """Which brought it to this status. By its verdict: when people answer at once, times alone do not tell."""
    verdict = Verdict.APPROVE if status == Status.APPROVED else Verdict.DECLINE
    return approval.decisions.filter(verdict=verdict).order_by("decided_at").last()


def _answer(other: Approval, approval: Approval, decision: Decision) -> None:
    actor = Actor(decision.person_id, decision.means, decision.client, decision.token_name)  # type: ignore[arg-type]
    if decision.verdict == Verdict.APPROVE:
        changed = "" if decision.edited_arguments is None else " with other arguments"
        where = f"runs once, as {approval.call.model_call_id}; its outcome is there"
        why = f"the same call was approved{changed} and {where}"
        withdraw.withdraw_question(other.call_id, other.call.round, actor=actor, why=why)
        return
    # Answered otherwise in the same moment, which stands; or not theirs, or not yet, who came in after some time.
    with suppress(decide.AlreadySettled, decide.OtherDigest, decide.NoSuchApproval, NotEntitled):
        looked = Looked(decision.opened, decision.first_shown_at)
        decide.decline(other.pk, actor, reason=decision.reason, looked=looked)
