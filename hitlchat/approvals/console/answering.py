"""Answers that are given at the console: by a person, as themselves, through the gate like all others."""

from uuid import UUID

from hitlchat.approvals.console import looking, showing
from hitlchat.approvals.console.facts import one_line
from hitlchat.gate import decide, deciders, quorum
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status

SHORTEST_DIGEST = 12
APPROVED = "Approved. A server performs it within a few seconds."
COUNTED = "Your yes counts. It runs once the others have said yes too."
DECLINED = "Declined. It does not run."
OTHER_DIGEST = "This is not the digest of the call that waits: show it again, and compare what it says now."

REFUSALS = (
    decide.NoSuchApproval,
    decide.AlreadySettled,
    decide.OtherDigest,
    deciders.NotEntitled,
    quorum.AlreadyCounted,
    decide.BadReason,
    looking.NobodyNamed,
)


def approve(approval_id: UUID, actor: Actor, digest: str) -> str:
    """Say yes to the call with this consent digest, whole or its first 12 characters or more; what comes of it, in
    words. What decide.py raises."""
    found = looking.approval(approval_id)
    matches = len(digest) >= SHORTEST_DIGEST and found.digest.startswith(digest.lower())
    # Whoever may not see it, or comes too late, is told that and not what is right or wrong about a digest.
    if not matches and deciders.sees(actor, found) and found.call.status == Status.WAITING:
        raise decide.OtherDigest(OTHER_DIGEST)
    decided = decide.approve(approval_id, actor, digest=found.digest if matches else digest)
    return COUNTED if decided.call.status == Status.WAITING else APPROVED


def require(found: Approval, actor: Actor) -> None:
    """That a yes of `actor` would count as things are. What decide.py raises."""
    if not deciders.sees(actor, found):
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    if found.call.status != Status.WAITING:
        raise decide.AlreadySettled(found.call)
    decide.require(actor, found)
    deciders.require(actor, found)


def decline(approval_id: UUID, actor: Actor, reason: str) -> str:
    """Say no; what comes of it, in words. What decide.py raises, BadReason."""
    decide.decline(approval_id, actor, reason=decide.checked_reason(reason))
    return DECLINED


def refusal(error: Exception) -> str:
    """Why an answer did not count; of one that came too late also who decided, and how."""
    if isinstance(error, decide.AlreadySettled):
        standing = Approval.objects.select_related("call").get(call=error.call)
        return f"{error} Your answer did not count. {showing.sentence(standing)}"
    return f"{one_line(str(error))} Nothing was decided."
