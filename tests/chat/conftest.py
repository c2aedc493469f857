import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from hitlchat.agent import model_client
from hitlchat.agent.models import Conversation
from hitlchat.asgi import household
from hitlchat.record import sealing
from tests.agent.conftest import recorder
from tests.agent.talk import Talk, in_database
from tests.chat.tab import Cookie, Tab, cookie_of
from tests.recorder import Recorder
from tests.scripted_model import ScriptedModel, scripted_model

__all__ = ["recorder", "scripted_model"]

OpenTab = Callable[..., Awaitable[Tab]]
SignIn = Callable[[User], Cookie]


def words(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


@pytest.fixture
def made(bob: User, client: Client) -> Conversation:
    client.force_login(bob)
    return Conversation.objects.create(owner=bob, title="Orders")


@pytest.fixture
def admin(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
async def served(transactional_db: None, scripted_model: ScriptedModel) -> AsyncIterator[None]:
    """The test's event loop is that of the server, sweeper and all; the application itself sees to that."""
    # The seal noted there is that of another test, whose record is gone.
    sealing.mark_file().unlink(missing_ok=True)
    yield
    await household.end()
    await model_client.client(model_client.endpoint()).close()
    model_client.client.cache_clear()
    await in_database(connections.close_all)()


@pytest.fixture
def sign_in() -> SignIn:
    def sign_in(user: User) -> Cookie:
        client = Client()
        client.force_login(user)
        return cookie_of(client)

    return sign_in


@pytest.fixture
def bobs_client(bob: User, transactional_db: None) -> Client:
    client = Client()
    client.force_login(bob)
    return client


@pytest.fixture
def talk(served: None, bob: User, recorder: Recorder) -> Talk:
    return Talk(Conversation.objects.create(owner=bob), bob)


@pytest.fixture
async def open_tab(served: None, talk: Talk, bobs_client: Client) -> AsyncIterator[OpenTab]:
    """Open the page of the conversation, as bob unless told otherwise; the whole state is still to be read."""
    tabs: list[Tab] = []

    async def open_tab(cookie: Cookie | None = None) -> Tab:
        tabs.append(Tab(talk.conversation.pk, cookie_of(bobs_client) if cookie is None else cookie))
        return await tabs[-1].open()

    yield open_tab
    for tab in tabs:
        await tab.close()


@pytest.fixture
async def tab(open_tab: OpenTab) -> Tab:
    """Bob's page, with its first state read."""
    found = await open_tab()
    await found.until('id="turns"')
    return found
