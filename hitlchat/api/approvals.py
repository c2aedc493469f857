"""Approvals: the questions that wait for the signed-in person, and their answers."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Query, Router

from hitlchat.api import grants, schemas, shapes
from hitlchat.api.auth import ApiRequest, decider
from hitlchat.gate import attention, batch, decide, deciders, extending, taking_back
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

router = Router(tags=["approvals"], by_alias=True)

# Both bodies may be left out.
NOTHING_MORE = grants.Approve()
NO_REASON = schemas.Reject()
NOTHING_SEEN = schemas.Extend()


@router.get("", response=list[schemas.Approval])
def list_approvals(request: ApiRequest, wanted: Query[schemas.ApprovalFilter]) -> list[schemas.Approval]:
    """Return what waits for you, the oldest first; or what was answered, the latest first."""
    rows = _with_status(_mine(request), wanted.status)
    order = ["created_at", "id"] if wanted.status == "pending" else ["-created_at", "-id"]
    page = rows.order_by(*order)[wanted.offset : wanted.offset + wanted.limit]
    return shapes.approvals(page)


@router.get("/{uuid:approval_id}", response=schemas.Approval)
def read_approval(request: ApiRequest, approval_id: UUID) -> schemas.Approval:
    """Return it as the card shows it. For who may decide by this credential, it counts as shown."""
    found = get_object_or_404(_mine(request, [approval_id]), pk=approval_id)
    attention.shown(found, request.auth.actor)
    return shapes.approval(found)


@router.post("/{uuid:approval_id}/approve", response=grants.Approved | schemas.Approval)
def approve(request: ApiRequest, approval_id: UUID, body: grants.Approve = NOTHING_MORE) -> schemas.Approval:
    """Say yes to exactly this call, or to it with `modifiedArguments`; with a `grant`, also to calls like it.

    With `consentDigest`, only if the call that waits is the one you were shown.
    """
    actor = decider(request)
    scope = body.grant.scope if body.grant else None
    decide.approve(approval_id, actor, digest=body.consent_digest, edited=body.modified_arguments, grant=scope)
    standing = _standing(request, approval_id)
    return grants.approved(standing) if body.grant else standing


@router.post("/{uuid:approval_id}/reject", response=schemas.Approval)
def reject(
    request: ApiRequest, approval_id: UUID, given: Query[schemas.RejectQuery], body: schemas.Reject = NO_REASON
) -> schemas.Approval:
    """Say no. The model is told the reason, which may stand in the body or in the address; that of the body comes
    first.
    """
    decide.decline(approval_id, decider(request), reason=body.reason or given.reason)
    return _standing(request, approval_id)


@router.post("/{uuid:approval_id}/take-back", response=schemas.Approval)
def take_back(request: ApiRequest, approval_id: UUID) -> schemas.Approval:
    """Withdraw a call that you approved, as long as it has not started; 409 once it has."""
    taking_back.take_back_approval(approval_id, decider(request))
    return _standing(request, approval_id)


@router.post("/{uuid:approval_id}/extend", response=schemas.Approval)
def extend(request: ApiRequest, approval_id: UUID, body: schemas.Extend = NOTHING_SEEN) -> schemas.Approval:
    """Put the deadline off by five minutes, in the last minute of the question; 409 before. At most 30 days in all."""
    extending.extend(approval_id, decider(request), seen=body.deadline)
    return _standing(request, approval_id)


@router.post("/batch", response=schemas.BatchOutcomes)
def answer_together(request: ApiRequest, body: schemas.Batch) -> schemas.BatchOutcomes:
    """Answer several calls of one tool, all below L4. Each is a decision of its own; some may be settled already."""
    items = [batch.Item(item.id, item.consent_digest) for item in body.items]
    told = batch.answer(items, body.verdict, decider(request), reason=body.reason)
    rows = _mine(request, [outcome.approval for outcome in told])
    standing = dict(rows.values_list("pk", "call__status"))
    return schemas.BatchOutcomes(
        outcomes=[
            schemas.BatchOutcome(
                id=outcome.approval,
                counted=outcome.counted,
                detail=outcome.said,
                call_status=Status(standing[outcome.approval]),
            )
            for outcome in told
        ]
    )


def _mine(request: ApiRequest, among: Collection[UUID] | None = None) -> QuerySet[Approval]:
    return shapes.with_all(deciders.seen_by(request.auth.user.pk, among))


def _standing(request: ApiRequest, approval_id: UUID) -> schemas.Approval:
    return shapes.approval(get_object_or_404(_mine(request, [approval_id]), pk=approval_id))


def _with_status(rows: QuerySet[Approval], status: str) -> QuerySet[Approval]:
    if status == "all":
        return rows
    if status == "approved":
        return rows.exclude(call__status__in=shapes.QUESTION_ENDS)
    return rows.filter(call__status__in=[ours for ours, theirs in shapes.QUESTION_ENDS.items() if theirs == status])
