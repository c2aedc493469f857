"""The keeper of notices in one server process: looks for what is to be told, makes notices, sends them."""

import asyncio
import logging
from collections import Counter

from django.utils import timezone

from hitlchat.base.background import Worker
from hitlchat.base.database import in_db
from hitlchat.notices import composing, sending
from hitlchat.notices.hearing import Audience, Reading
from hitlchat.notices.models import Notice
from hitlchat.notices.sending import mail, post

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
MOST_AT_ONCE = 100
TIDY_EVERY = 1800


class Keeper:
    """Keeper of one loop. Each delivery is a task of its own, so that none waits for another."""

    def __init__(self) -> None:
        self.worker = Worker("notices", self._take_turn, LOOK_SECONDS)
        self._looks = 0
        self._under_way: dict[asyncio.Task[None], Notice] = {}

    async def work(self) -> None:
        """Work until cancelled; what is under way is then left to the next process."""
        try:
            await self.worker.work()
        finally:
            for task in self._under_way:
                task.cancel()

    async def _take_turn(self) -> None:
        looks, self._looks = self._looks, self._looks + 1
        await self.look(tidy=looks % TIDY_EVERY == 0)

    async def look(self, *, tidy: bool = False) -> None:
        """Take in what happened, make the notices whose time has come, and begin to send what is due."""
        audience = await in_db(Audience)()
        reading = Reading(audience)
        while await in_db(reading.go_on)():
            # A batch at a time: others need the thread of the database too.
            continue
        await in_db(composing.compose)(audience)
        if tidy:
            await in_db(composing.tidy)()
        await self.send()

    async def send(self) -> None:
        busy = Counter(sending.place_of(notice.receiver) for notice in self._under_way.values())
        for notice in await in_db(sending.claim)(MOST_AT_ONCE - len(self._under_way), busy):
            task = asyncio.create_task(self._deliver(notice))
            self._under_way[task] = notice
            task.add_done_callback(self._over)

    async def settled(self) -> None:
        """Wait until nothing is under way."""
        while self._under_way:
            await asyncio.wait(list(self._under_way))

    def _over(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self.worker.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            # Its lease runs out, and it is sent again.
            logger.error("A notice could not be sent", exc_info=error)

    async def _deliver(self, notice: Notice) -> None:
        begun = timezone.now()
        try:
            result = await (mail if notice.receiver.is_mail else post)(notice)
        except asyncio.CancelledError:
            await asyncio.shield(in_db(sending.release)(notice))
            raise
        await in_db(sending.settle)(notice, result, begun)


_keepers: set[Keeper] = set()


async def keep() -> None:
    """The keeper of this process; ends only by being cancelled."""
    keeper = Keeper()
    _keepers.add(keeper)
    try:
        await keeper.work()
    finally:
        _keepers.discard(keeper)


def wake() -> None:
    """Somebody waits for what was just put on its way; from any thread."""
    for keeper in tuple(_keepers):
        keeper.worker.wake()
