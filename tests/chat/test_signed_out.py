"""A socket outlives the session it was opened with, and must not go on telling."""

from typing import Any

import pytest
from django.test import Client

from hitlchat.agent import writing
from hitlchat.chat.consumers import CLOSE_SIGNED_OUT
from tests.agent.talk import Talk, in_database
from tests.chat.tab import Tab
from tests.waiting import SECONDS, found

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.servers("Redis announces it after the commit"),
    pytest.mark.slow("waits until the session is looked at again"),
]


async def test_a_page_is_closed_soon_after_its_person_signed_out(talk: Talk, tab: Tab, bobs_client: Client) -> None:
    await in_database(bobs_client.post)("/sign-out")

    async def told() -> dict[str, Any] | None:
        await writing.tell(talk.conversation.pk, "run")
        output: dict[str, Any] = await tab.socket.receive_output(timeout=SECONDS)
        return None if output["type"] == "websocket.send" else output

    assert (await found(told, "the page is closed"))["code"] == CLOSE_SIGNED_OUT
