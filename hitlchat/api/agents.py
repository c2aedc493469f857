"""Agent tools: kept by authors, called like any tool; what they call is judged and asked about by itself."""

from dataclasses import replace

from django.shortcuts import get_object_or_404
from ninja import Router
from pydantic import Field

from hitlchat.agent import agents
from hitlchat.agent.agents import Draft
from hitlchat.agent.models import AgentTool
from hitlchat.api.auth import ApiRequest, author, only_after
from hitlchat.api.contract import Body, HitlModeName, Line, Object, Shape, Text, examples

router = Router(tags=["agents"], by_alias=True)
router.add_decorator(only_after(author))


class AgentChange(Body):
    """Every field that an author decides; one that is left out stays as it is."""

    name: Text = ""
    title: Text = ""
    description: Text = Field(default="", description="Models read this to know when to call the agent.")
    instructions: Text = ""
    tools: list[Line] = Field(default_factory=list, description="Names of tools it may call, agents included.")
    endpoint: Line | None = Field(
        default=None, description="The endpoint's name, or “environment”; null: that of the calling conversation."
    )
    model: Line = Field("", description="A model that the endpoint offers; empty: the endpoint's default.")
    max_turns: int | None = Field(None, description="Turns after which the agent is stopped: 1 to 100.")
    max_tokens: int | None = Field(None, description="Token limit for one task, as the model server counts.")
    hitl_mode: HitlModeName = "REQUIRED"
    condition: Text = ""
    prompt_template: Text = ""
    deadline_seconds: int | None = None
    signed_in_only: bool = Field(default=False, description="An MCP client's word is not enough.")
    risk_level: int = agents.USUAL_RISK
    published: bool = False


class AgentPatch(AgentChange):
    """`confirmLowering`: what gets weaker was shown to a person, who wants it so."""

    confirm_lowering: bool = False


class NewAgent(AgentPatch):
    model_config = examples(
        {
            "name": "refund_worker",
            "description": "Refunds orders and tells the customer.",
            "instructions": "Look the order up before you refund it.",
            "tools": ["refund_order", "send_notification"],
            "hitlMode": "DISABLED",
            "published": True,
        }
    )

    name: Text = Field(...)
    instructions: Text = Field(...)
    description: Text = Field(...)


class Agent(Shape):
    name: str
    title: str
    description: str
    instructions: str
    tools: list[str]
    endpoint: str | None
    model: str
    max_turns: int | None
    max_tokens: int | None
    hitl_mode: HitlModeName
    condition: str
    prompt_template: str
    deadline_seconds: int | None
    signed_in_only: bool
    risk_level: int
    published: bool
    input_schema: Object
    definition_hash: str


def agent(row: AgentTool) -> Agent:
    tool = row.tool
    return Agent.of(agents.draft_of(row), input_schema=tool.input_schema, definition_hash=tool.definition_hash)


@router.get("", response=list[Agent])
def list_agents(request: ApiRequest) -> list[Agent]:
    """Every agent tool, published or not."""
    return [agent(row) for row in agents.rows()]


@router.post("", response={201: Agent})
def create_agent(request: ApiRequest, body: NewAgent) -> Agent:
    """A new agent tool; under a name that another tool had it asks at least as much as that one.

    409: its risk is L4 or more and it would not ask every time, or its name is another tool's but for capital letters
    (`confirmLowering`). For people: an `api` token may not.
    """
    draft = Draft(**body.given("confirm_lowering"))
    made = agents.create(draft, request.auth.actor, confirmed=body.confirm_lowering)
    return agent(agents.rows().get(pk=made.pk))


@router.get("/{name}", response=Agent)
def read_agent(request: ApiRequest, name: str) -> Agent:
    return agent(_named(name))


@router.patch("/{name}", response=Agent)
def change_agent(request: ApiRequest, name: str, body: AgentPatch) -> Agent:
    """Change the fields that are given. What waits for an answer about what it was is withdrawn.

    409: it would ask less (`confirmLowering`). For people: an `api` token may not.
    """
    draft = replace(agents.draft_of(_named(name)), **body.given("confirm_lowering"))
    return agent(agents.change(name, draft, request.auth.actor, confirmed=body.confirm_lowering))


@router.delete("/{name}", response={204: None})
def delete_agent(request: ApiRequest, name: str) -> None:
    """Remove the agent. Its calls stay on record; what waits is withdrawn, what works already goes on."""
    agents.remove(name, request.auth.actor)


def _named(name: str) -> AgentTool:
    return get_object_or_404(agents.rows(), tool__name=name)
