"""Conversations of the signed-in person, and what they say in them."""

import json
from typing import Annotated, Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.text import slugify
from ninja import Header, Query, Router
from ninja.errors import ValidationError
from ninja.responses import NinjaJSONEncoder

from hitlchat.agent import conversations, export, runner, search
from hitlchat.agent.models import Conversation
from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest
from hitlchat.base.download import download
from hitlchat.gate.tools import tools_for

IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern="^[!-~]+$")
]

router = Router(tags=["conversations"], by_alias=True)


@router.get("", response=list[schemas.ConversationSummary])
def list_conversations(
    request: ApiRequest, wanted: Query[schemas.ConversationFilter]
) -> list[schemas.ConversationSummary]:
    """Your conversations, the latest first."""
    rows = _mine(request)
    if wanted.archived is not None:
        rows = rows.filter(archived_at__isnull=not wanted.archived)
    if wanted.search:
        rows = search.matching(rows, wanted.search)
    return [shapes.summary(row) for row in rows[wanted.offset : wanted.offset + wanted.limit]]


@router.post("", response={201: schemas.Conversation})
def create_conversation(request: ApiRequest, body: schemas.NewConversation) -> schemas.Conversation:
    """Begin a conversation. It may use the tools that are named, or all published ones when none are."""
    _check_names(request, body.tools)
    made = conversations.create(request.auth.user, **body.model_dump())
    return shapes.conversation(made)


@router.get("/{uuid:conversation_id}", response=schemas.Conversation)
def read_conversation(request: ApiRequest, conversation_id: UUID) -> schemas.Conversation:
    """The conversation with all its messages and their tool calls, in order."""
    return shapes.conversation(get_object_or_404(_mine(request), pk=conversation_id))


@router.patch("/{uuid:conversation_id}", response=schemas.Conversation)
def change_conversation(
    request: ApiRequest, conversation_id: UUID, body: schemas.ConversationChange
) -> schemas.Conversation:
    """Change what is sent, and nothing else. `tools`: null for all published ones."""
    found = get_object_or_404(_mine(request), pk=conversation_id)
    wanted = body.model_dump(exclude_unset=True)
    if empty := [name for name, value in wanted.items() if value is None and name != "tools"]:
        raise conversations.BadConversation(dict.fromkeys(empty, "Expected a value, or leave it out."))
    _check_names(request, wanted.get("tools"))
    conversations.change(found, **wanted)
    return shapes.conversation(found)


@router.delete("/{uuid:conversation_id}", response={204: None})
def delete_conversation(request: ApiRequest, conversation_id: UUID) -> None:
    """Delete the conversation and its messages.

    Its run ends, and calls that have not started are withdrawn. Calls stay in the history and on the record.
    """
    conversations.delete(get_object_or_404(_mine(request), pk=conversation_id), request.auth.actor)


@router.get("/{uuid:conversation_id}/messages", response=schemas.Messages)
def list_messages(request: ApiRequest, conversation_id: UUID, page: Query[schemas.MessagePage]) -> schemas.Messages:
    """The last messages, or those before one, with their tool calls."""
    return shapes.messages(get_object_or_404(_mine(request), pk=conversation_id), page)


@router.get("/{uuid:conversation_id}/export", response={200: schemas.Conversation})
def export_conversation(
    request: ApiRequest,
    conversation_id: UUID,
    format: Literal["markdown", "json"] = "markdown",  # noqa: A002
) -> HttpResponseBase:
    """The whole conversation as a file: Markdown for people, or JSON as this API has it."""
    found = get_object_or_404(_mine(request), pk=conversation_id)
    name = f"{slugify(found.title)[:60] or 'conversation'}-{found.created_at:%Y-%m-%d}"
    if format == "markdown":
        return download(request, export.as_markdown(found), name=f"{name}.md", kind="text/markdown")
    text = json.dumps(shapes.conversation(found).model_dump(by_alias=True), cls=NinjaJSONEncoder, indent=2)
    return download(request, iter([text]), name=f"{name}.json", kind="application/json")


@router.post("/{uuid:conversation_id}/messages", response={202: schemas.Accepted})
def say(
    request: ApiRequest, conversation_id: UUID, body: schemas.NewMessage, idempotency_key: IdempotencyKey = None
) -> schemas.Accepted:
    """Say something. The assistant begins to work on it; 409 while it still works on the last message.

    With an `Idempotency-Key` the same can be sent again for 24 hours, which says nothing twice and gets the same
    answer; 422 for another message with that key. Keys are each person's own.
    """
    message, run_id = runner.say(
        get_object_or_404(_mine(request), pk=conversation_id), body.content, idempotency_key or ""
    )
    return schemas.Accepted(message_id=message.pk, run_id=run_id)


def _mine(request: ApiRequest) -> QuerySet[Conversation]:
    return conversations.of(request.auth.user)


def _check_names(request: ApiRequest, names: list[str] | None) -> None:
    """A name that is not in the catalog would silently be a tool less."""
    known = set(tools_for(request.auth.caller, names or []).values_list("name", flat=True))
    if missing := [name for name in names or [] if name not in known]:
        said = f"There is no published tool named {missing[0]!r}."
        raise ValidationError([{"type": "unknown_tool", "loc": ("body", "body", "tools"), "msg": said}])
