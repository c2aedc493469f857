"""Listens to upstream servers while a call executes, and to grants, for the pages of a conversation."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from hitlchat.agent import writing

if TYPE_CHECKING:
    from hitlchat.upstreams.client.link import Step

LONGEST_MESSAGE = 200


def on_progress(*, call_id: UUID, conversation_id: UUID | None, step: "Step", **_: Any) -> None:
    if conversation_id is not None:
        said = {"done": step.progress, "total": step.total, "message": step.message[:LONGEST_MESSAGE]}
        writing.tell_soon(conversation_id, "progress", call=str(call_id), **said)


def on_question(*, call_id: UUID, conversation_id: UUID | None, turn_id: UUID | None, **_: Any) -> None:
    if conversation_id is not None:
        writing.tell_soon(conversation_id, "question", call=str(call_id), turn=str(turn_id))


def on_grant(*, conversation_id: UUID | None, **_: Any) -> None:
    if conversation_id is not None:
        writing.tell_soon(conversation_id, "grants")
