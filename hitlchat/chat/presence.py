"""Open pages, by the person who looks at them: they are closed when that person is deactivated, in whatever process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import django.db
from django.contrib.auth.models import User

from hitlchat.base.database import in_db

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0

Leave = Callable[[], Awaitable[None]]


class Presence:
    """Looks at everyone with an open page once a second, all in one go, and closes the pages of who may not stay."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._open: dict[int, set[Leave]] = {}
        self._watch: asyncio.Task[None] | None = None

    def enter(self, user_id: int, leave: Leave) -> None:
        """From now on `leave` is called once this person is deactivated."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._open, self._watch = loop, {}, None
        self._open.setdefault(user_id, set()).add(leave)
        if self._watch is None or self._watch.done():
            self._watch = loop.create_task(self._look(self._open))

    def exit(self, user_id: int, leave: Leave) -> None:
        leaves = self._open.get(user_id, set())
        leaves.discard(leave)
        if not leaves:
            self._open.pop(user_id, None)
        if not self._open and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _look(self, everyone: dict[int, set[Leave]]) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if not everyone:
                return
            try:
                gone = set(everyone) - await in_db(_active)(list(everyone))
            except django.db.Error:
                logger.exception("Looking for people who were deactivated failed; it is tried again")
                continue
            leaving = [leave() for user_id in gone for leave in everyone.pop(user_id, ())]
            for ended in await asyncio.gather(*leaving, return_exceptions=True):
                if isinstance(ended, Exception):
                    logger.error("A page of someone deactivated could not be closed", exc_info=ended)


def _active(user_ids: list[int]) -> set[int]:
    return set(User.objects.filter(pk__in=user_ids, is_active=True).values_list("pk", flat=True))


presence = Presence()
