"""What the rules are told about a call, and whether this was approved before."""

import copy
from dataclasses import fields
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.gate import oversight
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall, Verdict
from hitlchat.gate.policies.rule import CallView, Context, Rule, ToolView
from hitlchat.gate.status import Status

# The latest ones: what was approved longer ago is asked about again.
LOOKED_THROUGH = 1000
SIGNED_IN = ("session", "token", "console")


def approved_before(tool: Tool, arguments: dict[str, Any], user_id: int) -> bool:
    """Whether that person said yes, signed in, to a call of `tool` as it is now, from where it is now, with exactly
    `arguments`, and the call succeeded."""
    wanted = canonical.dumps(arguments)
    rows = ToolCall.objects.filter(
        # What was enough for a yes once need not be enough now.
        oversight.stands(),
        caller_id=user_id,
        tool_id=tool.pk,
        tool_name=tool.name,
        source=tool.source,
        definition_hash=tool.definition_hash,
        status=Status.SUCCEEDED,
        approval__isnull=False,
    ).select_related("approval")
    return any(
        canonical.dumps(row.arguments) == wanted and _is_from(row, tool) and _said_yes(row, user_id)
        for row in rows.order_by("-created_at", "-id")[:LOOKED_THROUGH].iterator()
    )


def _is_from(row: ToolCall, tool: Tool) -> bool:
    shown: Any = row.approval.disclosure
    asked = shown.get("tool", {})
    return (asked.get("id"), asked.get("origin")) == (str(tool.pk), tool.origin)


def _said_yes(row: ToolCall, user_id: int) -> bool:
    answers = row.approval.decisions.filter(person_id=user_id, round=row.round)
    return answers.filter(verdict=Verdict.APPROVE, means__in=SIGNED_IN).exists()


View = tuple[CallView, ToolView, Context]


def view(
    rules: tuple[Rule, ...], tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None
) -> View:
    """Reads the person's groups from the database."""
    named = frozenset(name for rule in rules for name in rule.groups)
    own = Group.objects.filter(user=caller.user_id).values_list("name", flat=True)
    call = CallView(
        tool_name=tool.name,
        arguments=copy.deepcopy(arguments),
        caller_kind=caller.kind,
        user_id=caller.user_id,
        user_name=caller.user_name,
        groups=frozenset(own),
        conversation_id=conversation_id,
    )
    known = frozenset(Group.objects.filter(name__in=named).values_list("name", flat=True)) if named else frozenset()
    before = partial(approved_before, tool, call.arguments, caller.user_id)
    return call, of_tool(tool), Context(timezone.now(), before, known)


def of_tool(tool: Tool) -> ToolView:
    return ToolView(**{field.name: getattr(tool, field.name) for field in fields(ToolView)})
