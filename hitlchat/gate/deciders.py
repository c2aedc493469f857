"""Who may decide which approvals. The person on whose behalf the call was made, and nobody else."""

from django.conf import settings
from django.db.models import Q, QuerySet

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, CallerKind, Tool, ToolCall
from hitlchat.gate.status import Status

HIGHEST_RISK = 5


def may_decide(actor: Actor, call: ToolCall) -> bool:
    return actor.is_person and call.caller_id == actor.user_id


def may_answer(actor: Actor, approval: Approval) -> bool:
    """Whoever may decide; and an MCP client that says what its user said to a call of its own, if that will do."""
    call = approval.call
    if actor.means != "elicitation":
        return may_decide(actor, call)
    is_its_own = call.caller_id == actor.user_id and call.caller_kind == CallerKind.MCP
    return is_its_own and call.tool is not None and will_do(call.tool, approval)


def will_do(tool: Tool, asked: Approval | None = None) -> bool:
    """Whether the word of an MCP client is enough, both by what holds for `tool` now and by what held when it was
    `asked`; else a signed-in person decides."""
    if tool.signed_in_only or tool.risk_level > settings.HITL_ELICITATION_MAX_RISK:
        return False
    if asked is None:
        return True
    shown = asked.disclosure
    # Questions from before there was the setting say nothing of it.
    if shown.get("signedInOnly"):
        return False
    risk = max(asked.call.risk_level, int(shown.get("risk", HIGHEST_RISK)))
    return risk <= settings.HITL_ELICITATION_MAX_RISK


def what_signed_in_only_means() -> str:
    """The setting of a tool, for whoever sets it."""
    most = settings.HITL_ELICITATION_MAX_RISK
    always = f" Above L{most} it is always so." if most < HIGHEST_RISK else ""
    return f"An MCP client cannot say yes for its user: it sends them to a page of this server.{always}"


def still_may_answer(actor: Actor) -> Q:
    """Of the row of a call, in the very moment that it is moved: the setting may have been changed since it was read.

    Without a join: on PostgreSQL whatever an UPDATE finds by a join is not looked at again after waiting for a lock.
    """
    if actor.means != "elicitation":
        return Q()
    enough = Tool.objects.filter(signed_in_only=False, risk_level__lte=settings.HITL_ELICITATION_MAX_RISK)
    return Q(tool_id__in=enough.values("pk"))


def seen_by(user_id: int) -> QuerySet[Approval]:
    """The approvals this person may look at and decide, waiting or settled."""
    return Approval.objects.select_related("call").filter(call__caller_id=user_id)


def waiting_for(user_id: int) -> QuerySet[Approval]:
    return seen_by(user_id).filter(call__status=Status.WAITING)
