import asyncio
from collections.abc import AsyncIterator

import pytest
from django.contrib.auth.models import User
from django.db import connections
from pytest_django import Settings

from hitlchat.agent import model_client, runner
from hitlchat.agent.models import Conversation
from hitlchat.base.background import background
from tests import recorder as recorders
from tests.agent.talk import Talk, in_database
from tests.outside import outside
from tests.processes import installation, migrated, servers
from tests.recorder import Recorder
from tests.scripted_model import ScriptedModel, scripted_model

__all__ = ["installation", "migrated", "outside", "scripted_model", "servers"]


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
