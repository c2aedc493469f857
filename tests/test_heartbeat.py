"""The answer to the heartbeat of pages."""

import asyncio
from typing import Any

from channels.testing import ApplicationCommunicator

from hitlchat.asgi import PONG, Heartbeat
from tests.waiting import SECONDS


async def test_a_ping_is_answered_while_what_was_sent_before_is_still_worked_at() -> None:
    taken: list[Any] = []
    done = asyncio.Event()

    async def slow(_scope: Any, receive: Any, send: Any) -> None:
        while (event := await receive())["type"] != "websocket.disconnect":
            taken.append(event["text"])
            await done.wait()
            await send({"type": "websocket.send", "text": "worked"})

    page = ApplicationCommunicator(Heartbeat(slow), {"type": "websocket"})
    for words in ("work", "ping"):
        await page.send_input({"type": "websocket.receive", "text": words})
    assert await page.receive_output(timeout=SECONDS) == PONG
    done.set()
    assert (await page.receive_output(timeout=SECONDS))["text"] == "worked"
    await page.send_input({"type": "websocket.disconnect", "code": 1000})
    await page.wait(timeout=SECONDS)
    assert taken == ["work"]
