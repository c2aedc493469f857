"""A call that finds no free worker keeps its yes, takes its turn, and runs once."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from hitlchat.base.background import background
from hitlchat.gate import stopping
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.decide import take_back
from hitlchat.gate.models import Tool, ToolCall, new_id
from hitlchat.gate.settling import sweep
from hitlchat.gate.status import Status
from hitlchat.sandbox import Share, shares
from tests.conftest import MakeTool, signed_in
from tests.gate.asking import approved, ask, events, fresh, say_yes, status
from tests.processes import Servers, installation, migrated, servers
from tests.waiting import stored, until

__all__ = ["installation", "migrated", "servers"]

pytestmark = pytest.mark.django_db(transaction=True)

SLOW = 'import time\n\n\ndef run() -> str:\n    """Take its time."""\n    time.sleep(25)\n    return "slept"\n'
LOOKS = '\n\ndef preview(text: str = "hello") -> str:\n    """Say what it would do."""\n    return f"says {text}"\n'
ECHO = 'def run(text: str = "hello") -> str:\n    """Say it back."""\n    return text\n'
TEXT = {"text": "hello"}


@pytest.fixture(autouse=True)
def four_workers(settings: Settings, server_loop: None) -> None:
    settings.TOOL_WORKERS = 4
    settings.TOOL_SLEEP_SECONDS = 30


@pytest.fixture
def taken(settings: Settings) -> Iterator[list[Share]]:
    """Every worker, in use by others."""
    settings.TOOL_WORKERS = 2
    held = [share for person in "xy" if (share := shares.now(person))]
    assert len(held) == 2
    yield held
    for share in held:
        share.leave()


@pytest.fixture
def echo(make_tool: MakeTool) -> Tool:
    return make_tool("echo")


def crossing(function: Any) -> Any:
    return database_sync_to_async(function)


async def queued(call: ToolCall) -> None:
    await stored(lambda: stopping.queued_since(fresh(call)), "it waits for a worker")


async def is_settled(call: ToolCall) -> ToolCall:
    await stored(lambda: fresh(call).settled, "it has ended")
    return await crossing(fresh)(call)  # type: ignore[no-any-return]


def free(held: list[Share]) -> None:
    for share in held:
        share.leave()


@pytest.mark.guarantee("gate:at-most-once")
async def test_an_approved_call_without_a_worker_stays_approved_and_runs_once_there_is_one(
    bob: User, echo: Tool, taken: list[Share]
) -> None:
    call = await crossing(approved)(bob, echo, TEXT)
    await queued(call)
    for _ in range(2):
        await crossing(sweep)()
    assert await crossing(status)(call) == Status.APPROVED
    free(taken)
    ended = await is_settled(call)
    assert (ended.status, ended.result) == (Status.SUCCEEDED, "hello")
    told = ["call.waiting", "call.approved", "call.queued", "call.executing", "call.succeeded"]
    assert await crossing(events)(call) == told


async def test_an_allowed_call_takes_its_turn_too(bob: User, make_tool: MakeTool, taken: list[Share]) -> None:
    tool = await crossing(make_tool)("echo", hitl_mode="DISABLED")
    call = await crossing(ask)(bob, tool, TEXT, turn_id=new_id())
    await queued(call)
    free(taken)
    assert (await is_settled(call)).result == "hello"


async def test_an_allowed_call_whose_caller_left_is_withdrawn_and_says_why(
    bob: User, make_tool: MakeTool, taken: list[Share]
) -> None:
    tool = await crossing(make_tool)("echo", hitl_mode="DISABLED")
    call = await crossing(ask)(bob, tool, TEXT, kind="api")
    await queued(call)
    await crossing(ToolCall.objects.filter(pk=call.pk).update)(created_at=timezone.now() - timedelta(hours=1))
    await crossing(sweep)()
    ended = await crossing(fresh)(call)
    assert (ended.status, ended.reason) == (
        Status.WITHDRAWN,
        "Not run: no worker was free while its caller waited.",
    )


async def test_sleeping_tools_of_one_person_leave_workers_for_others(
    bob: User, charlie: User, make_tool: MakeTool, echo: Tool
) -> None:
    slow = await crossing(make_tool)("slow", code=SLOW, hitl_mode="DISABLED", capabilities={"sleep": True})
    sleeping = [await crossing(ask)(bob, slow, {}, turn_id=new_id()) for _ in range(5)]
    await stored(lambda: sum(status(each) == Status.EXECUTING for each in sleeping) == 2, "a share of them runs")
    calls = [await crossing(approved)(charlie, echo, TEXT) for _ in range(4)]
    for call in calls:
        assert (await is_settled(call)).status == Status.SUCCEEDED
    assert [await crossing(status)(each) for each in sleeping].count(Status.ALLOWED) == 3
    for each in sleeping:
        await crossing(stopping.withdraw_call)(each.pk, actor=SYSTEM, why="it waits no longer")
        await crossing(stopping.request)(each.pk, signed_in(bob))


@pytest.mark.guarantee("gate:same-call")
async def test_what_waits_for_a_worker_is_withdrawn_once_it_is_no_longer_what_was_shown(
    bob: User, echo: Tool, taken: list[Share]
) -> None:
    call = await crossing(approved)(bob, echo, TEXT)
    await queued(call)
    await crossing(Tool.objects.filter(pk=echo.pk).update)(definition_hash="f" * 64)
    await crossing(ToolCall.objects.filter(pk=call.pk).update)(created_at=timezone.now() - timedelta(minutes=1))
    await crossing(sweep)()
    assert await crossing(status)(call) == Status.WITHDRAWN
    free(taken)
    assert "call.executing" not in await crossing(events)(call)


async def test_it_can_be_taken_back_while_it_waits_for_a_worker(bob: User, echo: Tool, taken: list[Share]) -> None:
    call = await crossing(approved)(bob, echo, TEXT)
    await queued(call)
    await crossing(take_back)(call.pk, signed_in(bob))
    free(taken)
    await background.drain(10)
    assert await crossing(events)(call) == ["call.waiting", "call.approved", "call.queued", "call.withdrawn"]


async def test_a_preview_without_a_worker_is_no_reason_to_ask_again(
    bob: User, make_tool: MakeTool, settings: Settings
) -> None:
    tool = await crossing(make_tool)("echo", code=ECHO + LOOKS)
    call = await crossing(ask)(bob, tool, TEXT)
    settings.TOOL_WORKERS = 2
    held = [share for person in "xy" if (share := shares.now(person))]
    try:
        await crossing(say_yes)(bob, call)
        await queued(call)
    finally:
        free(held)
    ended = await is_settled(call)
    assert (ended.status, ended.round) == (Status.SUCCEEDED, 1)


@pytest.mark.slow("waits five seconds for a worker")
async def test_it_is_withdrawn_when_none_comes_free_in_time(
    bob: User, echo: Tool, taken: list[Share], settings: Settings
) -> None:
    settings.TOOL_QUEUE_SECONDS = 1
    call = await crossing(approved)(bob, echo, TEXT)
    ended = await is_settled(call)
    assert (ended.status, ended.reason) == (Status.WITHDRAWN, "Not run: no worker was free for 1.0 s.")
    assert ended.started_at is None


async def test_pages_and_rest_say_that_it_waits(bob: User, echo: Tool, taken: list[Share], client: Client) -> None:
    call = await crossing(approved)(bob, echo, TEXT)
    await queued(call)
    await crossing(client.force_login)(bob)
    approval = await crossing(lambda: fresh(call).approval.pk)()
    for path in (f"/approvals/{approval}", f"/history/{call.pk}"):
        answer = await crossing(client.get)(path)
        assert "Waiting for a free worker." in answer.content.decode(), path
    said = (await crossing(client.get)(f"/api/calls/{call.pk}")).json()
    assert (said["status"], said["queuedSince"] is not None) == ("approved", True)
    free(taken)
    await is_settled(call)
    said = (await crossing(client.get)(f"/api/calls/{call.pk}")).json()
    assert (said["status"], said["queuedSince"]) == ("succeeded", None)


@pytest.mark.slow("starts servers and kills one")
@pytest.mark.guarantee("run:survives")
def test_it_survives_the_server_and_runs_once_after_the_restart(servers: Servers) -> None:
    first = servers.start(TOOL_WORKERS="1", TOOL_SLEEP_SECONDS="30")
    servers.home.add_tool("slow", SLOW, hitl_mode="REQUIRED", capabilities={"sleep": True})
    servers.home.add_tool("echo", ECHO, hitl_mode="REQUIRED")
    alice = first.sign_in("alice")

    def say_yes_to(name: str) -> str:
        asked = alice.post(f"/api/tools/{name}/test", {"arguments": {}}).json()
        assert alice.post(f"/api/approvals/{asked['approvalId']}/approve", {}).status_code == 200
        return str(asked["callId"])

    slow, call = say_yes_to("slow"), say_yes_to("echo")
    until(lambda: alice.get(f"/api/calls/{call}").json()["queuedSince"], "it waits for a worker")
    assert alice.get(f"/api/calls/{slow}").json()["status"] == "executing"
    first.kill()
    alice = servers.start(TOOL_WORKERS="1").sign_in("alice")
    until(lambda: alice.get(f"/api/calls/{call}").json()["status"] == "succeeded", "it runs after all")
    until(lambda: alice.get(f"/api/calls/{slow}").json()["status"] == "unknown", "the other is lost")
    said = [event["name"] for event in alice.get("/api/audit").json() if event["callId"] == call]
    assert sorted(said) == ["call.approved", "call.executing", "call.queued", "call.succeeded", "call.waiting"]
