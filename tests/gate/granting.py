"""Calls that run on a grant, and those that do not."""

from typing import Any

from django.contrib.auth.models import User

from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Grant, Tool, ToolCall, new_id
from hitlchat.gate.status import Status
from tests.gate.asking import ask, fresh, recording, say_yes

HERE = new_id()


def conditional(**columns: Any) -> Tool:
    """A tool that policies decide about, and that nothing allows."""
    return recording(mode="CONDITIONAL", **columns)


def granted(user: User, tool: Tool, arguments: Any = None, **scope: Any) -> Grant:
    """Given with the yes to a call in the conversation HERE, or in the one that is named."""
    where = scope.pop("conversation_id", HERE)
    call = ask(user, tool, arguments, conversation_id=where, kind=scope.pop("kind", "chat"))
    assert call.status == Status.WAITING
    say_yes(user, call, grant=Scope(**scope))
    return Grant.objects.get(approval__call=call)


def runs(user: User, tool: Tool, arguments: Any = None, **request: Any) -> bool:
    """Whether the like of it would run unasked, in HERE unless said otherwise; if so, it counts."""
    call = ask(user, tool, arguments, **{"conversation_id": HERE, **request})
    assert call.status in (Status.WAITING, Status.ALLOWED)
    return call.status == Status.ALLOWED


def again(grant: Grant) -> Grant:
    return Grant.objects.get(pk=grant.pk)


def covered(user: User, tool: Tool) -> ToolCall:
    """One that is allowed because of a grant and has not started."""
    call = ask(user, tool, conversation_id=HERE)
    assert call.status == Status.ALLOWED
    return fresh(call)
