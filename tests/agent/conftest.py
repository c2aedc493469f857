import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing

import pytest
from django.contrib.auth.models import User
from django.db import connections
from pytest_django import Settings

from hitlchat.agent import model_client, request, runner
from hitlchat.agent.answer import Answer
from hitlchat.agent.models import Conversation
from hitlchat.base.background import background
from tests import recorder as recorders
from tests.agent.cast import Cast
from tests.agent.talk import Talk, in_database
from tests.outside import outside
from tests.processes import installation, migrated, servers
from tests.recorder import Recorder
from tests.scripted_model import Reply, ScriptedModel, scripted_model

__all__ = ["installation", "migrated", "outside", "scripted_model", "servers"]

Read = Callable[[Reply], Awaitable[Answer]]


@pytest.fixture
def recorder(settings: Settings) -> Recorder:
    settings.TOOL_SOURCES = recorders.SOURCES
    return recorders.start_over()


@pytest.fixture
async def loop(transactional_db: None, scripted_model: ScriptedModel) -> AsyncIterator[None]:
    """The test's event loop works as that of a server does, without the sweeper."""
    background.adopt(asyncio.get_running_loop())
    yield
    await runner.let_go()
    await background.drain(10)
    background.adopt(None)
    await model_client.client(model_client.endpoint()).close()
    model_client.client.cache_clear()
    # Of the thread that async code shares.
    await in_database(connections.close_all)()


@pytest.fixture
def talk(loop: None, bob: User, recorder: Recorder) -> Talk:
    return Talk(Conversation.objects.create(owner=bob), bob)


@pytest.fixture
async def read(scripted_model: ScriptedModel) -> AsyncIterator[Read]:
    """What one reply of the model server is read as, without a conversation; ModelTrouble if it is no answer."""

    async def read(reply: Reply) -> Answer:
        scripted_model.enqueue(reply)
        where = model_client.endpoint()
        asked = request.request_body(where, ['{"role":"user","content":"Hi"}'], [])
        async with aclosing(request.ask(where, asked)) as pieces:
            *_, answer = [piece async for piece in pieces]
        assert isinstance(answer, Answer)
        return answer

    yield read
    await model_client.client(model_client.endpoint()).close()
    model_client.client.cache_clear()


@pytest.fixture
def cast(scripted_model: ScriptedModel) -> Cast:
    return Cast(scripted_model)
