"""An answer while it is being written: coalesced, stored now and then, and told to open pages, as other changes are."""

import asyncio
import logging
import time
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from channels.layers import get_channel_layer

from hitlchat.agent import transcript
from hitlchat.agent.answer import Answer, Reading
from hitlchat.agent.models import Message
from hitlchat.agent.runs import Claim, LostClaim
from hitlchat.base.background import background, layer_errors, me
from hitlchat.base.database import in_db

# How often open pages are told of new text, and by how much less often for each answer that is being written: fifty at
# once go on ten times in a second, which nobody feels, and pages take a quarter of the processor's time.
FLUSH_SECONDS: Final = 0.025
FLUSH_SECONDS_EACH: Final = 0.002
STORE_SECONDS: Final = 1.0
STORE_CHARACTERS: Final = 2048

logger = logging.getLogger(__name__)

_open: "dict[UUID, Writing]" = {}


class Writing:
    """An answer while it is written.

    Each event carries all text since the last stored point, so that a page that lost one, or joins late, needs only
    what is stored besides.
    """

    def __init__(self, claim: Claim, message: Message, reading: Reading) -> None:
        self._claim, self._message, self._reading = claim, message, reading
        self._parts: list[str] = []
        self._tail = ""
        # So many parts are in the tail or stored; so many characters, and so many of the thoughts, are stored.
        self._flushed = self._stored = self._thoughts_stored = 0
        self._looked_at = time.monotonic()

    @property
    def so_far(self) -> Answer:
        return replace(self._reading.so_far(), text="".join(self._parts))

    def feed(self, text: str) -> None:
        self._parts.append(text)

    async def run(self) -> None:
        """Flush until cancelled. LostClaim when the run is no longer this process's."""
        _open[self._claim.run_id] = self
        try:
            while True:
                await asyncio.sleep(max(FLUSH_SECONDS, FLUSH_SECONDS_EACH * len(_open)))
                await self._flush()
        finally:
            if _open.get(self._claim.run_id) is self:
                del _open[self._claim.run_id]

    async def _flush(self) -> None:
        if self._flushed < len(self._parts):
            self._tail += "".join(self._parts[self._flushed :])
            self._flushed = len(self._parts)
            await self._announce()
        due, thoughts = time.monotonic() - self._looked_at >= STORE_SECONDS, ""
        if due:
            self._looked_at = time.monotonic()
            # Each time all of them are written: so only once there are a quarter more than are stored.
            thoughts = self._reading.so_far().reasoning
            thoughts = thoughts if len(thoughts) > self._thoughts_stored * 5 / 4 else ""
        if thoughts or (self._tail and (due or len(self._tail) >= STORE_CHARACTERS)):
            await self._store(thoughts)

    async def _announce(self) -> None:
        await tell(
            self._claim.conversation_id, "delta", message=str(self._message.pk), base=self._stored, text=self._tail
        )

    async def _store(self, thoughts: str) -> None:
        text, self._tail = self._tail, ""
        self._thoughts_stored = len(thoughts) or self._thoughts_stored
        self._stored += len(text)
        self._looked_at = time.monotonic()
        if not await in_db(transcript.append)(self._message.pk, self._claim.token, text, thoughts):
            raise LostClaim("the answer is no longer wanted")
        # Says how much is stored now, so that a page that missed text gets it also while the model pauses.
        await self._announce()


def group(conversation_id: UUID) -> str:
    return f"conversation.{conversation_id}"


def group_of_person(user_id: int) -> str:
    return f"user.{user_id}"


async def tell(conversation_id: UUID, kind: str, **event: Any) -> None:
    """Send one event to the pages of a conversation; a channel layer that is down costs liveness, nothing else."""
    await _send(group(conversation_id), _event(kind, event))


def tell_soon(conversation_id: UUID, kind: str, **event: Any) -> None:
    """The same from any thread."""
    background.spawn(_send, group(conversation_id), _event(kind, event))


def close_pages_soon(user_id: int) -> None:
    background.spawn(_send, group_of_person(user_id), {"type": "person.deactivated"})


def so_far(run_id: UUID) -> Answer | None:
    """Return what this process has of the answer that it is writing for a run; None if it is writing none."""
    found = _open.get(run_id)
    return found.so_far if found else None


def is_before(event: dict[str, Any], moment: float) -> bool:
    """Return whether an event was told before this moment of this process's clock; False if another process told it."""
    return bool(event["teller"] == me() and event["at"] < moment)


def _event(kind: str, event: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"conversation.{kind}", "teller": me(), "at": time.monotonic(), **event}


async def _send(to: str, event: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        await layer.group_send(to, event)
    except layer_errors() as error:
        logger.warning("The channel layer could not be reached: %s", error)
