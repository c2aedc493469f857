"""Where the calls of a session stand on record: the page on which their user, signed in, decides or sees who did."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet
from django.urls import reverse

from hitlchat.accounts.models import hashed
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status
from hitlchat.mcp_server.inspector.exchanges import Call
from hitlchat.mcp_server.inspector.session import Session


@dataclass(frozen=True)
class Made:
    """A call, and the path of its approval's page; empty if nobody is asked there. `waits`: someone still is."""

    call: Call
    record: str = ""
    waits: bool = False


def of(session: Session, calls: list[Call]) -> list[Made]:
    asked = {question.call.number for question in list(session.acting.questions.values()) if question.call}
    going = {call.number for call in calls if call.task is not None}
    # Only the result says which call on record it is; till then it is one of the same token that waits.
    by_tool = {
        row.call.tool_name: row for row in _waiting(session, [c.tool for c in calls if c.number in going - asked])
    }
    by_call: dict[UUID | None, Approval] = {row.call_id: row for row in _known(session, calls)}
    found = [by_tool.get(call.tool) if call.number in going else by_call.get(call.call_id) for call in calls]
    return [_made(call, approval) for call, approval in zip(calls, found, strict=True)]


def _made(call: Call, approval: Approval | None) -> Made:
    if approval is None:
        return Made(call)
    return Made(call, reverse("approval", args=[approval.pk]), approval.call.status == Status.WAITING)


def _known(session: Session, calls: list[Call]) -> QuerySet[Approval]:
    own = Approval.objects.filter(call__caller_id=session.wish.owner_id).select_related("call")
    return own.filter(call_id__in=[call.call_id for call in calls if call.call_id])


def _waiting(session: Session, tools: list[str]) -> QuerySet[Approval]:
    own = Approval.objects.filter(call__caller_id=session.wish.owner_id).select_related("call")
    same_token = own.filter(call__mcp__token__digest=hashed(session.wish.token.secret))
    return same_token.filter(call__status=Status.WAITING, call__tool_name__in=tools).order_by("call__created_at")
