"""Answers being written, as this process's sockets see them: each is rendered once, however many pages are open."""

from collections import OrderedDict

from hitlchat.agent.models import Message
from hitlchat.base.database import in_db
from hitlchat.chat.markdown import OpenTail

MOST = 200

_open: OrderedDict[str, OpenTail] = OrderedDict()


async def follow(message_id: str, base: int, text: str) -> OpenTail | None:
    """Bring the answer up to `text`, which begins at character `base`; None if what precedes it is not stored yet."""
    tail = _open.get(message_id) or _remember(message_id)
    if len(tail.text) < base:
        tail = await catch_up(message_id)
        if len(tail.text) < base:
            return None
    tail.extend(text[len(tail.text) - base :])
    return tail


async def catch_up(message_id: str) -> OpenTail:
    """The answer as far as this process knows it or it is stored, for a page that has just come."""
    stored = await in_db(_stored)(message_id)
    tail = _open.get(message_id) or _remember(message_id)
    tail.extend(stored[len(tail.text) :])
    return tail


def forget(message_id: str) -> None:
    _open.pop(message_id, None)


def _remember(message_id: str) -> OpenTail:
    _open[message_id] = tail = OpenTail()
    if len(_open) > MOST:
        _open.popitem(last=False)
    return tail


def _stored(message_id: str) -> str:
    return Message.objects.filter(pk=message_id).values_list("content", flat=True).first() or ""
