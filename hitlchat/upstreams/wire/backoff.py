"""How long to wait before the next attempt: longer each time, and never for everyone the same."""

import asyncio
import random
from contextlib import suppress

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0


class Backoff:
    def __init__(self) -> None:
        self._pause = FIRST_PAUSE_SECONDS

    def start_over(self) -> None:
        self._pause = FIRST_PAUSE_SECONDS

    async def wait(self, hurry: asyncio.Event) -> None:
        """`hurry` cuts it short, but not below the first pause."""
        seconds = self._pause * random.uniform(0.8, 1.2)  # noqa: S311
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        await asyncio.sleep(min(seconds, FIRST_PAUSE_SECONDS))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds - FIRST_PAUSE_SECONDS):
                await hurry.wait()
