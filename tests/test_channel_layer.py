"""The channel layer without Redis: nobody's membership runs out, and its cost does not grow with the pages."""

from typing import Any

import pytest
import time_machine

from hitlchat.base.channel_layer import OneProcess

CAPACITY = 10


class Counted(dict[str, Any]):
    """Channels, and how often all of them were looked through."""

    times = 0

    def items(self) -> Any:
        self.times += 1
        return super().items()


@pytest.fixture
def layer() -> OneProcess:
    made = OneProcess(CAPACITY)
    made.channels = Counted()
    return made


async def test_a_page_that_is_open_for_weeks_hears_what_happens(layer: OneProcess) -> None:
    with time_machine.travel(0, tick=False) as clock:
        await layer.group_add("call", "page")
        for _ in range(30):
            clock.shift(24 * 60 * 60)
            await layer.group_send("call", {"type": "changed"})
            assert await layer.receive("page") == {"type": "changed"}


async def test_the_channels_of_all_pages_are_looked_through_once_a_second(layer: OneProcess) -> None:
    with time_machine.travel(0, tick=False) as clock:
        for page in range(CAPACITY):
            await layer.group_add("call", f"page-{page}")
        for _ in range(3):
            clock.shift(1)
            for _ in range(CAPACITY):
                await layer.group_send("call", {"type": "changed"})
                assert await layer.receive("page-1")
    assert layer.channels.times == 3


async def test_messages_that_nobody_takes_are_dropped_after_a_while(layer: OneProcess) -> None:
    with time_machine.travel(0, tick=False) as clock:
        await layer.send("closed", {"type": "changed"})
        clock.shift(layer.expiry + 1)
        await layer.send("open", {"type": "changed"})
        await layer.receive("open")
    assert "closed" not in layer.channels
