"""A program that means no good, through the gate: the truth is told of it, and nobody else notices anything."""

import asyncio
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams.models import ServerState
from tests.upstreams.client.upstreams import written
from tests.upstreams.gated import (
    asked,
    called,
    exposed,
    is_in,
    is_published,
    known,
    now,
    offering,
    program,
    reached,
    read,
    settled,
    unharmed,
    unreported,
    yes,
)
from tests.upstreams.hostile_tools import DRESS, dressed
from tests.waiting import stored

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("allow_stdio", "serving"),
]


# What becomes of a call, and what the model reads of it: one of each kind, of which client/test_hostile.py has more.
ENDINGS = {
    "large": (Status.FAILED, "It was run, but its result has 2,000,002 bytes; at most 1,048,576 can be stored."),
    "error": (Status.FAILED, r"answered with an error instead (-32099): <b>no\\x1b[31m</b>"),
    "password": (Status.SUCCEEDED, '"action": "cancel"'),
    "flood": (Status.SUCCEEDED, "after the flood"),
    "fine": (Status.SUCCEEDED, "fine"),
    "silent": (Status.UNKNOWN, "it may or may not have happened. Do not repeat it."),
    "endless": (Status.UNKNOWN, "it may or may not have happened. Do not repeat it."),
    "die": (Status.UNKNOWN, "it may or may not have happened. Do not repeat it."),
}


UNANSWERED = {"silent", "endless"}


@pytest.mark.guarantee("gate:truth", "gate:at-most-once")
async def test_whatever_a_tool_does_its_call_ends_as_it_was_and_was_made_once(
    alice: User, bob: User, neighbour: Tool, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    server = await in_db(program)(alice, env={"LOG": log})
    # What is answered may take its time; what is not is given up soon.
    hasty = await in_db(program)(alice, name="hasty", env={"LOG": log}, call_seconds=3)
    tools = await exposed(alice, server, *ENDINGS) | await exposed(alice, hasty, *UNANSWERED)

    async def end(name: str) -> None:
        status, words = ENDINGS[name]
        call = await reached(bob, tools[name])
        told = await read(call)
        assert (call.status, words in told, name) == (status, True, name), told[:500]
        assert len(told) < 17_000

    async with unharmed(bob, neighbour):
        waiting = asyncio.gather(*map(end, UNANSWERED))
        for name in ENDINGS.keys() - UNANSWERED:
            await end(name)
        await waiting
    assert sorted(written(log).split()) == sorted(ENDINGS)
    # After all that it is as useful as before.
    assert (await reached(bob, tools["fine"])).result == "fine"
    assert (await is_in(ServerState.UP, server)).present


@pytest.mark.slow("40 calls whose time runs out")
async def test_calls_of_one_server_that_never_answer_leave_room_for_those_of_others(
    alice: User, bob: User, neighbour: Tool
) -> None:
    # Longer than it takes to make all these calls: the first to be given up wear the connection out.
    tools = await exposed(alice, await in_db(program)(alice, call_seconds=10), "silent", "fine")
    async with unharmed(bob, neighbour):
        waiting = [await asked(bob, tools["silent"]) for _ in range(40)]
        late = await called(bob, tools["fine"])
        ended = [await settled(call) for call in waiting]
    assert late.status in {Status.SUCCEEDED, Status.FAILED}
    unheard = {call.error["message"] for call in ended if call.status == Status.FAILED}
    assert unheard <= {"It was not run: 32 calls of this server are already running."}
    assert {call.status for call in ended} <= {Status.UNKNOWN, Status.FAILED}
    # So many calls without an answer wear the connection out: it is opened anew.
    assert (await reached(bob, tools["fine"])).status == Status.SUCCEEDED


@pytest.mark.slow("a time runs out")
async def test_a_program_that_stops_reading_is_given_up(
    alice: User, bob: User, neighbour: Tool, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    server = await in_db(program)(alice, env={"LOG": log}, call_seconds=5)
    tools = await exposed(alice, server, "deaf", "tell")
    async with unharmed(bob, neighbour):
        assert (await called(bob, tools["deaf"])).result == "not listening any more"
        ended = await called(bob, tools["tell"], text="x" * 200_000)
    assert ended.status == Status.UNKNOWN
    assert written(log).split() == ["deaf"]


@pytest.mark.slow("a flood; there is one among the endings above")
async def test_noise_costs_nobody_else_anything(alice: User, bob: User, neighbour: Tool) -> None:
    server = await in_db(program)(alice, "notices")
    async with unharmed(bob, neighbour):
        tools = await exposed(alice, server, "fine")
        assert [(await called(bob, tools["fine"])).result for _ in range(3)] == ["fine"] * 3
    found = await in_db(now)(server)
    assert len(found.notes) <= 20
    assert all(len(note) < 600 and note.isprintable() for note in found.notes)


async def test_why_a_program_cannot_be_used_stands_in_its_row(alice: User) -> None:
    ends = await in_db(program)(alice, "dies-at-start", name="ends")
    strange = await in_db(program)(alice, "version", name="strange")
    empty = await in_db(program)(alice, "no-tools", name="empty")
    ended, refused = await is_in(ServerState.DOWN, ends), await is_in(ServerState.DOWN, strange)
    await is_in(ServerState.UP, empty)
    await stored(lambda: "Method not found" in now(empty).last_error, "it is told why")
    assert "the program ended with code 3: no configuration found" in ended.reason
    assert any("no configuration found" in note for note in ended.notes)
    assert "Unsupported protocol version" in refused.reason
    for server in (ended, refused):
        assert (server.last_error, server.present) == (server.reason, False)
    assert not (await in_db(now)(empty)).present


async def test_what_would_be_obeyed_is_kept_as_text_and_shown_as_such(
    alice: User, bob: User, tmp_path: Path, settings: Settings
) -> None:
    settings.MCP_LIST_SECONDS = 0  # What a program wrote is reported with the next list.
    server = await in_db(offering)(alice, tmp_path, dressed())
    tools = await exposed(alice, server)
    result = await called(bob, tools["dressed"])
    failed = await called(bob, tools["dressed_failure"])
    refused = await called(bob, tools["error"])
    assert result.result == DRESS
    assert failed.error == {"kind": "tool", "message": DRESS, "line": None}
    assert "\x1b" not in refused.error["message"]
    assert r"<b>no\x1b[31m</b>" in refused.error["message"]
    await stored(lambda: now(server).notes, "what it wrote is noted")
    server = await in_db(now)(server)
    assert server.told_name == r"hostile\x1b[31m<b>"
    assert any(r"\x1b[2J" in note for note in server.notes)
    assert not any("\x1b" in note or "\u202e" in note for note in server.notes)


async def test_a_program_that_dies_between_the_yes_and_the_call_is_started_again_and_called_once(
    alice: User, bob: User, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    # The time of the call also has to be enough to start the program again.
    server = await in_db(program)(alice, env={"LOG": log})
    gated = await exposed(alice, server, "fine", mode="REQUIRED")
    die = (await exposed(alice, server, "die"))["die"]
    call = await asked(bob, gated["fine"])
    async with unreported(server):
        await called(bob, die)
        await yes(bob, call)
        ended = await settled(call)
    assert (ended.status, written(log).split()) == (Status.SUCCEEDED, ["die", "fine"])


async def test_a_list_that_says_something_else_every_time_withholds_its_tools(alice: User, bob: User) -> None:
    server = await in_db(program)(alice, "restless")
    tools = await exposed(alice, server, "fine")
    await stored(lambda: not is_published(tools["fine"]), "it is withheld")
    assert (await called(bob, tools["fine"])).status == Status.REJECTED
    row = (await known(server))["fine"]
    assert (row.state, row.held) == ("withheld", True)
