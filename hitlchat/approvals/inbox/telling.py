"""Tells open pages that what waits for their person may have changed. Ids only, a storm of moves in few messages, and
nothing depends on any of it arriving: the pages look by themselves now and then."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection
from threading import Lock
from typing import Any, Final
from uuid import UUID

from channels.layers import get_channel_layer

from hitlchat.base.background import background, layer_errors
from hitlchat.base.database import in_db
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import call_moved

logger = logging.getLogger(__name__)

# A call is in the inbox while it waits; these are the moves into it and out of it.
TOLD: Final = frozenset({Status.WAITING, Status.APPROVED, Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN})
# What happens within this is told together.
COLLECT_SECONDS: Final = 0.1
MOST_IDS: Final = 50
# Of the pages of everyone: who decides a call that has rules of its own is for each of them to ask.
EVERYONE: Final = "inbox.everyone"


def group(user_id: int) -> str:
    """The name of the group of a person's pages."""
    return f"inbox.person.{user_id}"


def listen() -> None:
    call_moved.connect(_on_move, dispatch_uid="inbox")


class Pending:
    """The moves that are not told yet, from all threads of the process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._calls: dict[UUID, None] = {}
        self._begun_on: object = None

    def add(self, call_id: UUID, loop: object) -> bool:
        """Whether nobody is about to tell it: a loop that has ended does not count."""
        with self._lock:
            self._calls[call_id] = None
            is_first, self._begun_on = self._begun_on is not loop, loop
            return is_first

    def take(self) -> list[UUID]:
        with self._lock:
            calls, self._calls, self._begun_on = [*self._calls], {}, None
            return calls


_pending = Pending()


def _on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status in TOLD and background.running and _pending.add(call_id, background.loop):
        background.spawn(_tell_soon)


async def _tell_soon() -> None:
    await asyncio.sleep(COLLECT_SECONDS)
    groups = await in_db(_groups)(_pending.take())
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        for name, asked in groups.items():
            await layer.group_send(name, {"type": "inbox.changed", "asked": asked[:MOST_IDS]})
    except layer_errors() as error:
        logger.warning("The channel layer could not be reached: %s", error)


def _groups(call_ids: Collection[UUID]) -> dict[str, list[str]]:
    """Whose pages are to look, with the calls that wait: of a call without rules of its own, those of its person."""
    found: dict[str, list[str]] = defaultdict(list)
    rows = ToolCall.objects.filter(pk__in=call_ids).order_by()
    for pk, status, caller_id, rules in rows.values_list("pk", "status", "caller_id", "oversight_digest"):
        asked = found[EVERYONE if rules else group(caller_id)]
        if status == Status.WAITING:
            asked.append(str(pk))
    return found
