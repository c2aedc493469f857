"""The rules: what they would say about calls, who decides about a tool's calls, and what models then read."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Router
from ninja.errors import AuthorizationError, HttpError
from pydantic import Field

from hitlchat.api.auth import ApiRequest, administrator, author, only_after
from hitlchat.api.contract import Body, CallerName, Line, Name, Object, Shape, Text, Username, read
from hitlchat.gate import earned, lab, oversight, replay, results, ruling, simulation, who
from hitlchat.gate.draft import read as read_draft
from hitlchat.gate.grants import giving
from hitlchat.gate.models import PolicyDraft, Tool
from hitlchat.gate.results import TextField
from hitlchat.gate.schema import BadArguments

router = Router(tags=["policies"], by_alias=True)
rules_router = Router(tags=["tools"], by_alias=True)
# Operation ids are given, since clients are generated with them: by default they follow the module.
texts_router = Router(tags=["texts"], by_alias=True)
texts_router.add_decorator(only_after(partial(administrator, to="see and change the texts for models")))

Word = Literal["allow", "ask", "refuse"]
Decider = Literal["requester", "approvers", "group"]


class MadeUpCall(Body):
    tool_name: Line
    arguments: Object = Field(default_factory=dict)
    caller_kind: CallerName = "chat"
    args_from_outside: bool = Field(
        default=False, description="Whether a value in `arguments` comes from a web page or another server."
    )
    user: Line | None = Field(None, description="A username; only administrators may name another person.")


class SpokenRule(Shape):
    policy: str
    verdict: Word
    reason: str
    source: Literal["installation", "settings", "tool", "conversation"]
    metadata: Object = Field(description="What a rule of your own adds for programs.")


class Simulation(Shape):
    verdict: Word
    reason: str
    rules: list[SpokenRule] = read("spoke", "Every rule that gave a verdict.")


@router.post("/simulate", response=Simulation)
def simulate(request: ApiRequest, body: MadeUpCall) -> simulation.Simulated:
    """Would this call be allowed, asked about or refused, and why? Nothing is recorded and nothing runs."""
    if body.caller_kind == "studio":
        author(request)
    person: User | None = request.auth.user
    if body.user not in {None, request.auth.user.get_username()}:
        administrator(request, to="simulate calls of other people")
        person = User.objects.filter(username=body.user).first()
    if person is None:
        raise HttpError(404, f"There is no user named {body.user!r}.")
    try:
        outside = body.args_from_outside
        judge = async_to_sync(simulation.simulate)
        return judge(body.tool_name, body.arguments, person, body.caller_kind, args_from_outside=outside)
    except simulation.NoSuchTool as error:
        raise HttpError(404, str(error)) from error
    except BadArguments as error:
        raise HttpError(422, str(error)) from error


class DraftBody(Body):
    tools: Object = Field(
        default_factory=dict,
        description="By name, what they would have instead: `hitlMode`, `condition`, who decides as `rules`, and a "
        "rule that the record bears out as `earned`: `{condition, perDay, perPerson}`.",
    )
    policies: list[Any] | None = Field(None, description="In place of HITL_POLICIES; left out, those in force stay.")

    @property
    def draft(self) -> Object:
        return {"tools": self.tools} | ({} if self.policies is None else {"policies": self.policies})


class ToReplay(DraftBody):
    days: int = Field(replay.USUAL_DAYS, ge=1, le=replay.MOST_DAYS)


class Replay(Shape):
    calls: int
    asked: int
    refused: int
    allowed: int
    would_have_run_though_declined: list[UUID] = Field(description="The latest 1,000 of them.")
    declined_that_would_have_run: int = Field(description="How many there are.")
    asked_before: int
    questions_saved: int
    questions_added: int
    seconds_saved: int = Field(description="How long people looked at the questions that are saved.")
    errors: int = Field(description="Calls about which a rule or condition gave no answer.")
    error: str = Field(description="What came of the latest of these.")
    gone: int = Field(description="Calls that were not judged, as their tool was deleted.")
    left_out: int = Field(description="Older calls that were not judged, as it would have taken too long.")


@router.post("/replay", response=Replay)
def replay_calls(request: ApiRequest, body: ToReplay) -> replay.Replayed:
    """What would a draft of rules have made of the recorded calls? For administrators; nothing is changed.

    The latest 10,000 calls are judged, or as many as 20 seconds allow. Who decides plays no part.
    """
    administrator(request, to="replay recorded calls")
    draft = read_draft(body.draft)
    return replay.replay(draft, body.days, most=replay.MOST_AT_ONCE, seconds=replay.MOST_SECONDS)


class NewDraft(DraftBody):
    name: Line = Field(description="At most 100 characters; no two drafts have the same.")
    purpose: Line | None = Field(None, description="What it is for.")


class KeptDraft(Shape):
    id: UUID
    name: str
    purpose: str
    draft: Object = read("body", "As `/policies/replay` takes it.")
    author: Username
    created_at: datetime
    publisher: Username | None
    published_at: datetime | None
    why: str = Field(description="Why it was published.")


class ToCompare(Body):
    other: Annotated[UUID, Field(strict=False)] | None = Field(
        None, description="The id of another draft; left out, the rules in force."
    )
    days: int = Field(replay.USUAL_DAYS, ge=1, le=replay.MOST_DAYS)


class DifferentCall(Shape):
    call_id: UUID = read("call")
    draft: Word = read("one")
    other: Word


class Comparison(Shape):
    draft: Replay = read("one")
    other: Replay
    differing: int = Field(description="How many calls they differ on.")
    differences: list[DifferentCall] = Field(description="The latest 1,000 of these.")


class ToPublish(Body):
    why: Line
    confirm_lowering: bool = Field(default=False, description="Confirms that the gate asks less, or other people.")


@router.get("/drafts", response=list[KeptDraft])
def list_drafts(request: ApiRequest) -> QuerySet[PolicyDraft]:
    """Return the drafts that were kept, the newest first. For administrators."""
    administrator(request, to="see drafts of policies")
    return _drafts()


@router.post("/drafts", response={201: KeptDraft})
def keep_draft(request: ApiRequest, body: NewDraft) -> PolicyDraft:
    """Keep a draft, with what is in force for its tools now. Nothing of it comes into force.

    403: only an administrator's session or token of kind “approver” may. 409: there is a draft of this name.
    """
    return lab.keep(body.draft, request.auth.actor, name=body.name, purpose=body.purpose or "")


@router.get("/drafts/{uuid:draft_id}", response=KeptDraft)
def show_draft(request: ApiRequest, draft_id: UUID) -> PolicyDraft:
    administrator(request, to="see drafts of policies")
    return get_object_or_404(_drafts(), pk=draft_id)


@router.delete("/drafts/{uuid:draft_id}", response={204: None})
def delete_draft(request: ApiRequest, draft_id: UUID) -> None:
    """Delete it. What it set if it was published stays in force."""
    lab.remove(draft_id, request.auth.actor)


@router.post("/drafts/{uuid:draft_id}/compare", response=Comparison)
def compare_drafts(request: ApiRequest, draft_id: UUID, body: ToCompare) -> replay.Compared:
    """Replay the same calls under the draft and under another one, or the rules in force; nothing is changed.

    Of drafts without policies, only the calls of their tools are judged.
    """
    administrator(request, to="replay recorded calls")
    one, other = (read_draft(get_object_or_404(_drafts(), pk=pk).body if pk else {}) for pk in (draft_id, body.other))
    return replay.compare(one, other, body.days, most=replay.MOST_AT_ONCE, seconds=replay.MOST_SECONDS)


@router.post("/drafts/{uuid:draft_id}/publish", response=KeptDraft)
def publish_draft(request: ApiRequest, draft_id: UUID, body: ToPublish) -> PolicyDraft:
    """Put the modes, conditions and rules of all its tools into force, or nothing of it.

    409: it loosens something (`confirmLowering`), a tool has changed since it was made (`errors` names the field), it
    was published before, or it has policies, which stand in the settings.
    """
    lab.publish(draft_id, request.auth.actor, body.why, confirmed=body.confirm_lowering)
    return _drafts().get(pk=draft_id)


def _drafts() -> QuerySet[PolicyDraft]:
    return PolicyDraft.objects.select_related("author", "publisher")


class EarnedProposal(Shape):
    tool_name: str
    draft: Object = Field(description="As `/policies/drafts` takes it, to be kept and published.")
    condition: str
    per_day: int
    per_person: int
    approved: int = Field(description="Calls like it that were read and approved unchanged.")
    people: int = Field(description="Who approved them.")
    days: int = Field(description="On so many days.")
    counter_examples: list[UUID] = Field(description="Calls of the tool that were declined, edited or regretted.")


class EarnedRule(Shape):
    id: UUID = Field(description="`POST /api/grants/{id}/revoke` ends it.")
    tool_name: str
    condition: str
    per_day: int
    per_person: int
    used: int
    state: giving.State
    publisher: Username = read("person")
    published_at: datetime = read("given_at")
    until: datetime = Field(description="It decays then, unless it is used before.")
    ended_at: datetime | None
    why: str = Field(description="Why it ended, if it did.")


class EarnedRules(Shape):
    proposals: list[EarnedProposal]
    rules: list[EarnedRule] = Field(description="Those in force, and the last 100 that have ended.")


@router.get("/earned", response=EarnedRules)
def list_earned_rules(request: ApiRequest) -> EarnedRules:
    """What rules the record bears out, and those that were published. For administrators; nothing is changed."""
    administrator(request, to="see what rules the record proposes")
    found = giving.earned()
    active, ended = list(giving.active(found)), giving.ended(found)[: giving.MOST_ENDED]
    rules = [EarnedRule.of(each, state=giving.state(each, is_active=each in active)) for each in (*active, *ended)]
    return EarnedRules(proposals=[_proposal(each) for each in earned.proposals()], rules=rules)


def _proposal(found: earned.Proposal) -> EarnedProposal:
    noes, evidence = list(found.evidence.other_noes), found.evidence
    facts = {name: getattr(evidence, name) for name in ("approved", "people", "days")}
    return EarnedProposal.of(found.rule, tool_name=found.tool.name, draft=found.draft, counter_examples=noes, **facts)


class ToolRules(Body):
    """All of them: what is left out is as it is without rules."""

    decided_by: Decider = "requester"
    group: Line | None = Field(None, description="The name of the group, if a group decides.")
    second: Line | None = Field(
        None, description="The name of a group that must approve after `group` has: one person each, whatever `quorum`."
    )
    third: Line | None = Field(None, description="The name of one that must approve after `second` has.")
    quorum: int = Field(1, description="How many different people must approve: 1 to 10.")
    not_the_requester: bool = False
    escalate_to: Line | None = Field(None, description="The name of a group that may also decide.")
    escalate_after_seconds: int | None = None
    confirm_lowering: bool = Field(default=False, description="Confirms that fewer or other people decide.")


class RulesInForce(Shape):
    tool_name: str
    decided_by: Decider
    group: Name | None
    second: Name | None
    third: Name | None
    quorum: int
    not_the_requester: bool
    escalate_to: Name | None
    escalate_after_seconds: int | None
    who_decides: str = Field(description="The same as a sentence.")


@rules_router.get("/{name}/rules", response=RulesInForce)
def read_rules(request: ApiRequest, name: str) -> RulesInForce:
    """Return who decides calls to this tool. For administrators."""
    ruling.require_administrator(request.auth.actor)
    return _shape(get_object_or_404(Tool, name=name))


@rules_router.put("/{name}/rules", response=RulesInForce)
def set_rules(request: ApiRequest, name: str, body: ToolRules) -> RulesInForce:
    """Set the rules from now on. Calls asked under others that have not started are withdrawn, approved ones too.

    409: fewer or other people would decide (`confirmLowering`).
    """
    ruling.require_administrator(request.auth.actor)
    tool = get_object_or_404(Tool, name=name)
    rules = ruling.named(body.model_dump(exclude={"confirm_lowering"}))
    ruling.change(tool, rules, request.auth.actor, confirmed=body.confirm_lowering)
    return _shape(tool)


def _shape(tool: Tool) -> RulesInForce:
    rules = oversight.of(tool)
    return RulesInForce.of(rules, tool_name=tool.name, who_decides=who.words(rules.as_json, who.REQUESTER))


class ModelText(Shape):
    outcome: str
    text: str = Field(description="The template; empty: `instead` applies.")
    instead: str = Field(description="The text used if there is no template.")
    placeholders: list[str]
    example: str = Field(description="What a model would read about a made-up call.")


class TextChanges(Body):
    """One that is left out stays as it is; null or empty takes it away."""

    declined: Text | None = None
    feedback: Text | None = Field(default=None, description="Added if a call was declined with a reason.")
    edited: Text | None = None
    expired: Text | None = None
    refused: Text | None = None
    confirm_lowering: bool = Field(default=False, description="Confirms that models read different texts from now on.")


@texts_router.get("/texts", response=list[ModelText], operation_id="hitlchat_api_texts_read_texts")
def read_texts(request: ApiRequest) -> list[TextField]:
    """Return those for all tools."""
    return results.fields(None)


@texts_router.put("/texts", response=list[ModelText], operation_id="hitlchat_api_texts_change_texts")
def change_texts(request: ApiRequest, body: TextChanges) -> list[TextField]:
    """All of them or none. Only a person's session or a token of kind “approver” may.

    409: models would read other words (`confirmLowering`).
    """
    return _change_texts(request, None, body)


@texts_router.get("/tools/{name}/texts", response=list[ModelText], operation_id="hitlchat_api_texts_read_tool_texts")
def read_tool_texts(request: ApiRequest, name: str) -> list[TextField]:
    """The tool's own, which count before those for all."""
    return results.fields(get_object_or_404(Tool, name=name))


@texts_router.put("/tools/{name}/texts", response=list[ModelText], operation_id="hitlchat_api_texts_change_tool_texts")
def change_tool_texts(request: ApiRequest, name: str, body: TextChanges) -> list[TextField]:
    """Change the texts of one tool, as those of all tools."""
    return _change_texts(request, get_object_or_404(Tool, name=name), body)


def _change_texts(request: ApiRequest, tool: Tool | None, body: TextChanges) -> list[TextField]:
    actor = request.auth.actor
    if not actor.is_person:
        raise AuthorizationError(message="Only a person may change these texts: sign in, or use an approver token.")
    results.save(tool, body.given("confirm_lowering"), actor, confirmed=body.confirm_lowering)
    return results.fields(tool)
