"""The source of agent tools: a call begins a conversation with one run, and ends with it."""

from collections.abc import Iterator
from functools import partial

from django.db import transaction
from django.utils.translation import gettext_noop

from hitlchat.agent import agents, routes, runner, runs
from hitlchat.agent.models import ACTIVE, AgentTool, Conversation, ModelEndpoint, Run
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import ToolCall, delegation
from hitlchat.gate.sources import CannotBegin

GONE = gettext_noop("the agent is gone")
CHANGED = gettext_noop("the agent is not as it was when the call was made")


class AgentSource:
    """Begins the run of an agent with its call, and ends it where the call is to stop."""

    can_stop = True

    def delegate(self, call: ToolCall) -> None:
        """Begin a conversation for `call`, in the transaction that starts it. Raises: CannotBegin."""
        agent = AgentTool.objects.select_related("tool", "endpoint").filter(tool=call.tool).first()
        if agent is None:
            raise CannotBegin(GONE)
        if agents.definition_hash(agent) != call.definition_hash:
            raise CannotBegin(CHANGED)
        endpoint, model = _model(agent, call)
        conversation = Conversation.objects.create(
            call=call,
            owner_id=call.caller_id,
            title=agent.tool.name,
            endpoint=endpoint,
            model=model,
            instructions=agent.instructions,
            tools=agents.allowed(agent),
            max_turns=agent.max_turns,
            token_budget=agent.max_tokens,
        )
        delegation.begin(call, conversation.pk)
        claim = runs.begin_task(conversation, str(call.arguments[agents.TASK]))
        transaction.on_commit(partial(runner.take_up, claim), robust=True)

    def recall(self, call: ToolCall, actor: Actor) -> None:
        """Stop the run that works for `call`, and with it all agents below."""
        for run in Run.objects.filter(conversation__call_id=call.pk, status__in=ACTIVE):
            runner.stop(run.pk, run.conversation_id, actor)

    def altered(self) -> Iterator[str]:
        """Yield a sentence for each agent that is kept otherwise than the hash of its tool says."""
        for agent in AgentTool.objects.select_related("tool", "endpoint"):
            if agents.definition_hash(agent) != agent.tool.definition_hash:
                yield translatable(f"The agent {agent.tool.name!r} is not as it was saved.")


def _model(agent: AgentTool, call: ToolCall) -> tuple[ModelEndpoint | None, str]:
    """Return what the agent asks: its own model, or that of the conversation that calls it."""
    if agent.own_model:
        return agent.endpoint, agent.model
    above = Conversation.objects.select_related("endpoint").filter(pk=call.conversation_id or call.pk).first()
    return (above.endpoint, above.model) if above is not None else (routes.default(), "")
