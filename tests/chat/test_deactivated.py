"""Open pages are closed when their person is deactivated: also pages on which nothing happens."""

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.agent.models import Conversation
from hitlchat.chat.consumers import CHECK_SECONDS, CLOSE_DEACTIVATED
from hitlchat.gate.actor import CONSOLE
from hitlchat.people.membership import deactivate
from tests.agent.talk import in_database
from tests.chat.conftest import OpenTab, SignIn
from tests.chat.tab import Tab
from tests.scripted_model import ScriptedModel, text
from tests.waiting import SECONDS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("Redis announces it after the commit")]


async def closed(tab: Tab) -> int:
    output: dict[str, Any] = {"type": "websocket.send"}
    async with asyncio.timeout(SECONDS):
        while output["type"] == "websocket.send":
            output = await tab.socket.receive_output(timeout=SECONDS)
    return int(output["code"])


async def test_all_pages_of_someone_deactivated_are_closed_at_once_and_say_so(
    bob: User, tab: Tab, open_tab: OpenTab
) -> None:
    another = await open_tab()
    async with asyncio.timeout(CHECK_SECONDS - 1):
        await in_database(deactivate)(bob.pk, CONSOLE)
        assert [await closed(each) for each in (tab, another)] == [CLOSE_DEACTIVATED] * 2


@pytest.mark.slow("waits until the session is looked at again")
async def test_pages_are_closed_also_if_nothing_tells_them(bob: User, tab: Tab, open_tab: OpenTab) -> None:
    another = await open_tab()
    await in_database(User.objects.filter(pk=bob.pk).update)(is_active=False)
    assert [await closed(each) for each in (tab, another)] == [CLOSE_DEACTIVATED] * 2


async def test_pages_of_others_stay_open(
    charlie: User, tab: Tab, sign_in: SignIn, scripted_model: ScriptedModel
) -> None:
    own = await Conversation.objects.acreate(owner=charlie)
    theirs = await Tab(own.pk, await in_database(sign_in)(charlie)).open()
    await in_database(deactivate)(charlie.pk, CONSOLE)
    assert await closed(theirs) == CLOSE_DEACTIVATED
    scripted_model.enqueue(text("Still here."))
    await tab.send(type="say", content="Hello?")
    await tab.until("Still here.")
    await theirs.close()
