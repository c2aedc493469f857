"""Tool calls and runs: what was asked for, who decided, what became of it; a run is stopped."""

from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import AwareDatetime, BaseModel, Field

from hitlchat.agent import models as agent
from hitlchat.agent import runner, usage
from hitlchat.agent.calls import held_back
from hitlchat.api.auth import ApiRequest, decider
from hitlchat.api.contract import Body, CallerName, Limit, Object, Shape, Text, Username, read
from hitlchat.gate import hindsight, stopping
from hitlchat.gate import models as gate
from hitlchat.gate.attention import shown_for_ms
from hitlchat.gate.history import finding
from hitlchat.gate.history.finding import CHOICES, MEANS, Wanted
from hitlchat.gate.models import delegation
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import queued_since

router = Router(tags=["calls"], by_alias=True)
looking_back_router = Router(tags=["calls"], by_alias=True)
runs_router = Router(tags=["runs"], by_alias=True)


class Decision(Shape):
    person: Username
    absent: Username | None = Field(description="In whose place the person decided; null: in their own.")
    verdict: Literal["approve", "decline", "suggest", "answer"] = Field(
        description="suggest: declined, and the reason is what to do instead; answer: answered in the tool's place."
    )
    reason: str
    means: str = Field(
        description="How the person was authenticated: session (signed in), token, console, or elicitation (an MCP "
        "client's word, with nobody signed in)."
    )
    client: str | None = Field(description="With elicitation: the client's name for itself, which is only a claim.")
    token: str | None = Field(description="The name of the token used, if any.")
    decided_at: datetime
    round: int = Field(description="The round of asking, starting at 1.")
    edited_arguments: Object | None
    first_shown_at: datetime | None = Field(
        description="When the card was first shown to this person; null: no recorded display."
    )
    shown_for_ms: int | None = Field(description="From first display to the answer.")
    opened: bool | None = Field(description="Whether folded text was opened; null: nothing was folded.")
    hurried: bool = Field(description="Whether the approval came faster than the card can plausibly be read.")


class AgentStep(Shape):
    tool: str = Field(description="The agent, by its tool's name at the time.")
    call_id: UUID = read("call", "The call that started the agent.")


AGENTS = "The agents that the call came through, outermost first; none for a call from your own conversation or client."


class Call(Shape):
    id: UUID
    tool_name: str
    source: str
    arguments: Object
    status: Status
    outcome: str = Field(description="The status, and “nobody_asked” apart from “refused” by a policy.")
    reason: str
    rule: str = Field(description="Fingerprint of the rules that decided whether the call was asked about or refused.")
    risk_level: int
    caller: CallerName = read("caller_kind")
    person: Username = read("caller", "The person the call was made for.")
    conversation_id: UUID | None
    agents: list[AgentStep] = Field(description=AGENTS)
    agent_conversation_id: UUID | None = Field(description="Of a call to an agent: the conversation in which it works.")
    approval_id: UUID | None
    grant_id: UUID | None = Field(description="The grant that let the call run without asking a person.")
    prompt: str | None = Field(description="The question, as last asked.")
    consent_digest: str | None
    asked_at: datetime | None = Field(description="When people were first asked.")
    seconds_to_decide: float | None = Field(description="From the first question to the last answer.")
    decisions: list[Decision]
    result: Any
    error: Object | None
    output: str
    requested_at: datetime = read("created_at")
    queued_since: datetime | None = Field(description="Since when the call has waited for a free worker.")
    started_at: datetime | None
    settled_at: datetime | None
    duration_ms: float | None
    is_automatic: bool = Field(description="Whether the call ran without asking a person; “reason” says why.")


class CallFilter(BaseModel):
    scope: Literal["mine", "all"] = Field(
        "mine", description="Calls made for you, or all that you may see: everyone's, for administrators."
    )
    status: Status | None = None
    outcome: Literal[tuple(CHOICES)] | None = None  # type: ignore[valid-type]
    tool: Text | None = None
    source: Text | None = None
    caller: CallerName | None = None
    person: Text | None = Field(None, description="The username of the person the call was made for.")
    decider: Text | None = Field(None, description="The username of someone who answered.")
    means: Literal[tuple(MEANS)] | None = Field(  # type: ignore[valid-type]
        None, description="How someone who answered was authenticated; elicitation: only by an MCP client's word."
    )
    rule: Text | None = None
    risk: Annotated[int, Field(ge=0, le=5)] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = Field(None, description="Only calls from before this moment.")
    hurried: bool = Field(default=False, description="Only calls answered faster than the card can be read.")
    conversation: UUID | None = None
    before: UUID | None = Field(None, description="The id of the last call you have; older ones follow.")
    limit: Limit = 50


class LookBack(Body):
    verdict: Literal["fine", "should_ask"]


class Usage(Shape):
    """Tokens as model servers told them. `cost`: null without prices, and less than the whole where some had none."""

    input_tokens: int = read("input")
    output_tokens: int = read("output")
    cached_tokens: int = read("cached")
    reasoning_tokens: int = read("reasoning")
    cost: float | None
    currency: str


class RunState(Shape):
    id: UUID
    conversation_id: UUID
    status: Literal["running", "waiting", "done", "failed", "stopped"]
    error: str | None
    held_back: int = Field(description="Calls not asked about yet, because enough questions are open.")
    created_at: datetime
    finished_at: datetime | None
    usage: Usage | None = Field(description="Null if no model server reported tokens.")


def usage_of(used: usage.Used | None) -> Usage | None:
    if used is None or not used.tokens:
        return None
    return Usage.of(used, currency=settings.MODEL_CURRENCY)


def rows() -> QuerySet[gate.ToolCall]:
    """Return the calls with all that `call` needs."""
    return finding.needed(gate.ToolCall.objects.all())


def call(row: gate.ToolCall) -> Call:
    return calls([row])[0]


def calls(found: list[gate.ToolCall]) -> list[Call]:
    """Return the calls in a fixed number of queries."""
    begun = delegation.begun_by([row.pk for row in found])
    chains = delegation.agents_of({row.conversation_id for row in found if row.conversation_id})
    return [
        Call.of(
            row,
            agents=chains.get(row.conversation_id, []),
            agent_conversation_id=begun.get(row.pk),
            outcome=finding.outcome_of(row),
            approval_id=approval.pk if approval else None,
            prompt=approval.prompt if approval else None,
            consent_digest=approval.digest if approval else None,
            asked_at=approval.created_at if approval else None,
            seconds_to_decide=finding.seconds_to_decide(row),
            decisions=decisions(approval) if approval else [],
            error=error(row),
            queued_since=queued_since(row),
            is_automatic=finding.ran_unasked(row),
        )
        for row in found
        for approval in [finding.approval_of(row)]
    ]


def decisions(row: gate.Approval) -> list[Decision]:
    return [
        Decision.of(
            each,
            absent=each.absent_name or None,
            client=each.client or None,
            token=each.token_name or None,
            shown_for_ms=shown_for_ms(each),
        )
        for each in row.decisions.all()
    ]


def approval_id(row: gate.ToolCall) -> UUID | None:
    approval = finding.approval_of(row)
    return approval.pk if approval else None


def error(row: gate.ToolCall) -> Object | None:
    """Return the error of the tool, or why the call was rejected or refused."""
    if row.status in (Status.REJECTED, Status.REFUSED):
        return {"kind": row.status, "message": row.reason, "line": None}
    return cast("Object | None", row.error)


def run_state(row: agent.Run) -> RunState:
    return RunState.of(
        row, error=row.error or None, held_back=held_back(row.turn_id), usage=usage_of(usage.of_run(row.pk))
    )


@router.get("", response=list[Call])
def list_calls(request: ApiRequest, wanted: Query[CallFilter]) -> list[Call]:
    """Calls made on your behalf, or with `scope=all` also of others, the latest first; `before` the last of them, for
    more.
    """
    user, before = request.auth.user, None
    among = finding.own(user) if wanted.scope == "mine" else finding.ways(user)
    if wanted.before is not None:
        seen = finding.one(user, wanted.before)
        before = get_object_or_404(seen if wanted.scope == "all" else seen.filter(caller=user))
    narrowed = Wanted(**wanted.model_dump(include={each.name for each in fields(Wanted)}))
    return calls(list(finding.page(among, narrowed, wanted.limit, before=before, rows=rows())))


@router.get("/{uuid:call_id}", response=Call)
def read_call(request: ApiRequest, call_id: UUID) -> Call:
    """Return one that you may look at: made for you, yours to decide, decided by you; any, for administrators."""
    return call(get_object_or_404(rows().filter(pk__in=finding.one(request.auth.user, call_id))))


@router.post("/{uuid:call_id}/stop", response=Call)
def stop_call(request: ApiRequest, call_id: UUID) -> Call:
    """Tell a call to stop that executes. That is a wish: it may end as unknown, or still succeed. Others stay as they
    are.
    """
    stopping.request(call_id, request.auth.actor)
    return call(get_object_or_404(rows(), caller=request.auth.user, pk=call_id))


@runs_router.get("/{uuid:run_id}", response=RunState)
def read_run(request: ApiRequest, run_id: UUID) -> RunState:
    return run_state(_my_run(request, run_id))


@runs_router.post("/{uuid:run_id}/stop", response=RunState)
def stop_run(request: ApiRequest, run_id: UUID) -> RunState:
    """End the run: what waits for an answer is withdrawn. One that is over already stays as it is."""
    run = _my_run(request, run_id)
    runner.stop(run.pk, run.conversation_id, request.auth.actor)
    return run_state(_my_run(request, run_id))


def _my_run(request: ApiRequest, run_id: UUID) -> agent.Run:
    return get_object_or_404(agent.Run, pk=run_id, conversation__owner=request.auth.user)


@looking_back_router.get("", response=list[Call])
def list_looking_back(request: ApiRequest) -> list[Call]:
    """Return calls of yours that ran without asking, and that you are to look back at: a share of them, at most ten."""
    ids = hindsight.due(request.auth.user.pk)
    return calls(list(rows().filter(pk__in=ids).order_by("-created_at", "-id")))


@looking_back_router.post("/{uuid:call_id}", response=Call)
def look_back(request: ApiRequest, call_id: UUID, body: LookBack) -> Call:
    """Say of a call of yours that ran without asking whether that was fine. It goes on record, and undoes nothing; 409
    the second time.
    """
    hindsight.look_back(call_id, decider(request), gate.Hindsight.Verdict(body.verdict))
    return call(rows().get(pk=call_id))
