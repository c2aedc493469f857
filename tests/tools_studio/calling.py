"""Calling authored tools through the gate, as every test of what they can do needs it."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.sources import Preview, source
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import caller


def call(user: User, name: str, **arguments: Any) -> ToolCall:
    """The call once it is settled."""

    async def both() -> ToolCall:
        submitted = await submit(CallRequest(name, arguments, caller(user)))
        return await settled(submitted.pk, 20)

    return async_to_sync(both)()


def said(done: ToolCall) -> str:
    """The words of the error that a call ended with."""
    assert done.error is not None, done.result
    return str(done.error["message"])


def preview(tool: Tool, user: User, **arguments: Any) -> Preview | None:
    """What the tool's source says before anyone is asked."""
    offering: Any = source(tool.source)
    shown: Preview | None = async_to_sync(offering.preview)(Tool.objects.get(pk=tool.pk), arguments, caller(user))
    return shown
