"""The people and tools that tests speak of: alice authors, bob approves his own calls, charlie must see nothing."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import hypothesis
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone

from hitlchat import sandbox
from hitlchat.base.background import background
from hitlchat.base.database import in_db
from hitlchat.gate import decide, planted
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.emptying import django_db_setup
from tests.template import django_db_keepdb
from tools_studio import authoring
from tools_studio.spec import Draft

__all__ = ["django_db_keepdb", "django_db_setup"]

pytest_plugins = ["tests.services"]


def pytest_configure() -> None:
    """Passwords are hashed as fast as possible: their strength is Django's to test. No test has to be fast."""
    # Django makes the test database with the mode that this leaves, and each new program would tighten it, and say so.
    os.umask(0o077)
    # A shell that starts us in the background has us, and whatever we start, ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.settings.register_profile("tests", deadline=None)
    hypothesis.settings.load_profile("tests")
    # Each test client is a program that begins anew: it would list all static files first.
    settings.WHITENOISE_AUTOREFRESH = True
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each worker begins with its share of the longest: at the end all the others would wait for one of them.

    Of the list that this leaves, pytest-xdist gives to each worker a part, one after the other.
    """
    longest = [item for item in items if any(mark.args[0] >= LONG_SECONDS for mark in item.iter_markers("timeout"))]
    others = [item for item in items if item not in longest]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    left, items[:] = len(items), []
    for number in range(workers):
        share = longest[number::workers]
        size = left // (workers - number)
        left -= size
        rest = max(0, size - len(share))
        items += [*share, *others[:rest]]
        del others[:rest]
    items += others


PASSWORD = "a long enough pass phrase"
# What a test that may run for minutes allows itself.
LONG_SECONDS = 600
ECHO = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'

MakeTool = Callable[..., Tool]


@pytest.fixture(autouse=True)
def _nothing_is_announced() -> Iterator[None]:
    """Whether attention checks are on is known to the process, which outlives what a test announced."""
    yield
    planted.switch.on = False


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_superuser("alice", password=PASSWORD)


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob", password=PASSWORD)


@pytest.fixture
def charlie(db: None) -> User:
    return User.objects.create_user("charlie", password=PASSWORD)


@pytest.fixture
def make_tool(alice: User) -> MakeTool:
    """Make a published authored tool; keyword arguments are those of a Draft."""

    def make(name: str = "echo", *, published: bool = True, **fields: Any) -> Tool:
        fields.setdefault("code", ECHO)
        fields.setdefault("hitl_mode", "REQUIRED")
        tool = authoring.create(Draft(name=name, **fields), signed_in(alice), confirmed=True)
        if published:
            tool.published = True
            tool.save(update_fields=["published"])
        return tool

    return make


@pytest.fixture
async def server_loop() -> AsyncIterator[None]:
    """As in a server: what may run is started by itself, and ends when the test does."""
    background.adopt(asyncio.get_running_loop())
    yield
    background.leaving = True
    await background.drain(10)
    background.adopt(None)
    await sandbox.close()
    # Of the thread that async code shares.
    await in_db(connections.close_all)()


def caller(user: User, kind: Any = "chat") -> Caller:
    return Caller(kind, user.pk, user.get_username())


def tried(tool: Tool, user: User, **arguments: Any) -> ToolCall:
    """A test run by `user`, with a yes if it asks, as it was settled."""
    call = async_to_sync(submit)(CallRequest(tool.name, arguments, caller(user, "studio")))
    if call.status == Status.WAITING:
        decide.approve(call.approval.pk, signed_in(user))
    return async_to_sync(settled)(call.pk, 30.0)


def signed_in(user: User) -> Actor:
    return Actor(user.pk, "session", signed_in_at=timezone.now())
