"""Conversations of the signed-in person, and what they say in them."""

from typing import Annotated
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Header, Query, Router
from ninja.errors import ValidationError

from hitlchat.agent import runner
from hitlchat.agent.models import Conversation
from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest
from hitlchat.gate.tools import tools_for

IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern="^[!-~]+$")
]

router = Router(tags=["conversations"], by_alias=True)


@router.get("", response=list[schemas.ConversationSummary])
def list_conversations(request: ApiRequest, page: Query[schemas.Page]) -> list[schemas.ConversationSummary]:
    """Your conversations, the latest first."""
    rows = _mine(request)[page.offset : page.offset + page.limit]
    return [shapes.summary(row) for row in rows]


@router.post("", response={201: schemas.Conversation})
def create_conversation(request: ApiRequest, body: schemas.NewConversation) -> schemas.Conversation:
    """Begin a conversation. It may use the tools that are named, or all published ones when none are."""
    _check_names(request, body.tools)
    made = Conversation.objects.create(owner=request.auth.user, **body.model_dump())
    return shapes.conversation(made)


@router.get("/{uuid:conversation_id}", response=schemas.Conversation)
def read_conversation(request: ApiRequest, conversation_id: UUID) -> schemas.Conversation:
    """The conversation with all its messages and their tool calls, in order."""
    return shapes.conversation(get_object_or_404(_mine(request), pk=conversation_id))


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
    return Conversation.objects.filter(owner=request.auth.user)


def _check_names(request: ApiRequest, names: list[str] | None) -> None:
    """A name that is not in the catalog would silently be a tool less."""
    known = set(tools_for(request.auth.caller, names or []).values_list("name", flat=True))
    if missing := [name for name in names or [] if name not in known]:
        said = f"There is no published tool named {missing[0]!r}."
        raise ValidationError([{"type": "unknown_tool", "loc": ("body", "body", "tools"), "msg": said}])
