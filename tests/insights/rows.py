"""Calls that are over, as rows: what insights count, without the time that living through them would take."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate.models import Approval, Decision, ToolCall, Verdict
from hitlchat.gate.status import Status


def ran(user: User, tool: str, at: datetime | None = None, **columns: Any) -> ToolCall:
    """Without asking."""
    at = at or timezone.now()
    usual = {"caller": user, "caller_kind": "chat", "source": "studio", "risk_level": 1, "reason": "Not asked."}
    usual |= {"status": Status.SUCCEEDED, "created_at": at, "settled_at": at}
    return ToolCall.objects.create(**usual | {"tool_name": tool} | columns)


def asked(
    user: User, tool: str, status: str = Status.SUCCEEDED, at: datetime | None = None, **columns: Any
) -> Approval:
    at = at or timezone.now()
    call = ran(user, tool, at, status=status, deadline=at + timedelta(minutes=5), **columns)
    disclosure = {"prompt": f"Do {tool}", "arguments": {}, "tool": {"name": tool, "origin": "Tests"}}
    return Approval.objects.create(call=call, prompt=f"Do {tool}", disclosure=disclosure, digest="d" * 64)


def answered(
    user: User, tool: str, *, took: float | None = 20.0, no: bool = False, at: datetime | None = None, **columns: Any
) -> Decision:
    """Asked at `at`, and answered by the same person so many seconds after it was shown; None: nobody saw it shown."""
    approval = asked(user, tool, Status.DECLINED if no else Status.SUCCEEDED, at)
    decided = approval.call.created_at + timedelta(seconds=took or 0)
    return Decision.objects.create(
        approval=approval,
        person=user,
        verdict=Verdict.DECLINE if no else Verdict.APPROVE,
        means="session",
        digest=approval.digest,
        first_shown_at=None if took is None else approval.call.created_at,
        decided_at=decided,
        **columns,
    )
