"""Agents within agents, as rows: for whom a conversation calls, which agents it may begin, and how its run ends a call.

A call of an agent tool is a conversation of its own with one run. Both begin in one transaction with the call, and
what ends the run ends the call in one transaction, too: so neither is ever lost or done twice, and the run that called
waits, as for any call, in the database alone.
"""

from typing import Any, Final
from uuid import UUID

from django.conf import settings

from hitlchat.agent.models import Conversation, Message, Role, Run, RunStatus
from hitlchat.base.sentences import translatable
from hitlchat.gate import perform
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool, ToolCall, delegation
from hitlchat.gate.results import NOT_EXECUTED
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import STARTED, Status
from hitlchat.gate.tools import AGENT

INSTRUCTIONS: Final = (
    "\n\nYou are the agent {name}. Another assistant called you with a task, which is your first message. You cannot "
    "talk with whoever called you: when you are done, answer with one final message, which is the result of that call. "
    "Say in it what was done and what was not. These are your instructions:\n{said}"
)
MOST_NAMED: Final = 20


def caller_of(conversation: Conversation) -> Caller:
    """Return on whose behalf its model calls tools: an agent's on behalf of whoever called the agent."""
    owner, call = conversation.owner, conversation.call
    # The database has the same words.
    kind: Any = "chat" if call is None else call.caller_kind
    return Caller(kind, owner.pk, owner.get_username(), None if call is None else call.token_id)


def why_not(run: Run, tool: Tool) -> str:
    """Return why the run may not begin this agent; empty if it may.

    Within the transaction that holds the run and puts its calls on record one after another.
    """
    above = delegation.steps(run.conversation_id)
    if any(row.call.tool_id == tool.pk for row in above):
        chain = " → ".join([*(row.call.tool_name for row in reversed(above)), tool.name])
        return translatable(
            f"{tool.name} is already working further up ({chain}): an agent cannot call itself, directly or "
            "through others."
        )
    if len(above) >= settings.AGENT_DEPTH:
        return translatable(
            f"Agents may be nested {settings.AGENT_DEPTH} deep here, and this one is already at that depth."
        )
    turns = Message.objects.filter(run_id=run.pk, role=Role.ASSISTANT).values("pk")
    # Calls that did not come to pass begin no agent.
    begun = ToolCall.objects.filter(turn_id__in=turns, source=AGENT).exclude(status__in=NOT_EXECUTED).count()
    if begun >= settings.AGENT_FAN_OUT:
        return translatable(f"One run may start {settings.AGENT_FAN_OUT} agents here, and this run already has.")
    return ""


def conclude(run_id: UUID) -> None:
    """End the call of the agent tool that the run worked for, if it did, within the transaction that ends the run."""
    run = Run.objects.filter(pk=run_id, conversation__call__isnull=False).select_related("conversation").first()
    if run is None:
        return
    if run.status == RunStatus.DONE:
        answers = Message.objects.filter(run=run, role=Role.ASSISTANT).order_by("-seq")
        text = answers.values_list("content", flat=True).first()
        result = ToolResult(value=text or "The agent ended without saying anything.")
    elif run.status == RunStatus.STOPPED:
        result = ToolResult.failure("stopped", f"The agent was stopped before it finished. {_what_ran(run)}")
    else:
        result = ToolResult.failure("agent", f"The agent did not finish: {run.error} {_what_ran(run)}")
    assert run.conversation.call_id is not None
    perform.conclude(run.conversation.call_id, result)


def _what_ran(run: Run) -> str:
    """Say which calls it and those below it ran, so that nobody has them run again unawares."""
    rows = ToolCall.objects.filter(conversation_id__in=delegation.family(run.conversation_id), status__in=STARTED)
    ran = list(rows.exclude(source=AGENT).order_by("created_at").values_list("tool_name", "status")[: MOST_NAMED + 1])
    if not ran:
        return "None of its calls was run."
    named = [f"{name} ({Status(status).label.lower()})" for name, status in ran[:MOST_NAMED]]
    return f"The calls it made before that stand: {', '.join([*named, *(['…'] if len(ran) > MOST_NAMED else [])])}."
