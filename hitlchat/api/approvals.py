"""Approvals: the questions that wait for the signed-in person, their answers, and the grants given with these."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

import ninja
from django.db.models import OuterRef, QuerySet, Subquery
from django.shortcuts import get_object_or_404
from ninja import Query, Router
from pydantic import AwareDatetime, BaseModel, Field, StringConstraints, model_validator

from hitlchat.agent import why as asking
from hitlchat.api import calls
from hitlchat.api.auth import ApiRequest, decider
from hitlchat.api.calls import Decision
from hitlchat.api.contract import STORABLE, Body, CallerName, Flag, Object, Page, Shape, Text, Username, read
from hitlchat.base import schemas, visible
from hitlchat.gate import (
    attention,
    batch,
    decide,
    deciders,
    disclosure,
    editing,
    handling,
    oversight,
    question,
    queue,
    who,
    why,
)
from hitlchat.gate import models as gate
from hitlchat.gate.card import facts_of, lines
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.status import Status

router = Router(tags=["approvals"], by_alias=True)
# Operation ids are given, since clients are generated with them: by default they follow the module.
grants_router = Router(tags=["grants"], by_alias=True)

ApprovalStatus = Literal["pending", "approved", "declined", "answered", "expired", "withdrawn"]
Reason = Annotated[str, StringConstraints(max_length=500), STORABLE]

# What became of the question; everything else comes after a yes.
QUESTION_ENDS: dict[str, ApprovalStatus] = {
    Status.WAITING: "pending",
    Status.DECLINED: "declined",
    Status.ANSWERED: "answered",
    Status.EXPIRED: "expired",
    Status.WITHDRAWN: "withdrawn",
}


class NewGrant(Body):
    """Calls like the one that is approved, which run without asking. It needs a bound: `calls`, a time, or
    `thisConversation`.
    """

    same_arguments: bool = False
    this_conversation: bool = False
    calls: int | None = Field(None, description="1 to 100.")
    minutes: int | None = Field(None, description="Minutes from now on, up to 24 hours.")
    # Strict bodies take no text for a time, and JSON has nothing else.
    until: Annotated[AwareDatetime | None, Field(strict=False, description="Within the next 24 hours.")] = None
    condition: Text = Field("", description="An expression about `args`; if it fails, a person is asked.")

    @property
    def scope(self) -> Scope:
        return Scope(**self.model_dump())


class Grant(Shape):
    id: UUID
    sentence: str = Field(description="The calls covered, as a sentence.")
    state: giving.State
    approval_id: UUID | None = Field(description="The approval that it was given with; null: an earned rule.")
    person: Username
    tool_name: str
    caller: CallerName = read("caller_kind")
    same_arguments: Flag = read("arguments_digest")
    conversation_id: UUID | None = Field(description="Covers only calls in this conversation; null: in any.")
    calls: int | None
    used: int
    until: datetime | None
    condition: str
    given_at: datetime
    ended_at: datetime | None
    ended_by: Username | None
    why: str = Field(description="Why the grant was ended, if it was.")


class GrantFilter(Page):
    state: Literal["active", "ended", "all"] = "active"


class Approve(Body):
    modified_arguments: Object | None = None
    consent_digest: str | None = None
    grant: NewGrant | None = None
    reason: Annotated[Reason, Field(description="For the model, which reads it beside the result.")] = ""
    caution_read: bool = Field(
        default=False, description="That the person has read the `caution`, where it takes that: without it, 422."
    )


class Reject(Body):
    reason: Reason = ""
    instead: Annotated[
        Reason, Field(description="What the model is to do instead; it may then call the tool again. Without a reason.")
    ] = ""
    answer: Annotated[
        str,
        StringConstraints(max_length=decide.LONGEST_ANSWER),
        STORABLE,
        Field(description="An answer in the tool's place, as a person's: it does not run. Without the others."),
    ] = ""

    @model_validator(mode="after")
    def is_one(self) -> Self:
        if sum(map(bool, (self.reason, self.instead, self.answer))) > 1:
            raise ValueError("Expected one of reason, instead and answer.")
        return self


class RejectQuery(BaseModel):
    reason: Reason = Field("", description="The reason, for programs that send no body.")


class Extend(Body):
    # Strict bodies take no text for a moment, and JSON has nothing else.
    deadline: Annotated[AwareDatetime, Field(strict=False)] | None = Field(
        default=None, description="The deadline you saw. If it has changed since, nothing is extended."
    )


class BatchItem(Body):
    # Strict bodies take no text for an id, and JSON has nothing else.
    id: Annotated[UUID, Field(strict=False)]
    consent_digest: str


class Batch(Body):
    verdict: Literal["approve", "decline"]
    items: Annotated[list[BatchItem], Field(min_length=2, max_length=50)]
    reason: Reason = ""


class BatchOutcome(Shape):
    id: UUID = read("approval")
    counted: bool = Field(description="Whether this is the answer that counts for the call.")
    detail: str = read("said")
    call_status: Status


class BatchOutcomes(Shape):
    outcomes: list[BatchOutcome]


class QuestionField(Shape):
    name: str = Field(description="The field's name in the answer.")
    label: str
    kind: Literal["text", "number", "choice", "yes_no"]
    choices: list[str] = Field(description="For the kind “choice”: the possible answers.")
    required: bool


class Question(Shape):
    text: str = Field(description="The model's words. Show them as plain text, and as the model's.")
    fields: list[QuestionField]
    seems_secret: bool = read("seemsSecret", "Whether it seems to ask for a password or key.")


class OriginCall(Shape):
    call: str = Field(description="The id of the call.")
    tool: str


class Origin(Shape):
    path: str = Field(description="The value's place in `arguments`, as a JSON pointer.")
    origin: Literal["person", "tool", "outside", "model"] = Field(
        alias="from",
        description="`person`: typed by the person. `tool`: in a call's result. `outside`: in an attached file, or in "
        "a result that can bring text from the network, another server or an agent. `model`: in none of these.",
    )
    source: OriginCall | None = Field(description="The call that gave it.")
    partly: bool = Field(default=False, description="Whether only parts of the value are from there.")
    unsure: bool = Field(
        default=False, description="Whether images, or earlier messages and results, were not looked through."
    )
    near: str = Field(default="", description="Of `model`: a word of the conversation that one of the value resembles.")
    wrote: str = Field(
        default="",
        description="Words of the person's last message that speak against the value; with an empty `path`, against "
        "the tool.",
    )


class Warned(Shape):
    path: str = Field(
        description="Where: the JSON Pointer of an argument, such as `/to/0` (of the name of one, if that is what is "
        "suspect), or `tool` or `prompt`."
    )
    kind: visible.Kind = Field(description="What programs go by.")
    text: str = Field(description="The sentence on the card, for people.")


class Meaning(Shape):
    path: str = Field(description="The JSON Pointer of the argument.")
    text: str = Field(description="The sentence beside its value on the card, with what was read out of the value.")
    caution: bool = Field(description="Whether it is easily overlooked: then a yes on the card takes a tick.")


class Caution(Shape):
    """One sentence of another model, which has no say in what becomes of the call."""

    text: str = read("caution")
    model: str
    takes_tick: bool = Field(description="Whether a yes takes `cautionRead`.")


class OnIt(Shape):
    person: Username
    until: datetime


class Why(Shape):
    """What somebody asked the model about the call, and what it claims: nothing checked it."""

    number: int
    person: str
    question: str = Field(description="Empty: why it wants to make this call.")
    asked_at: datetime
    answer: str = Field(description="Empty while the model is being asked, and where there is `trouble`.")
    cut: bool = Field(description="Whether the answer was longer.")
    trouble: str = Field(description="Why there is no answer, as a sentence.")
    answered_at: datetime | None


class AskWhy(Body):
    question: Annotated[
        str, StringConstraints(max_length=why.LONGEST_QUESTION), STORABLE, Field(description="Left out: why.")
    ] = ""


class Approval(Shape):
    id: UUID
    call_id: UUID
    tool_name: str = read("call.tool_name")
    arguments: Object = read("call.arguments")
    prompt: str
    requested_at: datetime = read("created_at")
    deadline: datetime
    session_id: UUID | None = read("disclosure.conversation")
    agents: list[calls.AgentStep] = Field(description=calls.AGENTS)
    user_prompt: str = read("disclosure.userPrompt")
    provenance: list[Origin] = Field(
        description="Where the values of the arguments came from when they were asked about. Empty: not known."
    )
    risk_level: int
    inherent_risk_level: int = Field(
        description="The level that what a yes needs goes by: above `riskLevel` where asking every time lowered that."
    )
    risk_unknown: bool = Field(
        description="Whether the levels are only estimates: nobody here vouched for the tool when this was asked."
    )
    consent_digest: str = read("digest")
    status: ApprovalStatus
    reason: str = read("disclosure.reason")
    facts: list[str] = Field(
        description="What the tool can reach, what became of its last calls, and whether the same call ran lately: "
        "sentences, in the order of the card."
    )
    grant_id: UUID | None = read("given", "The grant given with the approval.")
    preview: Object | None = Field(
        description="The effect of the call, according to the tool's own preview code: {text, table, error, cut}."
    )
    warnings: list[Warned] = Field(description="What may deceive a reader: look-alike letters, hidden characters.")
    attempt: int = Field(
        description="1, and one more for each call of the tool that was declined in this run with what to do instead."
    )
    instead: str | None = Field(description="What was to be done instead of the attempt before.")
    meanings: list[Meaning] = Field(
        description="What values mean: hosts of addresses, decoded codes, defaults, values of the last such call."
    )
    caution: Caution | None = Field(
        description="What a second model cautions about, once it has; null says nothing in favour of the call."
    )
    asked_times: int = Field(
        description="How many identical calls wait. Approving runs one and withdraws the rest; declining declines all."
    )
    asked_again: Object | None = Field(
        description="Why the call was asked about again after an approval, with the earlier preview."
    )
    question: Question | None = Field(
        description="Of a call that asks the person: its form. A yes is an answer: `modifiedArguments` with `answer`, "
        "an object with a value for each field by its name."
    )
    decided_by: Literal["requester", "approvers", "group"] = read("call.decided_by")
    decider_group: str | None = Field(
        description="The group whose members decide, by its name at the time; in a chain the one whose turn it is."
    )
    quorum: int = read("call.quorum", "How many different people must approve.")
    approved_by: list[Username] = Field(description="Who approved; while the call waits, those whose approval counts.")
    on_it: OnIt | None = Field(
        description="Who said that they look at it, where others may decide it too; null: nobody."
    )
    who_decides: str = Field(description="Who decides, as a sentence on the card.")
    whys: list[Why] = Field(description="What was asked about it with `why`, and what the model claims.")
    decisions: list[Decision]
    call_status: Status = read("call.status")
    result: Any = read("call.result")
    error: Object | None


class Approved(Approval):
    """An approval with the grant that was given together with the yes."""

    grant: Grant


class ApprovalFilter(Page):
    status: ApprovalStatus | Literal["all"] = "pending"


# Bodies that may be left out.
NOTHING_MORE, NO_REASON, NOTHING_SEEN, NO_QUESTION = Approve(), Reject(), Extend(), AskWhy()


def with_all(rows: QuerySet[gate.Approval]) -> QuerySet[gate.Approval]:
    """Load everything that `approvals` reads. `given`: the id of the grant given with the approval."""
    given = Subquery(gate.Grant.objects.filter(approval=OuterRef("pk")).values("pk")[:1])
    return (
        rows.annotate(given=given)
        .select_related("call", "handling__person", "opinion")
        .prefetch_related("decisions__person")
    )


def approval(row: gate.Approval) -> Approval:
    return approvals([row])[0]


def approvals(rows: Iterable[gate.Approval]) -> list[Approval]:
    """Return the approvals in a fixed number of queries."""
    found = list(rows)
    waiting = [row for row in found if row.call.status == Status.WAITING]
    times = queue.times(waiting)
    # The yeses that count, of those that need several.
    yes: dict[UUID, list[gate.Decision]] = {row.pk: [] for row in waiting if row.call.quorum > 1}
    for each in deciders.counted(approval__in=list(yes)).select_related("person"):
        yes[each.approval_id].append(each)
    with_whys = [row.call_id for row in found if row.whys]
    whys = why.of_calls(with_whys) if with_whys else {}
    return [_approval(row, times.get(row.pk, 1), yes.get(row.pk), whys.get(row.call_id, ())) for row in found]


def _approval(
    row: gate.Approval, times: int, counted: list[gate.Decision] | None, whys: tuple[why.Exchange, ...]
) -> Approval:
    shown, call = row.disclosure, row.call
    rules = shown.get("whoDecides") or {}
    group = oversight.whose_turn(rules, call) or rules.get("group")
    yes = [each for each in row.decisions.all() if each.verdict == "approve" and each.round == call.round]
    return Approval.of(
        row,
        deadline=call.deadline or shown["deadline"],
        agents=shown.get("agents", []),
        attempt=shown.get("attempt", {}).get("number", 1),
        instead=shown.get("attempt", {}).get("instead"),
        provenance=shown.get("provenance", []),
        risk_level=disclosure.shown_risk(row),
        inherent_risk_level=oversight.care(shown),
        risk_unknown=shown.get("riskUnknown", False),
        facts=facts_of(shown),
        status=QUESTION_ENDS.get(call.status, "approved"),
        preview=shown.get("preview"),
        warnings=list(_warned(shown)),
        meanings=list(_meanings(shown)),
        caution=row.opinion if call.caution_takes_tick is not None else None,
        asked_times=times,
        asked_again=shown.get("again"),
        question=question.as_json(shown["arguments"]) if question.is_one(call) else None,
        decider_group=group["name"] if group else None,
        approved_by=[each.person for each in (yes if counted is None else counted)],
        on_it=who.on_it(row) if call.status == Status.WAITING else None,
        who_decides=who.sentences(row),
        whys=whys,
        decisions=calls.decisions(row),
        error=calls.error(call),
    )


def _warned(shown: dict[str, Any]) -> Iterator[Warned]:
    texts = {
        "tool": [shown["tool"]["name"], shown["tool"]["origin"]],
        "prompt": [text for text, _ in shown["promptPieces"]],
    }
    warned = [(path, each) for path, parts in texts.items() for _, each in visible.warned(parts)]
    for path, each in dict.fromkeys([*warned, *visible.warned(shown["arguments"])]):
        yield Warned(path=path, kind=each.kind, text=each)


def _meanings(shown: dict[str, Any]) -> Iterator[Meaning]:
    for name in shown["arguments"]:
        for each in lines(shown, name):
            text = " ".join(filter(None, [each.words, each.value.plain if each.value else "", each.rest]))
            yield Meaning(path=schemas.step("", name), text=text, caution=each.caution)


@router.get("", response=list[Approval])
def list_approvals(request: ApiRequest, wanted: Query[ApprovalFilter]) -> list[Approval]:
    """Return what waits for you, the oldest first; or what was answered, the latest first."""
    rows = _mine(request)
    if wanted.status == "approved":
        rows = rows.exclude(call__status__in=QUESTION_ENDS)
    elif wanted.status != "all":
        ends = [status for status, end in QUESTION_ENDS.items() if end == wanted.status]
        rows = rows.filter(call__status__in=ends)
    order = ["created_at", "id"] if wanted.status == "pending" else ["-created_at", "-id"]
    return approvals(wanted.cut(rows.order_by(*order)))


@router.get("/{uuid:approval_id}", response=Approval)
def read_approval(request: ApiRequest, approval_id: UUID) -> Approval:
    """Return it as the card shows it. For who may decide by this credential, it counts as shown."""
    found = get_object_or_404(_mine(request, [approval_id]), pk=approval_id)
    attention.shown(found, request.auth.actor)
    return approval(found)


@router.post("/{uuid:approval_id}/approve", response=Approved | Approval)
def approve(request: ApiRequest, approval_id: UUID, body: Approve = NOTHING_MORE) -> Approval:
    """Say yes to exactly this call, or to it with `modifiedArguments`; with a `grant`, also to calls like it.

    The yes to a `question` is its answer: `{"modifiedArguments": {"answer": {"name": value}}}`; without one that fits
    each field it is 422, and nothing is decided. With `consentDigest`, only if the call that waits is the one you were
    shown.
    """
    actor = decider(request)
    bounds = body.grant.scope if body.grant else None
    edited, digest = body.modified_arguments, body.consent_digest
    looked = attention.Looked(caution_read=body.caution_read)
    decide.approve(approval_id, actor, digest=digest, edited=edited, grant=bounds, reason=body.reason, looked=looked)
    answered = _current(request, approval_id)
    return Approved.of(answered, grant=_granted(answered.grant_id)) if bounds and answered.grant_id else answered


@router.post("/{uuid:approval_id}/reject", response=Approval)
def reject(request: ApiRequest, approval_id: UUID, given: Query[RejectQuery], body: Reject = NO_REASON) -> Approval:
    """Say no. The model is told the reason, which may stand in the body or in the address; that of the body comes
    first. With `instead` it is told what to do instead, with `answer` what a person answers in the tool's place: then
    the status is `answered`. Nothing runs in either case.
    """
    if body.answer:
        decide.answer(approval_id, decider(request), body.answer)
    else:
        why = body.instead or body.reason or given.reason
        decide.decline(approval_id, decider(request), reason=why, suggests=bool(body.instead))
    return _current(request, approval_id)


@router.post("/{uuid:approval_id}/take-back", response=Approval)
def take_back(request: ApiRequest, approval_id: UUID) -> Approval:
    """Withdraw a call that you approved, as long as it has not started; 409 once it has."""
    decide.take_back_approval(approval_id, decider(request))
    return _current(request, approval_id)


@router.post("/{uuid:approval_id}/extend", response=Approval)
def extend(request: ApiRequest, approval_id: UUID, body: Extend = NOTHING_SEEN) -> Approval:
    """Put the deadline off by five minutes, in the last minute of the question; 409 before. At most 30 days in all."""
    editing.extend(approval_id, decider(request), seen=body.deadline)
    return _current(request, approval_id)


@router.post("/{uuid:approval_id}/on-it", response=Approval)
def take_up(request: ApiRequest, approval_id: UUID) -> Approval:
    """Say for five minutes, or five more, that you look at it; 409 if somebody else does. It locks nothing: whoever may
    decide still may.
    """
    handling.take_up(approval_id, decider(request))
    return _current(request, approval_id)


@router.delete("/{uuid:approval_id}/on-it", response=Approval)
def let_go(request: ApiRequest, approval_id: UUID) -> Approval:
    """Say that you are not on it any more."""
    handling.let_go(approval_id, decider(request))
    return _current(request, approval_id)


@router.post("/{uuid:approval_id}/why", response={202: Approval})
def ask_why(request: ApiRequest, approval_id: UUID, body: AskWhy = NO_QUESTION) -> ninja.Status[Approval]:
    """Ask the model of the conversation about a call that waits. Its answer comes into `whys` in some seconds, at most
    60; it is the model's claim, and decides nothing. 409 where there is no model to ask, while it is being asked,
    after three questions, and where its budget is spent.
    """
    asking.ask(approval_id, decider(request), body.question)
    return ninja.Status(202, _current(request, approval_id))


@router.post("/batch", response=BatchOutcomes)
def answer_together(request: ApiRequest, body: Batch) -> BatchOutcomes:
    """Answer several calls to one tool, all below L4. Each is a decision of its own; some may be settled already."""
    items = [batch.Item(item.id, item.consent_digest) for item in body.items]
    outcomes = batch.answer(items, body.verdict, decider(request), reason=body.reason)
    rows = _mine(request, [each.approval for each in outcomes])
    status = dict(rows.values_list("pk", "call__status"))
    return BatchOutcomes(outcomes=[BatchOutcome.of(each, call_status=status[each.approval]) for each in outcomes])


def _mine(request: ApiRequest, among: Collection[UUID] | None = None) -> QuerySet[gate.Approval]:
    return with_all(deciders.seen_by(request.auth.user.pk, among))


def _current(request: ApiRequest, approval_id: UUID) -> Approval:
    return approval(get_object_or_404(_mine(request, [approval_id]), pk=approval_id))


def _grant(row: gate.Grant, *, is_active: bool) -> Grant:
    return Grant.of(row, sentence=scope.sentence(row), state=giving.state(row, is_active=is_active))


def _granted(grant_id: UUID) -> Grant:
    row = get_object_or_404(gate.Grant.objects.select_related("person", "ended_by"), pk=grant_id)
    return _grant(row, is_active=giving.active(gate.Grant.objects.filter(pk=grant_id)).exists())


@grants_router.get("", response=list[Grant], operation_id="hitlchat_api_grants_list_grants")
def list_grants(request: ApiRequest, wanted: Query[GrantFilter]) -> list[Grant]:
    """Your grants, the latest first; of everyone, for administrators."""
    rows = giving.seen_by(request.auth.user)
    chosen = {"active": giving.active(rows), "ended": giving.ended(rows), "all": rows}[wanted.state]
    page = list(wanted.cut(chosen))
    active = set(giving.active(rows).filter(pk__in=[each.pk for each in page]).values_list("pk", flat=True))
    return [_grant(each, is_active=each.pk in active) for each in page]


@grants_router.post("/{uuid:grant_id}/revoke", response=Grant, operation_id="hitlchat_api_grants_revoke_grant")
def revoke_grant(request: ApiRequest, grant_id: UUID) -> Grant:
    """End it at once: what it let in and has not started does not start, and what executes is told to stop. One that
    has ended stays as it ended.
    """
    giving.revoke(grant_id, decider(request))
    return _granted(grant_id)
