"""bob's inbox, and calls that wait in it."""

from typing import Any, Protocol

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from hitlchat.gate.models import Approval
from hitlchat.gate.submit import CallRequest, submit
from tests.chat.conftest import served, sign_in
from tests.conftest import MakeTool, caller
from tests.scripted_model import scripted_model

__all__ = ["scripted_model", "served", "sign_in"]


class Asked(Protocol):
    def __call__(self, user: User, text: str, kind: str = "chat", **more: Any) -> Approval: ...


@pytest.fixture
def asked(make_tool: MakeTool) -> Asked:
    """Asks somebody about a call of echo, as the gate itself does."""
    make_tool("echo", prompt_template="Say {args.text}")

    def asked(user: User, text: str, kind: str = "chat", **more: Any) -> Approval:
        return async_to_sync(submit)(CallRequest("echo", {"text": text}, caller(user, kind), **more)).approval

    return asked
