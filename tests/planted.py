"""Attention checks for tests: announced, read long ago, and built from a call that a person approved."""

from datetime import timedelta
from typing import Any, Final

from django.contrib.auth.models import User
from django.utils import timezone

from hitlchat.gate import planted
from hitlchat.gate.models import AnnouncementRead, AttentionCheck, Tool, ToolCall
from tests.conftest import signed_in
from tests.gate.asking import approved, recording

TEXT: Final = "We want to know whether cards are read."
REQUEST: Final = "Please refund 40 EUR to carol@example.com."
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "to": {"type": "string"}, "note": {"type": "string"}},
    "additionalProperties": False,
}
AS_ASKED: Final = {"amount": 40, "note": "Thank you."}


def paying(**columns: Any) -> Tool:
    usual = {"input_schema": SCHEMA, "prompt_template": "Refund {args.amount}"}
    return recording("pay", **usual | columns)


def paid(user: User, tool: Tool, arguments: Any = AS_ASKED, request: str = REQUEST, **more: Any) -> ToolCall:
    return approved(user, tool, arguments, user_prompt=request, **more)


def announced(by: User, *readers: User, days: int = 14, ago: int = 40) -> None:
    """Announced and read by these people so many days ago."""
    found = planted.announce(TEXT, days, signed_in(by))
    for each in readers:
        planted.read(found.pk, signed_in(each))
    AnnouncementRead.objects.update(at=timezone.now() - timedelta(days=ago))


def check_for(user: User, by: User) -> AttentionCheck:
    """Return the open check of `user`, announced by `by`."""
    paid(user, Tool.objects.filter(name="pay").first() or paying())
    announced(by, user)
    assert planted.arrive(user) is None
    found = planted.open_to(user.pk)
    assert found is not None
    return found
