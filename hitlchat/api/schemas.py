"""Schemas of the REST API by the names of the contract: camelCase outside, ours inside."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from hitlchat.agent.models import LONGEST_MESSAGE
from hitlchat.base.canonical import storable
from hitlchat.gate.history.finding import MEANS
from hitlchat.gate.history.row import CHOICES
from hitlchat.gate.status import Status

Object = dict[str, Any]
ApprovalStatus = Literal["pending", "approved", "declined", "expired", "withdrawn"]


def _storable(text: str) -> str:
    if storable(text) != text:
        raise ValueError("it contains a character that cannot be kept, such as U+0000")
    return text


Text = Annotated[str, AfterValidator(_storable)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), AfterValidator(_storable)]
Said = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_MESSAGE), AfterValidator(_storable)
]
Reason = Annotated[str, StringConstraints(max_length=500), AfterValidator(_storable)]
Limit = Annotated[int, Field(ge=1, le=200)]


class Body(BaseModel):
    """Strict: nothing unknown is let pass, nothing is coerced (SR-13)."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True, frozen=True)


class Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)


class Page(BaseModel):
    limit: Limit = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0


# -- Conversations and runs -------------------------------------------------------------------------------------------


class NewConversation(Body):
    title: Line = ""
    model: Line = ""
    tools: list[Line] | None = None


class ConversationChange(Body):
    title: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    model: Line | None = None
    instructions: str | None = None
    tools: list[Line] | None = None


class ConversationFilter(Page):
    search: Annotated[str, StringConstraints(max_length=200)] = Field(
        "", description="Words that the title, or one message, has; the last one may be only begun."
    )
    archived: bool | None = Field(None, description="Only archived ones, or only others; without it, both.")


class MessagePage(BaseModel):
    limit: Limit = 50
    before: UUID | None = Field(None, description="A message: those before it. Without one, the last ones.")


class NewMessage(Body):
    content: Said


class Accepted(Shape):
    message_id: UUID
    run_id: UUID


class RunState(Shape):
    id: UUID
    conversation_id: UUID
    status: Literal["running", "waiting", "done", "failed", "stopped"]
    error: str | None
    held_back: int = Field(description="Calls that nobody is asked about yet, since enough questions are open.")
    created_at: datetime
    finished_at: datetime | None


class MessageCall(Shape):
    id: UUID
    tool_name: str
    arguments: Object
    status: Status
    result: Any
    error: Object | None
    approval_id: UUID | None
    is_automatic: bool = Field(description="It ran without a person being asked.")


class Message(Shape):
    id: UUID
    role: Literal["user", "assistant", "notice"]
    content: str
    state: Literal["streaming", "complete", "cut"]
    created_at: datetime
    tool_calls: list[MessageCall]


class ConversationSummary(Shape):
    id: UUID
    title: str
    model: str
    tools: list[str] | None
    instructions: str
    pinned: bool
    archived: bool
    created_at: datetime
    updated_at: datetime


class Messages(Shape):
    messages: list[Message] = Field(description="In the order in which they were said.")
    earlier: bool = Field(description="Whether there are others before them.")


class Conversation(ConversationSummary):
    messages: list[Message]


# -- Calls and approvals ----------------------------------------------------------------------------------------------


class Approve(Body):
    modified_arguments: Object | None = None
    consent_digest: str | None = None


class Reject(Body):
    reason: Reason = ""


class RejectQuery(BaseModel):
    reason: Reason = Field("", description="Why, for programs that send no body.")


class Extend(Body):
    # Strict bodies take no text for a moment, and JSON has nothing else.
    deadline: Annotated[AwareDatetime, Field(strict=False)] | None = Field(
        default=None, description="The deadline as you saw it; if it is another by now, it stays as it is."
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
    id: UUID
    counted: bool = Field(description="Whether this answer is the one that counts for this call.")
    detail: str
    call_status: Status


class BatchOutcomes(Shape):
    outcomes: list[BatchOutcome]


class Decision(Shape):
    person: str
    verdict: Literal["approve", "decline"]
    reason: str
    means: str = Field(
        description="How the person was known: session (signed in), token, console, or elicitation: an MCP client said "
        "so, and nobody was signed in."
    )
    client: str | None = Field(description="With elicitation: what the client calls itself, which is only a claim.")
    token: str | None = Field(description="The name of the token that was shown, if there was one and it has a name.")
    decided_at: datetime
    round: int = Field(description="Which time it was asked about, from 1 on.")
    edited_arguments: Object | None
    first_shown_at: datetime | None = Field(
        description="When this person first had the card before them; null: hitlchat knows of no display."
    )
    shown_for_ms: int | None = Field(description="From first display to the answer.")
    opened: bool | None = Field(description="Whether folded text was opened, as the page said; null: none was folded.")
    hurried: bool = Field(description="A yes that came faster than what was shown can plausibly be read.")


class Approval(Shape):
    id: UUID
    call_id: UUID
    tool_name: str
    arguments: Object
    prompt: str
    requested_at: datetime
    deadline: datetime
    session_id: UUID | None
    user_prompt: str
    risk_level: int
    consent_digest: str
    status: ApprovalStatus
    reason: str
    grant_id: UUID | None = Field(description="The grant that was given together with the yes.")
    preview: Object | None = Field(
        description="What the call would do, as the tool's own preview code says: {text, table, error, cut}."
    )
    asked_times: int = Field(
        description="How many identical calls wait. A yes runs one and withdraws the others; a no declines all."
    )
    asked_again: Object | None = Field(
        description="Why it was asked about again after a yes, with the preview that was shown before."
    )
    decided_by: Literal["requester", "approvers", "group"]
    decider_group: str | None = Field(description="The group whose people decide, as it was called then.")
    quorum: int = Field(description="How many different people have to say yes.")
    approved_by: list[str] = Field(description="Who said yes; while it waits, those whose yes counts.")
    who_decides: str = Field(description="All of that in words, as the card says it.")
    decisions: list[Decision]
    call_status: Status
    result: Any
    error: Object | None


class Call(Shape):
    id: UUID
    tool_name: str
    source: str
    arguments: Object
    status: Status
    outcome: str = Field(description="The status, and “nobody_asked” apart from “refused” by a policy.")
    reason: str
    rule: str = Field(description="Fingerprint of the rules under which it was asked, not asked or refused.")
    risk_level: int
    caller: Literal["chat", "studio", "api", "mcp"]
    person: str = Field(description="For whom it was made.")
    conversation_id: UUID | None
    approval_id: UUID | None
    grant_id: UUID | None = Field(description="The grant that it ran on without a person being asked.")
    prompt: str | None = Field(description="The question, as it was put last.")
    consent_digest: str | None
    asked_at: datetime | None = Field(description="When people were asked first.")
    seconds_to_decide: float | None = Field(description="From the first question to the last answer.")
    decisions: list[Decision]
    result: Any
    error: Object | None
    output: str
    requested_at: datetime
    queued_since: datetime | None = Field(description="Since when it waits for a free worker; it may start then.")
    started_at: datetime | None
    settled_at: datetime | None
    duration_ms: float | None
    is_automatic: bool = Field(description="It ran without a person being asked; “reason” says why.")


class ApprovalFilter(Page):
    status: ApprovalStatus | Literal["all"] = "pending"


class CallFilter(BaseModel):
    scope: Literal["mine", "all"] = Field(
        "mine", description="Made for you; or all that you may look at: of everyone, for administrators."
    )
    status: Status | None = None
    outcome: Literal[tuple(CHOICES)] | None = None  # type: ignore[valid-type]
    tool: Text | None = None
    source: Text | None = None
    caller: Literal["chat", "studio", "api", "mcp"] | None = None
    person: Text | None = Field(None, description="The username of whom it was made for.")
    decider: Text | None = Field(None, description="The username of somebody who answered.")
    means: Literal[tuple(MEANS)] | None = Field(  # type: ignore[valid-type]
        None, description="How somebody who answered was known; elicitation: by no more than the word of an MCP client."
    )
    rule: Text | None = None
    risk: Annotated[int, Field(ge=0, le=5)] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = Field(None, description="Only calls from before this moment.")
    hurried: bool = Field(default=False, description="Only calls with an answer faster than the card can be read.")
    conversation: UUID | None = None
    before: UUID | None = Field(None, description="The id of the last call that you have: older ones follow.")
    limit: Limit = 50
