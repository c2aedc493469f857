"""A yes and the claim that follows from it are one transaction: both are on the disk, or neither."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.db import DatabaseError, Error, OperationalError, connection, connections
from django.db.models.signals import post_save
from pytest_django import Settings

from hitlchat.gate.models import AuditEvent, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import works
from tests.conftest import MakeTool
from tests.gate.asking import ask, events, fresh, say_yes, status
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)

Fault = Callable[[], object]


@pytest.fixture(autouse=True)
def one_worker(settings: Settings, server_loop: None) -> None:
    """A place that is not given back leaves none."""
    settings.TOOL_WORKERS = 1


@pytest.fixture
def echo(make_tool: MakeTool) -> Tool:
    return make_tool("echo")


def statement_fails() -> None:
    raise OperationalError("the database went away")


def commit_fails() -> None:
    AuditEvent.objects.create(name="of nobody", actor_id=2**30, means="web", data={})


@contextmanager
def once_it_starts(fault: Fault) -> Iterator[None]:
    """Do this right after a start was put on record, within its transaction."""

    def listen(instance: AuditEvent, **_: Any) -> None:
        if instance.name == "call.executing":
            fault()

    post_save.connect(listen, sender=AuditEvent)
    try:
        yield
    finally:
        post_save.disconnect(listen, sender=AuditEvent)


def yes_with(fault: Fault, bob: User, call: ToolCall) -> None:
    with once_it_starts(fault), pytest.raises(Error):
        say_yes(bob, call)


@pytest.mark.parametrize("fault", [statement_fails, commit_fails])
@pytest.mark.guarantee("gate:at-most-once")
async def test_a_start_that_cannot_be_stored_leaves_the_call_waiting_and_its_place_free(
    fault: Fault, bob: User, echo: Tool
) -> None:
    call = await database_sync_to_async(ask)(bob, echo, {"text": "hello"})
    await database_sync_to_async(yes_with)(fault, bob, call)
    assert await database_sync_to_async(events)(call) == ["call.waiting"]
    assert call.pk not in works
    await database_sync_to_async(say_yes)(bob, call)
    await stored(lambda: fresh(call).settled, "it has ended")
    assert await database_sync_to_async(status)(call) == Status.SUCCEEDED
    told = ["call.waiting", "call.approved", "call.executing", "call.succeeded"]
    assert await database_sync_to_async(events)(call) == told


@pytest.mark.guarantee("gate:same-call")
async def test_a_call_that_is_no_longer_what_was_shown_is_not_claimed_with_its_yes(bob: User, echo: Tool) -> None:
    call = await database_sync_to_async(ask)(bob, echo, {"text": "hello"})
    await database_sync_to_async(Tool.objects.filter(pk=echo.pk).update)(definition_hash="f" * 64)
    await database_sync_to_async(say_yes)(bob, call)
    await stored(lambda: fresh(call).settled, "it has ended")
    assert await database_sync_to_async(events)(call) == ["call.waiting", "call.approved", "call.withdrawn"]


def yes_whose_connection_stays_durable(bob: User, call: ToolCall) -> None:
    connection.ensure_connection()
    connection.connection.set_authorizer(
        lambda action, name, value, *_: (
            sqlite3.SQLITE_DENY
            if (action, name, value) == (sqlite3.SQLITE_PRAGMA, "synchronous", "NORMAL")
            else sqlite3.SQLITE_OK
        )
    )
    try:
        with pytest.raises(DatabaseError, match="not authorized"):
            say_yes(bob, call)
    finally:
        connections.close_all()


@pytest.mark.guarantee("gate:at-most-once")
async def test_an_error_after_the_commit_takes_nothing_from_the_call_that_runs(bob: User, echo: Tool) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only on SQLite is a connection set back after the commit")
    call = await database_sync_to_async(ask)(bob, echo, {"text": "hello"})
    with ThreadPoolExecutor(1) as pool:
        # The loop stands still meanwhile, so that the call can only begin after the error.
        pool.submit(yes_whose_connection_stays_durable, bob, call).result()
    await stored(lambda: fresh(call).settled, "it has ended")
    assert await database_sync_to_async(status)(call) == Status.SUCCEEDED
