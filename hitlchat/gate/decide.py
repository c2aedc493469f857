"""A person's answer to an approval: exactly one outcome is recorded, the others are told so."""

from typing import Any, NoReturn
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from hitlchat.gate import canonical, disclosure, policy, schema
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.deciders import may_answer, still_may_answer
from hitlchat.gate.grants import giving
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Approval, Decision, Grant, ToolCall, Verdict
from hitlchat.gate.status import Status
from hitlchat.gate.storable import storable
from hitlchat.gate.transition import StaleCall, move

LONGEST_REASON = 500
NOT_YOURS = "There is no approval with this id for you to decide."
LOOK_AGAIN = "The call that is waiting is not the one that was shown. Reload and look again."
# The database's clock judges, so that a late yes is refused even if no sweeper ran and clocks differ.
IN_TIME = Q(deadline__gt=Now())


class NoSuchApproval(LookupError):
    """There is none with this id, or it is not this person's to decide: both look the same from outside."""


class AlreadySettled(Exception):
    """The question has its outcome; `call` holds it."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"This call has its outcome already: {Status(call.status).label.lower()}.")
        self.call = call


class OtherDigest(ValueError):
    """The person consented to something else than what is waiting."""


class BadEdit(ValueError):
    """The edited arguments can't be approved; the message says why."""


def approve(
    approval_id: UUID,
    actor: Actor,
    *,
    digest: str | None = None,
    edited: dict[str, Any] | None = None,
    grant: Scope | None = None,
) -> Approval:
    """Say yes to exactly this call, or to it with `edited` arguments; with a `grant`, also to calls like it.

    NoSuchApproval, AlreadySettled, BadEdit, BadGrant. OtherDigest: `digest` is not the waiting one's, or missing
    although the call was asked about more than once.
    """
    approval = _theirs(approval_id, actor)
    decision = _decision(approval, actor, Verdict.APPROVE)
    # Once it was asked about again, an answer that does not say to what it is one may be a late one to the first time.
    if digest != approval.digest and (digest is not None or approval.call.round > 1):
        raise OtherDigest(LOOK_AGAIN)
    columns: dict[str, Any] = {}
    if edited is not None and not _same(edited, approval.call.arguments):
        columns["arguments"], _ = checked(edited, approval.call)
        decision.edited_arguments = columns["arguments"]
        assert approval.call.tool is not None
        shown = disclosure.with_edit(approval.disclosure, columns["arguments"], approval.call.tool)
        decision.digest = disclosure.digest(shown)
    runs: Any = columns.get("arguments", approval.call.arguments)
    given = giving.planned(approval, grant, actor, runs) if grant is not None else None
    return _decide(approval, decision, Status.APPROVED, actor, columns, given=given)


def decline(approval_id: UUID, actor: Actor, *, reason: str = "") -> Approval:
    """Say no. `reason` reaches the model as data. NoSuchApproval, AlreadySettled; OtherDigest: asked again just now."""
    approval = _theirs(approval_id, actor)
    decision = _decision(approval, actor, Verdict.DECLINE)
    decision.reason = storable(reason).strip()[:LONGEST_REASON]
    return _decide(approval, decision, Status.DECLINED, actor, {})


def _theirs(approval_id: UUID, actor: Actor) -> Approval:
    found = Approval.objects.select_related("call__tool").filter(pk=approval_id).first()
    if found is None or not may_answer(actor, found):
        raise NoSuchApproval(NOT_YOURS)
    if found.call.status != Status.WAITING:
        raise AlreadySettled(found.call)
    return found


def _decision(approval: Approval, actor: Actor, verdict: Verdict) -> Decision:
    if actor.user_id is None:
        raise NoSuchApproval("Only a person can decide.")
    return Decision(
        approval=approval,
        person_id=actor.user_id,
        round=approval.call.round,
        verdict=verdict,
        means=actor.means,
        client=actor.client,
        token_name=actor.token,
        digest=approval.digest,
    )


def _decide(
    approval: Approval,
    decision: Decision,
    to: Status,
    actor: Actor,
    columns: dict[str, Any],
    *,
    given: Grant | None = None,
) -> Approval:
    data = {"approval": str(approval.pk), "digest": decision.digest, "reason": decision.reason}
    if decision.edited_arguments is not None:
        data["edited"] = decision.edited_arguments
    try:
        with transaction.atomic():
            move(approval.call, to, actor=actor, only_if=IN_TIME & still_may_answer(actor), data=data, **columns)
            decision.save(force_insert=True)
            if given is not None:
                giving.give(given, actor)
    except StaleCall:
        _too_late(approval, actor)
    return approval


def _too_late(approval: Approval, actor: Actor) -> NoReturn:
    call = ToolCall.objects.get(pk=approval.call_id)
    if call.status == Status.WAITING and not expire(call):
        call = ToolCall.objects.get(pk=call.pk)
    if call.status == Status.WAITING:
        _theirs(approval.pk, actor)
        raise OtherDigest(LOOK_AGAIN)
    raise AlreadySettled(ToolCall.objects.get(pk=call.pk))


def expire(call: ToolCall) -> bool:
    """Close a waiting call whose deadline has passed by the database's clock; False if it was closed otherwise."""
    try:
        move(call, Status.EXPIRED, actor=SYSTEM, only_if=~IN_TIME)
    except StaleCall:
        return False
    return True


def expire_overdue() -> int:
    """Close what nobody answered in time; at most 500 at once."""
    overdue = ToolCall.objects.filter(status=Status.WAITING, deadline__lte=Now())[:500]
    return sum(expire(call) for call in overdue)


def _same(edited: dict[str, Any], arguments: dict[str, Any]) -> bool:
    """As text: to Python, `1`, `1.0` and `True` would be equal."""
    try:
        return canonical.dumps(edited) == canonical.dumps(arguments)
    except canonical.NotJson as error:
        raise BadEdit(f"The arguments are not valid JSON: {error}.") from error


def checked(edited: dict[str, Any], call: ToolCall) -> tuple[dict[str, Any], str]:
    """What would run instead, with the defaults, and what the policies say of it, in a sentence. BadEdit."""
    if call.tool is None:
        raise BadEdit("The tool was deleted.")
    try:
        schema.validate(call.tool.input_schema, edited)
    except schema.BadArguments as error:
        raise BadEdit(str(error)) from error
    arguments = schema.with_defaults(call.tool.input_schema, edited)
    caller = disclosure.caller_of(call.approval.disclosure)
    verdict = async_to_sync(policy.judge)(call.tool, arguments, caller, call.conversation_id).verdict
    if isinstance(verdict, policy.Refuse):
        raise BadEdit(verdict.reason)
    return arguments, verdict.reason
