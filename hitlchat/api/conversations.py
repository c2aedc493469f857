"""Conversations of the signed-in person, and what they say in them."""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet, Subquery
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.text import slugify
from ninja import Header, Query, Router
from ninja.errors import ValidationError
from ninja.responses import NinjaJSONEncoder
from pydantic import BaseModel, Field, StringConstraints, ValidationInfo, field_validator

from hitlchat.agent import (
    branches,
    compaction,
    conversations,
    export,
    limits,
    presets,
    routes,
    runner,
    search,
    tool_sets,
    usage,
)
from hitlchat.agent import models as agent
from hitlchat.agent.endpoints import ENVIRONMENT
from hitlchat.agent.models import LONGEST_MESSAGE
from hitlchat.api import calls
from hitlchat.api.attachments import Attachment, attachment
from hitlchat.api.auth import ApiRequest
from hitlchat.api.contract import STORABLE, Body, Flag, Limit, Line, Name, Object, Page, Shape, Text, read
from hitlchat.base.download import download
from hitlchat.gate import models as gate
from hitlchat.gate import oversight
from hitlchat.gate.history.finding import ran_unasked
from hitlchat.gate.models import Asks, delegation
from hitlchat.gate.status import Status
from hitlchat.gate.tools import AGENT, tools_for

IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern="^[!-~]+$")
]

Said = Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_MESSAGE), STORABLE]

ASKS = (
    "Which calls need approval in this conversation, never fewer than the tools require: “tools”, as the tools "
    "say; “risky”, also every call above L1; “every”, every call. A token of kind “api” cannot make it ask less."
)

TOOLS = "Names of the tools that the conversation may use, picked one by one; null: all published tools."
TOOL_SET = "The name of the tool set that limits the conversation, instead of `tools`; null: none."

ALL_TOOLS = "Allow all published tools, even if an administrator chose a tool set for new conversations."
OWN_TOOLS = "Names of tools; null here and for `toolSet`, without `allTools`: the administrator's choice."

OWN_ENDPOINT = "The endpoint's name, “environment” for that of OPENAI_…; null: the administrator's choice."
OWN_ASKS = "As `asks` of a conversation. A token of kind “api” cannot make new conversations ask less."

NULLABLE = ("tools", "tool_set", *limits.NAMES)

router = Router(tags=["conversations"], by_alias=True)
defaults_router = Router(tags=["conversations"], by_alias=True)


class Limits(Body):
    """Left out they stay as they are; null leaves them to the installation."""

    temperature: float | None = Field(None, description="0 to 2; not sent to a model that reasons first.")
    max_tokens: int | None = Field(None, description="Token limit for one answer: 1 to 1,000,000.")
    max_turns: int | None = Field(None, description="Turns after which a run is stopped: 1 to 100.")


class NewConversation(Limits):
    title: Line = ""
    draft: bool = Field(
        default=False,
        description=("Hidden from lists until a message or setting is stored; removed if that never happens."),
    )
    instructions: str = ""
    endpoint: Line | None = Field(None, description="The endpoint's name; by default that of new conversations.")
    model: Line = Field("", description="A model that the endpoint offers; empty: the endpoint's default.")
    tools: list[Line] | None = Field(None, description=TOOLS)
    tool_set: Text | None = Field(None, description=TOOL_SET)
    preset: Text | None = Field(None, description="The name of a published preset, which supplies everything not sent.")
    asks: Asks | None = Field(None, strict=False, description=f"{ASKS} By default as your new conversations.")


class ConversationChange(Limits):
    title: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    endpoint: Line | None = Field(None, description="The endpoint's name; “environment”: that of OPENAI_….")
    model: Line | None = None
    instructions: str | None = None
    tools: list[Line] | None = Field(None, description=TOOLS)
    tool_set: Text | None = Field(None, description=TOOL_SET)
    asks: Asks | None = Field(None, strict=False, description=ASKS)


class BeginningChange(Limits):
    instructions: str | None = None
    endpoint: Line | None = Field(None, description=OWN_ENDPOINT)
    model: Line = Field("", description="A model that the endpoint offers; empty: the endpoint's default.")
    asks: Asks | None = Field(None, strict=False, description=OWN_ASKS)
    all_tools: bool = Field(default=False, description=ALL_TOOLS)
    tools: list[Line] | None = Field(None, description=OWN_TOOLS)
    tool_set: Text | None = Field(None, description="By name.")


class Beginning(Shape):
    instructions: str
    endpoint: str | None = Field(description=OWN_ENDPOINT)
    model: str
    trouble: str = Field(description="Why new conversations begin with another model; empty if they do not.")
    asks: str = Field(description=OWN_ASKS)
    temperature: float | None
    max_tokens: int | None
    max_turns: int | None
    all_tools: bool = Field(description=ALL_TOOLS)
    tools: list[str] | None = Field(description=OWN_TOOLS)
    tool_set: Name | None


class ConversationFilter(Page):
    search: Annotated[str, StringConstraints(max_length=200)] = Field(
        "", description="Words in the title or in one message; the last may be incomplete."
    )
    archived: bool | None = Field(None, description="true: only archived ones; false: only others.")


class MessagePage(BaseModel):
    limit: Limit = 50
    before: UUID | None = Field(None, description="The id of the first message you have; earlier ones follow.")


class NewMessage(Body):
    attachments: list[Annotated[UUID, Field(strict=False)]] = Field(
        default=[], max_length=100, description="Ids of uploaded files, in order."
    )
    content: Said = Field(description="May be empty if there are attachments.")

    @field_validator("content")
    @classmethod
    def _says_something(cls, content: str, info: ValidationInfo) -> str:
        if not content and not info.data.get("attachments"):
            raise ValueError("Say something, or attach a file")
        return content


class AnswerAgain(Body):
    without_images: bool = False


class Accepted(Shape):
    message_id: UUID
    run_id: UUID


class MessageCall(Shape):
    id: UUID
    tool_name: str
    arguments: Object
    status: Status
    result: Any
    error: Object | None
    approval_id: UUID | None
    agent_conversation_id: UUID | None = Field(description="Of a call to an agent: the conversation in which it works.")
    is_automatic: bool = Field(description="Whether the call ran without asking a person.")


class Message(Shape):
    id: UUID
    role: Literal["user", "assistant", "notice", "summary"]
    content: str
    reasoning: str = Field(
        description="The model's reasoning, which the page shows folded; empty if the model server reports none."
    )
    state: Literal["streaming", "complete", "cut"]
    created_at: datetime
    attachments: list[Attachment]
    tool_calls: list[MessageCall]
    stands_for: list[UUID] = Field(
        description="Of a summary: the messages in whose place the model reads it, results of calls among them."
    )
    undone: bool = Field(description="Of a summary: the model reads the messages themselves.")
    usage: calls.Usage | None = Field(description="For an answer whose model server reported tokens.")
    version: int | None = Field(description="For a person's message: its number among `versions`, starting with 1.")
    versions: list[UUID] = Field(
        description="The alternative versions of this message, oldest first; empty if there is only one."
    )


class ConversationSummary(Shape):
    id: UUID
    title: str
    endpoint: str = Field(description="The endpoint's name; “environment”: that of OPENAI_….")
    model: str
    trouble: str = Field(description="Why no model is available, and what to do; empty if one is.")
    tools: list[str] | None = Field(description="Names of tools that may be used now; null: all published ones.")
    tool_set: Name | None = Field(description="The tool set that limits the conversation and has these tools.")
    tool_trouble: str = Field(description="Why the conversation may use no tools; empty if it may use some.")
    preset: str = Field(description="The preset at the start, by its name at the time; empty for none.")
    least_asks: str = Field(description="The least value of `asks` that the preset allows; empty without one.")
    instructions: str
    temperature: float | None = Field(description="The conversation's own; null: the installation's, if any.")
    max_tokens: int | None
    max_turns: int | None
    agent_call_id: UUID | None = read("call_id", "The agent call that this conversation serves; null in your own.")
    asks: str = Field(description="Which calls need approval in this conversation; an unknown word means every call.")
    pinned: Flag = read("pinned_at")
    archived: Flag = read("archived_at")
    created_at: datetime
    updated_at: datetime


class Messages(Shape):
    messages: list[Message] = Field(description="In chronological order.")
    earlier: bool = Field(description="Whether there are earlier messages.")


class Conversation(ConversationSummary):
    messages: list[Message]
    usage: calls.Usage | None = Field(description="Total of all answers, including other versions and the title.")


def summary(row: agent.Conversation, asks: str) -> ConversationSummary:
    reach = tool_sets.of(row)
    return ConversationSummary.of(
        row,
        tools=None if reach.names is None else sorted(reach.names),
        tool_trouble=reach.why,
        asks=asks,
        endpoint=row.endpoint.name if row.endpoint else ENVIRONMENT,
        trouble=routes.trouble(row),
    )


def conversation(row: agent.Conversation) -> Conversation:
    rows = list(row.messages.shown().exclude(role=agent.Role.TOOL).prefetch_related("attachments"))
    listed = _messages(rows, calls.rows().filter(conversation_id=row.pk))
    used = calls.usage_of(usage.of_conversation(row.pk))
    return Conversation.of(summary(row, oversight.strictness_of(row.pk)), messages=listed, usage=used)


def messages(row: agent.Conversation, wanted: MessagePage) -> Messages:
    rows = row.messages.shown().exclude(role=agent.Role.TOOL).prefetch_related("attachments").order_by("-seq")
    if wanted.before is not None:
        # Of no message there is nothing before it.
        rows = rows.filter(seq__lt=Subquery(row.messages.filter(pk=wanted.before).order_by().values("seq")))
    found = list(rows[: wanted.limit + 1])
    shown = found[: wanted.limit][::-1]
    listed = _messages(shown, calls.rows().filter(turn_id__in=[each.pk for each in shown]))
    return Messages(messages=listed, earlier=len(found) > wanted.limit)


def _messages(rows: list[agent.Message], tool_calls: QuerySet[gate.ToolCall]) -> list[Message]:
    by_turn: dict[UUID | None, list[MessageCall]] = defaultdict(list)
    found = list(tool_calls.order_by("position", "created_at"))
    begun = delegation.begun_by([each.pk for each in found if each.source == AGENT])
    for each in found:
        call = MessageCall.of(
            each,
            agent_conversation_id=begun.get(each.pk),
            error=calls.error(each),
            approval_id=calls.approval_id(each),
            is_automatic=ran_unasked(each),
        )
        by_turn[each.turn_id].append(call)
    versions = branches.versions(rows)
    used = usage.of_messages(rows[0].conversation_id, [row.pk for row in rows]) if rows else {}
    return [
        Message.of(
            row,
            attachments=[attachment(each) for each in row.attachments.all()],
            tool_calls=by_turn[row.pk],
            stands_for=row.stands_for or [],
            version=versions[row.pk].place if row.pk in versions else None,
            versions=list(versions[row.pk].messages) if row.pk in versions else [],
            usage=calls.usage_of(used.get(row.pk)),
        )
        for row in rows
    ]


@defaults_router.get("", response=Beginning)
def read_defaults(request: ApiRequest) -> Beginning:
    """What your new conversations begin with; null or empty: as the installation has it."""
    row = limits.own_defaults(request.auth.user)
    _route, trouble = routes.usual(request.auth.user)
    endpoint = (row.endpoint.name if row.endpoint else ENVIRONMENT) if row.chooses_model else None
    return Beginning.of(row, endpoint=endpoint, trouble=trouble)


@defaults_router.patch("", response=Beginning)
def change_defaults(request: ApiRequest, body: BeginningChange) -> Beginning:
    """Change what your new conversations begin with: what is sent, and nothing else. Asking less is for people: 403."""
    nullable = (*NULLABLE, "endpoint")
    conversations.begin_so(request.auth.user, actor=request.auth.actor, **_changes(request, body, nullable))
    return read_defaults(request)


@router.get("", response=list[ConversationSummary])
def list_conversations(request: ApiRequest, wanted: Query[ConversationFilter]) -> list[ConversationSummary]:
    """Your conversations, the latest first; those of agents are found by the calls that began them."""
    rows = _mine(request).filter(call=None)
    if wanted.archived is not None:
        rows = rows.filter(archived_at__isnull=not wanted.archived)
    if wanted.search:
        rows = search.matching(rows, wanted.search)
    found = list(wanted.cut(rows))
    asks = oversight.strictness_of_each([row.pk for row in found])
    return [summary(row, asks[row.pk]) for row in found]


@router.post("", response={201: Conversation})
def create_conversation(request: ApiRequest, body: NewConversation) -> Conversation:
    """Begin a conversation. What is not sent is as its preset says, or as your conversations begin.

    With `tools` null it may use all published ones.
    """
    _check_names(request, body.tools)
    given = body.model_dump(exclude={"endpoint", "preset"}, exclude_unset=True)
    preset = None if body.preset is None else presets.named(body.preset)
    if body.endpoint is not None:
        given |= routes.columns(body.endpoint, body.model)
    made = conversations.create(request.auth.user, actor=request.auth.actor, preset=preset, **given)
    return conversation(made)


@router.get("/{uuid:conversation_id}", response=Conversation)
def read_conversation(request: ApiRequest, conversation_id: UUID) -> Conversation:
    """The conversation with all its messages and their tool calls, in order."""
    return conversation(_one(request, conversation_id))


@router.patch("/{uuid:conversation_id}", response=Conversation)
def change_conversation(request: ApiRequest, conversation_id: UUID, body: ConversationChange) -> Conversation:
    """Change what is sent, and nothing else. Asking less is for people: 403.

    Calls that have not started and are of none of its tools any more are withdrawn.
    """
    found = _one(request, conversation_id)
    conversations.change(found, actor=request.auth.actor, **_changes(request, body))
    return conversation(found)


@router.delete("/{uuid:conversation_id}", response={204: None})
def delete_conversation(request: ApiRequest, conversation_id: UUID) -> None:
    """Delete the conversation and its messages.

    Its run ends, and calls that have not started are withdrawn. Calls stay in the history and on the record.
    """
    conversations.delete(_one(request, conversation_id), request.auth.actor)


@router.get("/{uuid:conversation_id}/messages", response=Messages)
def list_messages(request: ApiRequest, conversation_id: UUID, page: Query[MessagePage]) -> Messages:
    """The last messages, or those before one, with their tool calls."""
    return messages(_one(request, conversation_id), page)


@router.get("/{uuid:conversation_id}/export", response={200: Conversation})
def export_conversation(
    request: ApiRequest,
    conversation_id: UUID,
    format: Literal["markdown", "json"] = "markdown",  # noqa: A002
) -> HttpResponseBase:
    """The whole conversation as a file: Markdown for people, or JSON as this API has it."""
    found = _one(request, conversation_id)
    name = f"{slugify(found.title)[:60] or 'conversation'}-{found.created_at:%Y-%m-%d}"
    if format == "markdown":
        return download(request, export.as_markdown(found), name=f"{name}.md", kind="text/markdown")
    text = json.dumps(conversation(found).model_dump(by_alias=True), cls=NinjaJSONEncoder, indent=2)
    return download(request, iter([text]), name=f"{name}.json", kind="application/json")


@router.post("/{uuid:conversation_id}/messages", response={202: Accepted})
def say(
    request: ApiRequest, conversation_id: UUID, body: NewMessage, idempotency_key: IdempotencyKey = None
) -> Accepted:
    """Say something. The assistant begins to work on it; 409 while it still works on the last message.

    With an `Idempotency-Key` the same can be sent again for 24 hours, which says nothing twice and gets the same
    answer; 422 for another message with that key. Keys are each person's own.
    """
    found = _one(request, conversation_id)
    message, run_id = runner.say(found, body.content, idempotency_key or "", body.attachments)
    return Accepted(message_id=message.pk, run_id=run_id)


@router.post("/{uuid:conversation_id}/messages/{uuid:message_id}/edit", response={202: Accepted})
def edit_message(request: ApiRequest, conversation_id: UUID, message_id: UUID, body: NewMessage) -> Accepted:
    """Say something in place of what you said there: the assistant goes on from it; 409 while it still works.

    What was there before stays as a version, and calls that ran stay done. `attachments` replace the files that were
    there; without any these go along.
    """
    return _instead(request, conversation_id, message_id, body.content, body.attachments or None)


@router.post("/{uuid:conversation_id}/messages/{uuid:message_id}/regenerate", response={202: Accepted})
def answer_again(
    request: ApiRequest, conversation_id: UUID, message_id: UUID, body: AnswerAgain | None = None
) -> Accepted:
    """Have the assistant answer once more what led to this message, in a version of its own; 409 while it still works.

    Calls that ran stay done; one that comes up again needs an answer of its own. With `{"withoutImages": true}`, after
    the model server refused images, the model of this conversation is sent none from now on.
    """
    without_images = body is not None and body.without_images
    return _instead(request, conversation_id, message_id, None, without_images=without_images)


@router.post("/{uuid:conversation_id}/messages/{uuid:message_id}/show", response=Messages)
def show_version(request: ApiRequest, conversation_id: UUID, message_id: UUID) -> Messages:
    """Show the version of the conversation that has this message: its last messages; 409 while the assistant works.

    People see that version, and the model reads it, until another one is shown.
    """
    found = _one(request, conversation_id)
    branches.switch(found.pk, _run_of(found, message_id))
    return messages(found, MessagePage(before=None))


@router.post("/{uuid:conversation_id}/messages/{uuid:message_id}/undo", response=Messages)
def undo_summary(request: ApiRequest, conversation_id: UUID, message_id: UUID) -> Messages:
    """Send the model what this summary stands for whole again; 409 while the assistant works."""
    return _undo(request, conversation_id, message_id, undone=True)


@router.post("/{uuid:conversation_id}/messages/{uuid:message_id}/redo", response=Messages)
def redo_summary(request: ApiRequest, conversation_id: UUID, message_id: UUID) -> Messages:
    """Send the model the summary again that was undone; 409 while the assistant works."""
    return _undo(request, conversation_id, message_id, undone=False)


def _undo(request: ApiRequest, conversation_id: UUID, message_id: UUID, *, undone: bool) -> Messages:
    found = _one(request, conversation_id)
    compaction.undo(found.pk, message_id, undone=undone)
    return messages(found, MessagePage(before=None))


def _instead(
    request: ApiRequest,
    conversation_id: UUID,
    message_id: UUID,
    content: str | None,
    attached: Sequence[UUID] | None = None,
    *,
    without_images: bool = False,
) -> Accepted:
    found = _one(request, conversation_id)
    run_id = runner.instead(found, _run_of(found, message_id), content, attached, without_images=without_images)
    return Accepted(message_id=branches.begins_with(run_id), run_id=run_id)


def _run_of(conversation: agent.Conversation, message_id: UUID) -> UUID:
    """Return the run of a message that people see. Raises: Http404"""
    rows = conversation.messages.exclude(role=agent.Role.TOOL).exclude(run=None)
    run_id = get_object_or_404(rows, pk=message_id).run_id
    assert run_id is not None
    return run_id


def _mine(request: ApiRequest) -> QuerySet[agent.Conversation]:
    return conversations.of(request.auth.user).select_related("endpoint", "tool_set")


def _one(request: ApiRequest, conversation_id: UUID) -> agent.Conversation:
    return get_object_or_404(_mine(request), pk=conversation_id)


def _changes(
    request: ApiRequest, body: ConversationChange | BeginningChange, nullable: tuple[str, ...] = NULLABLE
) -> dict[str, Any]:
    """Return what was sent. Raises: BadConversation, ValidationError"""
    sent = body.model_dump(exclude_unset=True)
    if empty := [name for name, value in sent.items() if value is None and name not in nullable]:
        raise conversations.BadConversation(dict.fromkeys(empty, "Expected a value, or leave it out."))
    _check_names(request, body.tools)
    return sent


def _check_names(request: ApiRequest, names: list[str] | None) -> None:
    """Refuse names that are not in the catalog: they would silently be ignored."""
    catalog = set(tools_for(request.auth.caller, names or []).values_list("name", flat=True))
    if missing := [name for name in names or [] if name not in catalog]:
        message = f"There is no published tool named {missing[0]!r}."
        raise ValidationError([{"type": "unknown_tool", "loc": ("body", "body", "tools"), "msg": message}])
