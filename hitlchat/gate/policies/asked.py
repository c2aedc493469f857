"""The plain views of a call that the rules are asked about."""

import copy
from dataclasses import fields
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group
from django.utils import timezone

from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool
from hitlchat.gate.policies.remembering import approved_before
from hitlchat.gate.policies.rule import Rule
from hitlchat.gate.policies.views import CallView, Context, ToolView

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
