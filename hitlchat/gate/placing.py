"""Places to run in, and the calls that this process works on.

A source with few places gives a call one before the call is claimed.

A call that finds none stays allowed or approved, with its yes unused, and takes its turn, also after a restart. It is
withdrawn when it found none for TOOL_QUEUE_SECONDS.
"""

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol, runtime_checkable
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base.background import Waker, background
from hitlchat.base.database import in_db
from hitlchat.base.moments import span
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import remark, withdraw

QUEUED: Final = "call.queued"
BEGINNINGS: Final = ("call.allowed", "call.approved")
READY: Final = (Status.ALLOWED, Status.APPROVED)
WAITS: Final = gettext_noop("Waiting for a free worker.")
STARTS: Final = gettext_noop("Starting soon.")
# How soon a call in the queue notices that its server is ending.
SLICE_SECONDS: Final = 1.0
# A call that has been in the queue for too long, as when no server ran, still gets this long.
LEAST_SECONDS: Final = 5.0


class Place(Protocol):
    """The right to run one call."""

    def used(self) -> AbstractContextManager[None]:
        """Run the call, and its preview, inside of this."""

    def leave(self) -> None:
        """Give it back; once is enough."""


class _Anywhere:
    def used(self) -> AbstractContextManager[None]:
        return nullcontext()

    def leave(self) -> None:
        return


ANYWHERE: Final[Place] = _Anywhere()


@runtime_checkable
class PlacingSource(Protocol):
    """A source may offer this too, if it can run only a few calls at a time."""

    def place_now(self, call: ToolCall) -> Place | None:
        """A place for `call`, if one is free; thread-safe, and at once."""

    async def next_place(self, call: ToolCall, seconds: float, since: float) -> Place | None:
        """The next one, if one becomes free in time. It waits since the moment `since` of the monotonic clock."""


@dataclass(eq=False)
class Work:
    """The work of this process on one call that waits for its turn here, is claimed, or executes.

    `place`: where it runs, once it is claimed; `since`: when its lease was taken, by a clock that nobody sets.
    `stop`: set once the call is to stop; there is one while it executes. `has_returned`: its result is being recorded.
    """

    place: Place | None = None
    since: float = 0.0
    stop: Waker | None = None
    has_returned: bool = False


# By the call; each is good for one execution.
works: Final[dict[UUID, Work]] = {}


class NoPlace(Exception):
    """The call has to wait for a place."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"no place is free for call {call.pk}")
        self.call = call


def executing() -> tuple[UUID, ...]:
    """Return the calls that this process executes."""
    return tuple(call_id for call_id, work in [*works.items()] if work.stop is not None)


def is_running(call_id: UUID) -> bool:
    """Return whether this process has claimed the call, and its tool has not returned."""
    work = works.get(call_id)
    return work is not None and work.place is not None and not work.has_returned


def now(source: object, call: ToolCall) -> Place:
    """A place for `call`. NoPlace."""
    if not isinstance(source, PlacingSource):
        return ANYWHERE
    if (place := source.place_now(call)) is None:
        raise NoPlace(call)
    return place


async def turn(source: object, call: ToolCall, seconds: float | None) -> Place | None:
    """A place for `call`, once it is its turn; None if that takes longer than `seconds`, or if the server ends.

    Without `seconds` the call is withdrawn when it has waited for too long.
    """
    try:
        return now(source, call)
    except NoPlace:
        since = time.monotonic()
    assert isinstance(source, PlacingSource)
    left = await in_db(_queued)(call)
    end = since + (left if seconds is None else min(seconds, left))
    while not background.leaving and (remaining := end - time.monotonic()) > 0:
        if (place := await source.next_place(call, min(remaining, SLICE_SECONDS), since)) is not None:
            return place
    if seconds is None and not background.leaving:
        await in_db(withdraw)(call, translatable(f"no worker was free for {span(settings.TOOL_QUEUE_SECONDS)}"))
    return None


def queued_since(call: ToolCall) -> datetime | None:
    """Return since when a call that may start waits for a place; None if it does not."""
    if call.status not in READY:
        return None
    last = call.events.filter(name__in=(QUEUED, *BEGINNINGS)).last()
    return last.at if last is not None and last.name == QUEUED else None


def outlook(call: ToolCall) -> str:
    """Return when a call that may start does so, in words."""
    return WAITS if queued_since(call) else STARTS


def _queued(call: ToolCall) -> float:
    """Put on record that it waits, once; how many seconds it has left."""
    since = queued_since(call)
    if since is None:
        remark(call, QUEUED, actor=SYSTEM)
        since = timezone.now()
    return max(LEAST_SECONDS, (since + timedelta(seconds=settings.TOOL_QUEUE_SECONDS) - timezone.now()).total_seconds())
