"""Tells open pages that something changed. Ids and stored-anyway text only; nothing depends on an event arriving."""

import logging
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer

from hitlchat.base.background import background, layer_errors

logger = logging.getLogger(__name__)


def group(conversation_id: UUID) -> str:
    return f"conversation.{conversation_id}"


async def tell(conversation_id: UUID, kind: str, **event: Any) -> None:
    """Send one event to the pages of a conversation; a channel layer that is down costs liveness, nothing else."""
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(group(conversation_id), {"type": f"conversation.{kind}", **event})
    except layer_errors() as error:
        logger.warning("The channel layer could not be reached: %s", error)


def tell_soon(conversation_id: UUID, kind: str, **event: Any) -> None:
    """The same from any thread."""
    background.spawn(_tell, conversation_id, kind, event)


async def _tell(conversation_id: UUID, kind: str, event: dict[str, Any]) -> None:
    await tell(conversation_id, kind, **event)
