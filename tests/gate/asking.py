"""Putting questions to the gate, and reading what became of them."""

import asyncio
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.gate import decide, perform
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Approval, AuditEvent, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import caller, signed_in
from tests.recorder import keep

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "amount": {"type": "integer", "default": 1}},
    "required": ["text"],
    "additionalProperties": False,
}


def recording(name: str = "refund", *, source: str = "recording", mode: str = "REQUIRED", **columns: Any) -> Tool:
    """A published tool whose source is one of tests/gate/sources_for_tests.py."""
    usual = {"input_schema": SCHEMA, "published": True, "definition_hash": "d" * 64, "risk_level": 2, "origin": "Tests"}
    return keep(Tool(**usual | {"name": name, "source": source, "hitl_mode": mode} | columns))


def ask(user: User, tool: Tool, arguments: Any = None, **request: Any) -> ToolCall:
    arguments = {"text": "hello"} if arguments is None else arguments
    request.setdefault("conversation_id", new_id())
    return async_to_sync(submit)(
        CallRequest(tool.name, arguments, caller(user, request.pop("kind", "chat")), **request)
    )


def ask_over_mcp(user: User, tool: Tool, *, attended: bool = True, token_name: str = "") -> ToolCall:
    """A call with a token of its own; `attended`: whose client an administrator trusts."""
    token = Token.objects.get(digest=hashed(Token.make(user, TokenKind.MCP, token_name)))
    mark(token.pk, attended=attended)
    caller = Caller("mcp", user.pk, user.get_username(), token.pk)
    return async_to_sync(submit)(CallRequest(tool.name, {"text": "hello"}, caller))


def mark(token_id: int | None, *, attended: bool) -> None:
    Token.objects.filter(pk=token_id or 0).update(attended=attended)


def word(call: ToolCall, user: User | None = None) -> Actor:
    """What the client says that made this call: that its user, or `user`, answered."""
    return Actor(call.caller_id if user is None else user.pk, "elicitation", client="an agent", token_id=call.token_id)


def approval_of(call: ToolCall) -> Approval:
    return Approval.objects.get(call=call)


def say_yes(user: User, call: ToolCall, **answer: Any) -> Approval:
    return decide.approve(approval_of(call).pk, signed_in(user), **answer)


def approved(user: User, tool: Tool, arguments: Any = None, **request: Any) -> ToolCall:
    call = ask(user, tool, arguments, **request)
    say_yes(user, call)
    return fresh(call)


def run(call: ToolCall) -> bool:
    """Claim and execute as a server would; False if there was nothing to claim."""
    claimed = async_to_sync(perform.start)(call.pk)
    if claimed is not None:
        async_to_sync(perform.execute)(claimed)
    return claimed is not None


def fresh(call: ToolCall) -> ToolCall:
    return ToolCall.objects.get(pk=call.pk)


def status(call: ToolCall) -> Status:
    return Status(fresh(call).status)


def events(call: ToolCall) -> list[str]:
    return list(AuditEvent.objects.filter(call=call).values_list("name", flat=True))


def leap() -> None:
    """Have the clock of the running loop leap by a minute, so that nobody waits for a time limit."""
    loop = asyncio.get_running_loop()
    later = loop.time() + 60
    vars(loop)["time"] = lambda: later
