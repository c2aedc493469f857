"""Agent tools: what authors say of one, what may be wrong with it, every change, and how a call of it is performed.

Whatever an agent is told, may use and asks is in the definition of its tool: a change withdraws what waits, and no yes
or grant from before it counts.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.agent import limits, routes, runner, runs
from hitlchat.agent.administering import BadDraft, NameTaken
from hitlchat.agent.endpoints import ENVIRONMENT
from hitlchat.agent.models import ACTIVE, AgentTool, Conversation, Run
from hitlchat.base import canonical, database
from hitlchat.base.database import after_commit
from hitlchat.base.problems import Forbidden, NotFound, required
from hitlchat.base.sentences import translatable
from hitlchat.gate import loosening, policy, prompt, spec, stopping, tools
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import TOOL_NAME, HitlMode, Tool, ToolCall, delegation
from hitlchat.gate.oversight import HIGHEST_RISK
from hitlchat.gate.sources import CannotBegin
from hitlchat.gate.tools import AGENT

# The one argument of an agent.
TASK: Final = "task"
LONGEST_TASK: Final = 20_000
INPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        TASK: {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_TASK,
            "description": "The task for the agent, with everything it needs to know: it reads nothing else of this "
            "conversation.",
        }
    },
    "required": [TASK],
    "additionalProperties": False,
}
ORIGIN: Final = gettext_noop("An agent: its calls are checked and need approval individually.")
DEFAULT_PROMPT: Final = "Have the agent {toolName} work on “{args.task}”"
LONGEST: Final = {"description": 4000, "instructions": 10_000, "model": 200}
MOST_TOOLS: Final = 200
MOST_TOKENS: Final = 1_000_000_000
USUAL_RISK: Final = 2
TAKEN = gettext_noop("There is already a tool with this name.")
GONE = gettext_noop("the agent is gone")
CHANGED = gettext_noop("the agent was changed since the call was made")


class OnlyAuthors(Forbidden):
    sentence = gettext_noop("Only people who may write tools can set up agents: sign in, or use an approver token.")


@dataclass(frozen=True)
class Draft:
    """An agent as its author has it. `endpoint` None: it asks the model of the conversation that calls it."""

    name: str
    instructions: str = ""
    title: str = ""
    description: str = ""
    tools: tuple[str, ...] = ()
    endpoint: str | None = None
    model: str = ""
    max_turns: int | None = None
    max_tokens: int | None = None
    hitl_mode: str = HitlMode.REQUIRED.value
    condition: str = ""
    prompt_template: str = ""
    deadline_seconds: int | None = None
    signed_in_only: bool = False
    risk_level: int = USUAL_RISK
    published: bool = False


FIELDS: Final = tuple(Draft.__dataclass_fields__)
# Those of them that the gate's row has as they are.
_PLAIN: Final = tuple(name for name in FIELDS if name in spec.WATCHED)
_WRITTEN: Final = (*_PLAIN, "facts", "definition_hash", "input_schema", "origin")


def rows() -> QuerySet[AgentTool]:
    return AgentTool.objects.select_related("tool", "endpoint").order_by("tool__name")


def draft_of(agent: AgentTool) -> Draft:
    endpoint = ENVIRONMENT if agent.endpoint is None else agent.endpoint.name
    return Draft(
        **{name: getattr(agent.tool, name) for name in _PLAIN},
        instructions=agent.instructions,
        tools=tuple(agent.tools),
        endpoint=endpoint if agent.own_model else None,
        model=agent.model,
        max_turns=agent.max_turns,
        max_tokens=agent.max_tokens,
    )


def definition_hash(agent: AgentTool) -> str:
    """Hash everything that makes the agent do what it does, or that a model is told of it."""
    return canonical.sha256(
        {
            "source": AGENT,
            "name": agent.tool.name,
            "description": agent.tool.description,
            "input": agent.tool.input_schema,
            "instructions": agent.instructions,
            "tools": agent.tools,
            "model": [agent.own_model, str(agent.endpoint_id), agent.model],
            "limits": [agent.max_turns, agent.max_tokens],
        }
    )


# -- What may be wrong -------------------------------------------------------------------------------------------------


def problems(draft: Draft) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, wrong in (*_of_fields(draft), *_of_tools(draft), *_of_model(draft), *_of_gate(draft)):
        found.setdefault(field, wrong)
    return found


def _of_fields(draft: Draft) -> Iterator[tuple[str, str]]:
    try:
        TOOL_NAME(draft.name)
    except ValidationError as error:
        yield "name", error.messages[0]
    for name, most in LONGEST.items():
        if wrong := spec.wrong_text(getattr(draft, name), most):
            yield name, wrong
    if not draft.instructions.strip():
        yield "instructions", gettext_noop("Describe what the agent does, and how.")
    if not draft.description.strip():
        yield "description", gettext_noop("Give a purpose: models read it to know when to call the agent.")
    for name, most in (("max_turns", limits.MOST_TURNS), ("max_tokens", MOST_TOKENS)):
        value = getattr(draft, name)
        if value is not None and not 1 <= value <= most:
            yield name, translatable(f"Expected a whole number from 1 to {most:,}.")


def _of_tools(draft: Draft) -> Iterator[tuple[str, str]]:
    if len(draft.tools) > MOST_TOOLS:
        yield "tools", translatable(f"Expected at most {MOST_TOOLS} tools.")
        return
    if draft.name in draft.tools:
        yield "tools", gettext_noop("An agent cannot call itself.")
    there = set(tools.listed().filter(name__in=draft.tools).values_list("name", flat=True))
    if missing := next((name for name in draft.tools if name not in there and name != draft.name), None):
        yield "tools", translatable(f"There is no tool named {missing[:64]!r}.")


def _of_model(draft: Draft) -> Iterator[tuple[str, str]]:
    if draft.endpoint is None:
        if draft.model:
            yield "model", gettext_noop("Choose an endpoint, or leave this empty.")
        return
    try:
        routes.columns(draft.endpoint, draft.model)
    except routes.NotOffered as error:
        yield from error.errors.items()


def _of_gate(draft: Draft) -> Iterator[tuple[str, str]]:
    yield from spec.problems(draft)
    if not 0 <= draft.risk_level <= HIGHEST_RISK:
        yield "risk_level", translatable(f"Expected a level from 0 to {HIGHEST_RISK}.")
    if wrong := policy.misread_condition(draft.condition, INPUT_SCHEMA):
        yield "condition", wrong
    try:
        prompt.check(draft.prompt_template, INPUT_SCHEMA["properties"])
    except prompt.BadTemplate as error:
        yield "prompt_template", str(error)


def create(draft: Draft, actor: Actor, *, confirmed: bool = False) -> AgentTool:
    """Add an agent tool; on record. Under a name that another tool had it asks at least as much as that one.

    `confirmed`: a person said that it may run unseen. Raises: BadDraft, NameTaken, OnlyAuthors, NotConfirmed.
    """
    _require(actor)
    agent = _made(draft, Tool(), actor)
    guard = tools.inherited(draft.name, loosening.guard_of(agent.tool))
    loosening.require(draft.name, loosening.weaker_from_start(draft.name, guard), confirmed=confirmed)
    with database.unique(NameTaken({"name": TAKEN})):
        tools.add(agent.tool, actor)
        agent.save(force_insert=True)
    return agent


def change(name: str, draft: Draft, actor: Actor, *, confirmed: bool = False) -> AgentTool:
    """Change an agent; on record. What waits about what it was is withdrawn.

    `confirmed`: a person said that it may ask less. Raises: BadDraft, NameTaken, OnlyAuthors, NotFound, NotConfirmed.
    """
    _require(actor)
    with database.unique(NameTaken({"name": TAKEN})):
        before = _locked(name)
        name, guard = before.tool.name, loosening.guard_of(before.tool)
        agent = _made(draft, before.tool, actor)
        weaker = loosening.weaker(guard, loosening.guard_of(agent.tool))
        weaker += loosening.weaker_name(draft.name, before.pk) if draft.name != name else ()
        loosening.require(name, weaker, confirmed=confirmed)
        tools.change(before.pk, {name: getattr(agent.tool, name) for name in _WRITTEN}, actor)
        agent.save(force_update=True)
        _withdraw(before.tool, agent.tool, actor)
    return rows().get(pk=before.pk)


def remove(name: str, actor: Actor) -> None:
    """Delete an agent; on record. What waits for an answer is withdrawn, and what works already goes on.

    Raises: NotFound, OnlyAuthors.
    """
    _require(actor)
    with transaction.atomic():
        agent = _locked(name)
        stopping.withdraw_tool(agent.pk, actor=actor, why=gettext_noop("the agent was deleted"))
        tools.remove([agent.tool], actor)


class AgentSource:
    """Begins a conversation with one run for a call, and ends it where the call is to stop."""

    can_stop = True

    def hold(self, tools: Collection[UUID]) -> None:
        """Lock nothing: a change of an agent begins with the row of its tool."""

    def configure(self, tool: UUID, settings: Mapping[str, Any], actor: Actor) -> None:
        agent = rows().get(pk=tool)
        change(agent.tool.name, replace(draft_of(agent), **settings), actor, confirmed=True)

    def outside(self, tools: set[UUID]) -> set[UUID]:
        # An agent passes on what it has read, wherever that came from.
        return tools

    def delegate(self, call: ToolCall) -> None:
        """Begin a conversation for `call`, in the transaction that starts it. Raises: CannotBegin."""
        agent = required(rows().filter(tool=call.tool).first(), CannotBegin(GONE))
        if definition_hash(agent) != call.definition_hash:
            raise CannotBegin(CHANGED)
        endpoint, model = agent.endpoint, agent.model
        if not agent.own_model:
            above = Conversation.objects.select_related("endpoint").filter(pk=call.conversation_id or call.pk).first()
            endpoint, model = (routes.default(), "") if above is None else (above.endpoint, above.model)
        conversation = Conversation.objects.create(
            call=call,
            owner_id=call.caller_id,
            title=agent.tool.name,
            endpoint=endpoint,
            model=model,
            instructions=agent.instructions,
            tools=list(agent.tools),
            max_turns=agent.max_turns,
            token_budget=agent.max_tokens,
        )
        delegation.begin(call, conversation.pk)
        claim = runs.begin_task(conversation, str(call.arguments[TASK]))
        after_commit(runner.start, claim)

    def recall(self, call: ToolCall, actor: Actor) -> None:
        """Stop the run that works for `call`, and with it all agents below."""
        for run in Run.objects.filter(conversation__call_id=call.pk, status__in=ACTIVE):
            runner.stop(run.pk, run.conversation_id, actor)

    def altered(self) -> Iterator[str]:
        """Yield a sentence for each agent that is kept otherwise than the hash of its tool says."""
        for agent in rows():
            if definition_hash(agent) != agent.tool.definition_hash:
                yield translatable(f"The agent {agent.tool.name!r} does not match its saved definition.")


def _require(actor: Actor) -> User:
    user = actor.person
    if user is None or not may_author(user):
        raise OnlyAuthors
    return user


def _locked(name: str) -> AgentTool:
    found = Tool.objects.select_for_update(of=("self",)).filter(name=name, source=AGENT).first()
    agent = rows().filter(pk=found.pk).first() if found is not None else None
    return required(agent, NotFound(gettext_noop("There is no agent with this name.")))


def _made(draft: Draft, before: Tool, actor: Actor) -> AgentTool:
    """Return the agent that the draft describes, on the row of `before`, not stored yet. Raises: BadDraft."""
    errors = problems(draft)
    if (
        draft.risk_level >= HIGHEST_RISK
        and draft.hitl_mode != HitlMode.REQUIRED
        and not may_administer(_require(actor))
    ):
        errors |= {"hitl_mode": gettext_noop("Only an administrator may let a tool of level L5 run without asking.")}
    if errors:
        raise BadDraft(errors)
    route = {} if draft.endpoint is None else routes.columns(draft.endpoint, draft.model)
    tool = Tool(id=before.pk, **{name: getattr(draft, name) for name in _PLAIN})
    tool.source, tool.origin, tool.input_schema = AGENT, ORIGIN, INPUT_SCHEMA
    tool.prompt_template = draft.prompt_template or DEFAULT_PROMPT
    # What the agent can reach, for the person who decides.
    may_call = translatable(f"It can call {', '.join(draft.tools)}.")
    tool.facts = [may_call if draft.tools else gettext_noop("It can call no tools.")]
    agent = AgentTool(
        tool=tool,
        instructions=draft.instructions,
        tools=list(dict.fromkeys(draft.tools)),
        own_model=draft.endpoint is not None,
        max_turns=draft.max_turns,
        max_tokens=draft.max_tokens,
        **route,
    )
    tool.definition_hash = definition_hash(agent)
    return agent


def _withdraw(before: Tool, after: Tool, actor: Actor) -> None:
    """Withdraw what was asked or let run before it became another one."""
    if (before.definition_hash, before.risk_level) != (after.definition_hash, after.risk_level):
        stopping.withdraw_tool(before.pk, actor=actor, why=gettext_noop("the agent was changed"))
    elif before.published and not after.published:
        stopping.withdraw_tool(before.pk, actor=actor, why=gettext_noop("the tool was unpublished"))
    elif (before.hitl_mode, before.condition) != (after.hitl_mode, after.condition):
        stopping.withdraw_allowed(before.pk, actor=actor, why=gettext_noop("the rule that allowed it was changed"))
