"""People with a say, and rules that give it to them."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from hitlchat.accounts import roles
from hitlchat.accounts.models import Role
from hitlchat.gate import disclosure, ruling
from hitlchat.gate.models import Approval, DecidedBy, Tool, ToolCall
from hitlchat.gate.oversight import Rules
from tests.conftest import PASSWORD, signed_in


def approver(name: str) -> User:
    user = User.objects.create_user(name, password=PASSWORD)
    roles.give(user, Role.APPROVER)
    return user


def members(group: Group, *names: str) -> list[User]:
    found = [User.objects.create_user(name, password=PASSWORD) for name in names]
    group.user_set.add(*found)
    return found


def rule(tool: Tool, alice: User, **rules: Any) -> None:
    """As alice sets it on its page."""
    if "group" in rules:
        rules.setdefault("decided_by", DecidedBy.GROUP)
    rules.setdefault("decided_by", DecidedBy.APPROVERS)
    ruling.change(tool, Rules(**rules), signed_in(alice), confirmed=True)


def escalated(call: ToolCall) -> None:
    """The time until others may decide too has passed, by the database's clock, also in what was shown of it."""
    at, approval = timezone.now() - timedelta(seconds=1), Approval.objects.get(call=call)
    approval.disclosure["whoDecides"]["escalatesAt"] = at.isoformat()
    approval.digest = disclosure.digest(approval.disclosure)
    approval.save()
    ToolCall.objects.filter(pk=call.pk).update(escalates_at=at)
