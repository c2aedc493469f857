"""A made record of what people said to calls of a tool, and rules that are earned from it."""

from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate import earned, lab
from hitlchat.gate.models import Approval, Decision, Grant, PolicyDraft, Tool, ToolCall, Verdict, new_id
from hitlchat.gate.provenance import Heard
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import ask, recording

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "amount": {"type": "number"}, "note": {"type": "string"}},
    "required": ["order", "amount"],
    "additionalProperties": False,
}
# All of a conversation in which nobody has said anything: its values are the model's own.
NOTHING: Final = Heard.of([])


def refund(name: str = "refund", **columns: Any) -> Tool:
    return recording(name, **{"input_schema": SCHEMA} | columns)


def answered(
    user: User, tool: Tool, arguments: dict[str, Any], *, no: bool = False, days: int = 1, **more: Any
) -> ToolCall:
    """A call that somebody answered so many days ago, having read its card."""
    at = timezone.now() - timedelta(days=days)
    disclosure = {"arguments": arguments, "provenance": more.pop("provenance", [])}
    columns: dict[str, Any] = {"conversation_id": new_id(), "status": Status.DECLINED if no else Status.SUCCEEDED}
    columns |= {"source": tool.source, "definition_hash": tool.definition_hash}
    columns |= {"caller_kind": more.pop("kind", "chat")}
    answer: dict[str, Any] = {
        "verdict": Verdict.DECLINE if no else Verdict.APPROVE,
        "means": "session",
        "hurried": False,
    }
    answer |= {"first_shown_at": at} | {name: more.pop(name) for name in list(more) if hasattr(Decision, name)}
    call = ToolCall.objects.create(
        tool=tool,
        tool_name=tool.name,
        risk_level=tool.risk_level,
        arguments=arguments,
        caller=user,
        deadline=at,
        created_at=at,
        settled_at=at,
        **columns | more,
    )
    approval = Approval.objects.create(
        call=call, prompt=f"Run {tool.name} {arguments}", disclosure=disclosure, digest="d" * 64
    )
    Decision.objects.create(
        approval=approval, person=answer.pop("person", user), digest="d" * 64, decided_at=at, **answer
    )
    return call


def history(user: User, tool: Tool, many: int = 30, **more: Any) -> None:
    """Small refunds, all approved, three a day; what is higher than 39 was declined."""
    for number in range(many):
        answered(user, tool, {"order": f"A-{number}", "amount": 10 + number % 30}, days=1 + number // 3, **more)
    for amount in (40, 250, 900):
        answered(user, tool, {"order": "A-1", "amount": amount}, no=True)


def published(alice: User, tool: Tool, **parts: Any) -> Grant:
    """What is proposed for the tool, but for these `parts`, kept and published as a draft."""
    (found,) = [each for each in earned.proposals() if each.tool == tool]
    given = found.draft
    given["tools"][tool.name]["earned"] |= parts
    lab.publish(keep(alice, given).pk, signed_in(alice), "They were all approved.", confirmed=True)
    return Grant.objects.get(tool=tool, approval=None, end="")


def keep(alice: User, given: dict[str, Any], name: str = "Earned") -> PolicyDraft:
    PolicyDraft.objects.filter(name=name).delete()
    return lab.keep(given, signed_in(alice), name=name)


def small(user: User, tool: Tool, amount: float = 12, order: str = "B-7", **request: Any) -> ToolCall:
    """A call like those that were approved."""
    request.setdefault("heard", NOTHING)
    return ask(user, Tool.objects.get(pk=tool.pk), {"order": order, "amount": amount}, **request)
