"""What a server offers cannot harm: names that are taken for others, schemas that never end, thousands of tools."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient

from hitlchat.base.database import in_db
from hitlchat.base.lookalikes import shape
from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.upstreams.client.spec import Limits
from hitlchat.upstreams.models import ServerState, ToolState
from tests.conftest import MakeTool
from tests.upstreams.client.upstreams import Pool, Seen, at, memory, written
from tests.upstreams.gated import called, exposed, is_in, known, now, offering, program, unharmed
from tests.upstreams.hostile_http import hostile_http
from tests.upstreams.hostile_tools import NAMES, SLOW, tool
from tests.waiting import stored

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("allow_stdio", "serving"),
]


@pytest.mark.guarantee("gate:same-call")
async def test_names_that_are_taken_for_others_get_aliases_that_are_not(
    alice: User, bob: User, neighbour: Tool, make_tool: MakeTool, tmp_path: Path
) -> None:
    """Rule R1. What is called by our name is ours, however the server calls its tools and itself."""
    ours = await in_db(make_tool)("notes_echo", hitl_mode="DISABLED")
    log = tmp_path / "log"
    server = await in_db(offering)(alice, tmp_path, map(tool, NAMES), name="notes", env={"LOG": log})
    tools = await exposed(alice, server)
    aliases = [each.name for each in tools.values()]
    every = [*aliases, ours.name, neighbour.name]
    assert len({shape(name) for name in every}) == len(every)
    assert all(name.isascii() and len(name) <= 64 for name in aliases)
    assert (await called(bob, ours, text="ours")).result == "ours"
    assert written(log) == ""
    assert (await called(bob, tools["echo"])).result == "{}"
    assert written(log) == "echo\n"


async def test_names_that_cannot_be_kept_or_seen_are_named_and_not_offered(alice: User, tmp_path: Path) -> None:
    server = await in_db(offering)(alice, tmp_path, map(tool, NAMES))
    rows = await known(server)
    assert set(NAMES) - set(rows) == {" ", "", "a" * 129}
    unfit = {name for name, row in rows.items() if row.state == ToolState.UNFIT}
    assert unfit == {"ec\u200bho", "\x1b[31mred", "two\nlines"}
    assert "cannot be stored" in (await in_db(now)(server)).listing_note
    assert (await in_db(now)(server)).listing_note.isprintable()


async def test_an_entry_that_breaks_the_protocol_is_left_out_and_its_row_says_where(
    alice: User, tmp_path: Path
) -> None:
    definitions = [tool("good"), tool("bad", inputSchema={"type": "string"})]
    server = await in_db(offering)(alice, tmp_path, definitions)
    await stored(lambda: "bad (inputSchema.type" in now(server).last_error, "it is told where")
    assert list(await known(server)) == ["good"]
    found = await in_db(now)(server)
    assert (found.state, "bad (inputSchema.type" in found.listing_note) == (ServerState.UP, True)


async def test_arguments_are_checked_in_no_time_whatever_the_schema_says(
    alice: User, bob: User, neighbour: Tool, tmp_path: Path
) -> None:
    """With a backtracking engine, each of the patterns would take longer than there has been time."""
    log = tmp_path / "log"
    definitions = [tool(name, inputSchema=schema) for name, (schema, _, _) in SLOW.items()]
    tools = await exposed(alice, await in_db(offering)(alice, tmp_path, definitions, env={"LOG": log}))
    async with unharmed(bob, neighbour):
        ended = {name: await called(bob, tools[name], **arguments) for name, (_, arguments, _) in SLOW.items()}
    fitting = {name for name, (_, _, fits) in SLOW.items() if fits}
    assert {name for name, call in ended.items() if call.status == Status.SUCCEEDED} == fitting
    assert {name for name, call in ended.items() if call.status == Status.REJECTED} == SLOW.keys() - fitting
    assert set(written(log).split()) == fitting


@pytest.mark.slow("5,000 tools, and bets on memory")
async def test_of_thousands_of_tools_the_pages_answer_and_the_memory_is_bounded(
    alice: User, bob: User, neighbour: Tool
) -> None:
    before, looks = memory(), 0
    pages = AsyncClient()
    await pages.aforce_login(alice)
    server = await in_db(program)(alice, "many", "restless")
    async with unharmed(bob, neighbour):
        while (await in_db(now)(server)).tool_count is None:
            assert (await pages.get("/studio/")).status_code == 200
            looks += 1
            assert looks < 1000
    assert looks
    for _ in range(5):
        # Also while it says all the time that they have changed.
        assert (await called(bob, neighbour)).status == Status.SUCCEEDED
    assert await in_db(server.tools.count)() == 5000
    assert memory() - before < 256 * 1024 * 1024


LEFT_OUT = {
    "circle": ("the server's pages form a loop", 3),
    "twins": ("duplicate names, of which only the first is used: fine", 1),
}


async def test_what_of_a_list_was_left_out_stands_in_the_row(alice: User) -> None:
    made = {habit: await in_db(program)(alice, habit, name=habit) for habit in LEFT_OUT}
    for habit, server in made.items():
        await known(server)
        found = await is_in(ServerState.UP, server)
        assert (found.listing_note, found.tool_count) == LEFT_OUT[habit]


async def test_other_names_with_every_list_do_not_fill_the_memory() -> None:
    """The SDK remembers every tool that it ever saw on a page: the connection is renewed, and with it what it knows."""
    seen = Seen()
    pool = Pool(seen)
    async with hostile_http() as there:
        await pool.put(at(there.url(), "restless", limits=Limits(tools=100)))
        for number in range(8):
            there.extra = {f"list_{number}_tool_{each}": {} for each in range(60)}
            await pool.list_tools("restless")
        assert any("list of tools keeps changing" in status.last_error for status in seen.statuses)
        assert there.asked.count("initialize") > 1
        await pool.close()
