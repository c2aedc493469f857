"""Waking what waits on one event loop from whichever thread has the news."""

import asyncio


class Waker(asyncio.Event):
    """An event that can be set from the thread in which a transaction was committed. Of the loop that makes it."""

    def __init__(self) -> None:
        super().__init__()
        self._home = asyncio.get_running_loop()

    def wake(self) -> None:
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self.set)
