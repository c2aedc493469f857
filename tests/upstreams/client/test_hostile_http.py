"""A server over HTTP that means no good."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from hitlchat.upstreams.client.connection import try_connect
from hitlchat.upstreams.client.results import Answer, NeverRan, Outcome, Rejected, Unknown, Unreadable
from hitlchat.upstreams.client.spec import ServerSpec, Timeouts
from tests.tables import each_row
from tests.upstreams.client.upstreams import AT_MOST, QUICK, Pool, at, memory, up
from tests.upstreams.hostile_http import HostileHttp, hostile_http, tool
from tests.waiting import soon

BRIEF = Timeouts(connect=1, listing=2, call=3, health=1, close=1)
Row = TypeVar("Row")


@pytest_asyncio.fixture
async def upstream(pool: Pool) -> AsyncIterator[HostileHttp]:
    """The pool knows it as `hostile`; it ends after the test, before the pool does."""
    async with hostile_http() as upstream:
        await pool.put(at(upstream.url(), "hostile"))
        yield upstream
        await pool.close()


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 1


async def call(pool: Pool, name: str, seconds: float = 20.0, server: str = "hostile") -> Outcome:
    return await pool.call_tool(server, name, {}, seconds=seconds)


async def at_once(
    pool: Pool, rows: Iterable[Row], look: Callable[[Row, str, HostileHttp], Awaitable[None]], **fields: Any
) -> None:
    """Look at all rows, each with a server of its own, which the pool knows by the name that `look` is given."""
    async with AsyncExitStack() as stack:
        there = [
            (row, f"hostile-{number}", await stack.enter_async_context(hostile_http()))
            for number, row in enumerate(rows)
        ]
        for _, name, server in there:
            await pool.put(at(server.url(), name, **fields))
        async with asyncio.timeout(AT_MOST):
            found = await asyncio.gather(*(look(*each) for each in there), return_exceptions=True)
        await pool.close()
    assert [(row, error) for (row, _, _), error in zip(there, found, strict=True) if error is not None] == []


USELESS = {
    "huge": "larger than",
    "huge_event": "larger than",
    "endless": "larger than",
    "wide": "has more than 200,000 parts",
    "deep": "nested more than 64 levels deep",
    "bomb": "the answer is compressed",
    "page": "neither JSON nor an event stream",
    "broken": "is not an MCP message",
    "no_id": "is not an MCP message",
}
UNANSWERED = [
    *("hang", "drip", "cut", "reset", "noise", "headers_without_end", "huge_header", "server_error", "accepted"),
]
# What comes over a call's own stream is about that call, whatever else it says.
ANSWERED = {"two_answers": "first", "other_ids": "first", "wrong_id": "other", "text_id": "a text"}


async def test_an_answer_that_nobody_can_use_is_told_as_such(
    subtests: pytest.Subtests, pool: Pool, upstream: HostileHttp
) -> None:
    for name, words in USELESS.items():
        with subtests.test(name):
            found = await call(pool, name)
            assert isinstance(found, Unreadable), found
            assert words in found.reason
            assert isinstance(await call(pool, "fine"), Answer)


async def test_the_first_answer_that_comes_over_the_stream_of_a_call_counts(
    subtests: pytest.Subtests, pool: Pool, upstream: HostileHttp
) -> None:
    for name, words in ANSWERED.items():
        with subtests.test(name):
            found = await call(pool, name)
            assert isinstance(found, Answer), found
            assert (found.text, upstream.called(name)) == (words, 1)


async def test_a_call_that_was_sent_and_not_answered_may_have_run_and_is_not_repeated(pool: Pool) -> None:
    async def look(tool: str, name: str, there: HostileHttp) -> None:
        await up(pool, name)
        found = await call(pool, tool, seconds=1.5, server=name)
        assert isinstance(found, Unknown), found
        assert there.called(tool) == 1
        assert isinstance(await call(pool, "fine", server=name), Answer)

    await at_once(pool, UNANSWERED, look)


@pytest.mark.slow("bets on memory")
@each_row("tool", [*USELESS, *UNANSWERED])
async def test_what_is_no_answer_costs_little_memory(tool: str, pool: Pool, upstream: HostileHttp) -> None:
    assert isinstance(await call(pool, "fine"), Answer)
    before = memory()
    assert isinstance(await call(pool, tool, seconds=1.5), Unreadable | Unknown)
    # The server itself is in this process.
    assert memory() - before < (100 if tool in USELESS else 50) * 1024 * 1024
    assert isinstance(await call(pool, "fine"), Answer)


async def test_a_call_that_was_turned_away_did_not_run(pool: Pool, upstream: HostileHttp) -> None:
    assert await call(pool, "unauthorised") == NeverRan("the server answered 401", 401)
    assert upstream.called("unauthorised") == 1


async def test_a_refusal_whose_words_cannot_be_read_is_none_the_less_no_run(pool: Pool) -> None:
    async def look(status: int, name: str, there: HostileHttp) -> None:
        await up(pool, name)
        there.refused_packed = status
        found = await call(pool, "packed", server=name)
        assert isinstance(found, NeverRan), found

    await at_once(pool, [401, 403, 404, 410, 413], look)


async def test_a_session_that_the_server_forgot_is_renewed_and_the_call_made_once_more(
    pool: Pool, upstream: HostileHttp
) -> None:
    assert isinstance(await call(pool, "forget"), Answer)
    found = await call(pool, "fine")
    assert isinstance(found, Answer), found
    assert upstream.called("fine") == 2  # the first of them was answered with 404


Refusal = tuple[int, str | dict[str, Any]]
UNKNOWN_SESSION: list[Refusal] = [
    (400, "Invalid session ID"),
    (400, {"code": -32000, "message": "Bad Request: No valid session ID provided"}),
    (400, {"code": -32600, "message": "Invalid Request"}),
    (401, "Session expired"),
    (403, "unknown client"),
    (404, {"code": -32001, "message": "Session not found"}),
    (410, "Gone"),
    (422, {"code": -32603, "message": "no such session"}),
    (200, {"code": -32600, "message": "Session not found"}),
    (200, {"code": -32001, "message": "Unknown session"}),
    (200, {"code": -32002, "message": "Server not initialized"}),
    (200, {"code": -32603, "message": "The session ID is invalid"}),
]
# By a status, and by an error of the protocol.
ONE_OF_EACH = [UNKNOWN_SESSION[0], UNKNOWN_SESSION[8]]


async def test_a_session_that_is_refused_in_any_words_is_renewed_and_the_call_made_once_more(pool: Pool) -> None:
    async def look(refusal: Refusal, name: str, there: HostileHttp) -> None:
        assert isinstance(await call(pool, "fine", server=name), Answer)
        before = there.called("fine"), there.asked.count("initialize")
        there.refused = refusal
        found = await call(pool, "fine", server=name)
        assert isinstance(found, Answer), found
        assert (there.called("fine"), there.asked.count("initialize")) == (before[0] + 2, before[1] + 1)

    await at_once(pool, UNKNOWN_SESSION, look)


async def test_a_list_that_is_refused_for_its_session_is_read_over_another_one(pool: Pool) -> None:
    async def look(refusal: Refusal, name: str, there: HostileHttp) -> None:
        await up(pool, name)
        there.refused = refusal
        assert (await pool.list_tools(name)).tools

    await at_once(pool, ONE_OF_EACH, look)


LATE_REFUSALS: list[Refusal] = [
    (500, "Session not found"),
    (503, {"code": -32001, "message": "Session not found"}),
    (200, {"code": -32000, "message": "Connection closed"}),
    (200, {"code": -32001, "message": "Request timed out"}),
    (200, {"code": -32001, "message": "Session terminated"}),
]


async def test_a_refusal_that_may_have_come_after_the_tool_is_not_followed_by_another_try(pool: Pool) -> None:
    async def look(refusal: Refusal, name: str, there: HostileHttp) -> None:
        assert isinstance(await call(pool, "fine", server=name), Answer)
        before = there.called("fine")
        there.refused = refusal
        assert not isinstance(await call(pool, "fine", server=name), Answer | NeverRan)
        await soon(lambda: there.asked.count("initialize") == 2, "it is connected anew")
        assert there.called("fine") == before + 1
        assert isinstance(await call(pool, "fine", server=name), Answer)

    await at_once(pool, LATE_REFUSALS, look)


async def test_what_a_tool_says_of_sessions_is_its_own_answer(
    subtests: pytest.Subtests, pool: Pool, upstream: HostileHttp
) -> None:
    await up(pool, "hostile")
    for code, message in [(-32600, "Session not found: 7"), (-32001, "not now")]:
        with subtests.test(message):
            upstream.refused_tool = {"code": code, "message": message}
            before = upstream.called("refuse")
            assert await call(pool, "refuse") == Rejected(code, message)
            assert (upstream.called("refuse"), upstream.asked.count("initialize")) == (before + 1, 1)


async def test_a_server_that_knows_no_session_gets_a_call_twice_at_most(pool: Pool, upstream: HostileHttp) -> None:
    await up(pool, "hostile")
    upstream.refused, upstream.stubborn = (400, "Invalid session ID"), True
    found = await call(pool, "fine")
    assert isinstance(found, NeverRan), found
    assert "the server answered 400" in found.reason
    # Once, if the connection that takes the place of the first is given up before: its list is refused, too.
    assert upstream.called("fine") in {1, 2}


async def test_a_health_check_that_is_refused_is_no_health(pool: Pool) -> None:
    async def look(refusal: Refusal, name: str, there: HostileHttp) -> None:
        await up(pool, name)
        there.refused, there.stubborn = refusal, True
        await soon(lambda: there.asked.count("initialize") > 2, "it is connected anew")
        await soon(lambda: pool.status(name).state == "down", "it is down")
        there.stubborn = False
        await up(pool, name)

    await at_once(pool, ONE_OF_EACH, look, timeouts=replace(QUICK, health_every=0.1))


async def test_a_server_that_has_no_ping_is_up_as_long_as_it_answers(pool: Pool) -> None:
    async def look(said: dict[str, Any], name: str, there: HostileHttp) -> None:
        await up(pool, name)
        there.refused_ping = said
        await soon(lambda: there.asked.count("ping") > 3, "its health is looked at")
        assert (pool.status(name).state, there.asked.count("initialize")) == ("up", 1)

    said = [{"code": -32601, "message": "Method not found"}, {"code": -32603, "message": "no ping here"}]
    await at_once(pool, said, look, timeouts=replace(QUICK, health_every=0.1))


async def test_a_flood_of_notices_does_not_keep_the_answer_away(pool: Pool, upstream: HostileHttp) -> None:
    found = await call(pool, "flood")
    assert isinstance(found, Answer)
    assert found.text == "after the flood"


async def test_a_call_does_not_follow_to_another_place(pool: Pool, upstream: HostileHttp) -> None:
    for name in ("redirect", "redirect_elsewhere"):
        found = await call(pool, name)
        assert isinstance(found, NeverRan), found
        assert "redirects" in found.reason
    assert not [path for _, path, _ in upstream.seen if path == "/stolen"]


NO_SERVERS = {
    "/redirect": "not followed",
    "/redirect-elsewhere": "not followed",
    "/hang": "no connection within 1 seconds",
    "/page": "content type",
    "/noise": "does not speak HTTP",
    "/reset": "the server broke off",
    "/headers": "does not speak HTTP",
    "/huge-header": "does not speak HTTP",
    "/odd-session": "the server gave the session a name that no header can carry",
    "/drip": "no connection within 1 seconds",
}


@pytest.mark.slow("waits for connections that are not made")
async def test_a_place_without_a_server_says_why(subtests: pytest.Subtests, upstream: HostileHttp) -> None:
    for path, words in NO_SERVERS.items():
        with subtests.test(path):
            timeouts = BRIEF if path in {"/hang", "/drip"} else QUICK
            async with asyncio.timeout(AT_MOST):
                trial = await try_connect(at(upstream.url(path), "hostile", timeouts=timeouts))
            assert words in trial.error
    assert not [path for _, path, _ in upstream.seen if path == "/stolen"]


# One of each kind: tests/outbound has the table.
OURS = {
    "http://127.0.0.1:{port}/mcp": "private addresses are not allowed",
    "http://2130706433:{port}/mcp": "must not be reached",
    "http://169.254.169.254/mcp": "must not be reached",
    "http://metadata.google.internal/mcp": "serves a cloud's credentials",
    "http://no-such-host.invalid/mcp": "was not found",
}


async def test_addresses_of_our_own_are_not_asked(subtests: pytest.Subtests, upstream: HostileHttp) -> None:
    for url, words in OURS.items():
        with subtests.test(url):
            spec = ServerSpec("hostile", "http", url=url.format(port=upstream.port), timeouts=QUICK)
            assert words in (await try_connect(spec)).error
    assert upstream.seen == []


async def test_our_headers_are_sent_and_nothing_else_of_ours(
    pool: Pool, upstream: HostileHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    await pool.put(at(upstream.url(), "hostile", headers={"Authorization": "Bearer abcdef-123456"}))
    assert isinstance(await call(pool, "fine"), Answer)
    assert all(headers["authorization"] == "Bearer abcdef-123456" for headers in upstream.headers)
    sent = {name for headers in upstream.headers for name in headers}
    assert sent <= {
        *("host", "accept", "accept-encoding", "connection", "user-agent", "content-length", "content-type"),
        *("authorization", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "cache-control"),
    }


async def test_the_status_follows_what_happens(pool: Pool, upstream: HostileHttp) -> None:
    await up(pool, "hostile")
    assert isinstance(await call(pool, "reset"), Unknown)
    await soon(lambda: pool.status("hostile").state == "up", "it is up, since it answers when asked")


SPOILT: list[dict[str, Any]] = [
    {"name": "b"},
    {"name": "b", "inputSchema": None},
    {"name": "b", "inputSchema": {"type": "string"}},
    {"name": "b", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "maybe"}},
    {"name": "b", "inputSchema": {"type": "object"}, "outputSchema": []},
    {"name": "b", "inputSchema": {"type": "object"}, "title": 7},
    {"name": "b", "inputSchema": {"type": "object", "x": nested(70)}},
]


async def test_an_entry_that_cannot_be_read_is_named_and_costs_no_other(pool: Pool) -> None:
    async def look(entry: dict[str, Any], name: str, there: HostileHttp) -> None:
        there.pages = {None: {"tools": [tool("fine"), entry, tool("tell")]}}
        found = await pool.list_tools(name)
        assert [each.name for each in found.tools] == ["fine", "tell"]
        assert [(name, bool(why), found.cut) for name, why in found.unread.items()] == [("b", True, "")]
        assert "b (" in pool.status(name).last_error

    await at_once(pool, SPOILT, look)


NAMELESS: list[Any] = [7, None, "b", [], {}, {"name": 7, "inputSchema": {"type": "object"}}]


async def test_an_entry_without_a_name_is_named_by_its_place(
    subtests: pytest.Subtests, pool: Pool, upstream: HostileHttp
) -> None:
    for entry in NAMELESS:
        with subtests.test(entry=entry):
            upstream.pages = {None: {"tools": [tool("fine"), entry]}}
            found = await pool.list_tools("hostile")
            names = ([each.name for each in found.tools], list(found.unread))
            assert names == (["fine"], ["entry 2"])


async def test_half_a_character_in_one_entry_costs_no_other(pool: Pool, upstream: HostileHttp) -> None:
    upstream.pages = {None: {"tools": [tool("fine"), {**tool("tell"), "description": "half \ud83d of it"}]}}
    found = await pool.list_tools("hostile")
    assert [each.definition["description"] for each in found.tools] == ["Does fine.", "half \ufffd of it"]


async def test_an_empty_cursor_is_followed(pool: Pool, upstream: HostileHttp) -> None:
    upstream.pages = {None: {"tools": [tool("fine")], "nextCursor": ""}, "": {"tools": [tool("tell")]}}
    found = await pool.list_tools("hostile")
    assert ([each.name for each in found.tools], found.cut) == (["fine", "tell"], "")


async def test_an_empty_cursor_that_leads_to_the_beginning_is_the_end(pool: Pool, upstream: HostileHttp) -> None:
    first = {"tools": [tool("fine")], "nextCursor": ""}
    upstream.pages = {None: first, "": first}
    found = await pool.list_tools("hostile")
    assert ([each.name for each in found.tools], found.trouble) == (["fine"], "")


# An error, a refusal, no list, no cursor, and a circle.
BROKEN_OFF: list[Any] = [
    *(500, 400, {"tools": "none"}),
    *({"tools": [tool("tell")], "nextCursor": 7}, {"tools": [], "nextCursor": "2"}),
]


async def test_a_list_that_breaks_off_is_incomplete_and_keeps_what_was_read(pool: Pool) -> None:
    async def look(second: Any, name: str, there: HostileHttp) -> None:
        there.pages = {None: {"tools": [tool("fine")], "nextCursor": "2"}, "2": second}
        found = await pool.list_tools(name)
        assert found.tools[0].name == "fine"
        assert found.cut
        assert found.cut in pool.status(name).last_error

    await at_once(pool, BROKEN_OFF, look)


OK = {"type": "text", "text": "ok"}
ODD: list[Any] = [
    {"type": "hologram", "data": "x"},
    {"type": "text", "text": 7},
    {"type": "text"},
    {"type": "image", "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "file:///x"}},
    {},
    None,
    "just a text",
    {"type": "text", "text": "deep", "x": nested(70)},
]


async def test_an_odd_block_is_named_and_loses_no_other(
    subtests: pytest.Subtests, pool: Pool, upstream: HostileHttp
) -> None:
    for odd in ODD:
        with subtests.test(odd=str(odd)[:60]):
            upstream.given = {"content": [OK, odd, OK], "structuredContent": {"closed": 2}}
            found = await call(pool, "give")
            assert isinstance(found, Answer), found
            assert ([found.content[0], found.content[2]], found.structured) == ([OK, OK], {"closed": 2})
            block = found.content[1]
            assert (block["type"], "cannot be read" in block["text"]) == ("unreadable", True)
            if isinstance(odd, dict) and "type" in odd:
                assert block["kind"] == odd["type"]


GIVEN: list[tuple[Any, Answer]] = [
    ({"content": [{**OK, "annotations": {"priority": 7}}]}, Answer([OK])),
    ({"content": [{**OK, "_meta": 7}], "_meta": 7, "isError": None}, Answer([OK])),
    ({"structuredContent": {"a": 1}}, Answer([], {"a": 1})),
    ({"content": None, "structuredContent": {"a": 1}, "isError": True}, Answer([], {"a": 1}, is_error=True)),
    ({"content": [OK], "structuredContent": [1, 2]}, Answer([OK], [1, 2])),
    ({"content": [OK], "structuredContent": None}, Answer([OK])),
    (b'{"content": [{"type": "text", "text": "half \\ud83d of it, \\ud83d\\ude00 and \\\\ud83d"}]}',
     Answer([{"type": "text", "text": "half \ufffd of it, \U0001f600 and \\ud83d"}])),
    (b'{"content": [{"type": "text", "text": "caf\xe9 and \xf0\x9f\x98"}]}',
     Answer([{"type": "text", "text": "caf\ufffd and \ufffd"}])),
    (b'{"content": [], "structuredContent": {"\\udc00": "\\uDFFF\\uD800"}}',
     Answer([], {"\ufffd": "\ufffd\ufffd"})),
]  # fmt: skip


async def test_what_can_be_read_of_an_answer_is_kept(
    subtests: pytest.Subtests, pool: Pool, upstream: HostileHttp
) -> None:
    for given, expected in GIVEN:
        with subtests.test(given=given):
            upstream.given = given
            assert await call(pool, "give") == expected


async def test_a_structure_that_cannot_be_kept_loses_no_text(pool: Pool, upstream: HostileHttp) -> None:
    upstream.given = {"content": [OK], "structuredContent": {"deep": nested(70)}}
    found = await call(pool, "give")
    assert isinstance(found, Answer)
    assert (found.content[0], found.content[1]["kind"]) == (OK, "structuredContent")
