"""A server over HTTP that means no good, through the gate: the truth is told of it, and nobody else notices it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate import contents
from hitlchat.gate.models import Tool
from hitlchat.gate.status import Status
from hitlchat.mcp_server import outcomes
from hitlchat.upstreams import servers
from hitlchat.upstreams.models import ServerState
from hitlchat.upstreams.server_draft import ServerDraft
from tests.conftest import signed_in
from tests.upstreams.gated import called, exposed, is_in, reached, read, unharmed, web
from tests.upstreams.hostile_http import HostileHttp, hostile_http, tool

pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("serving")]

# What becomes of a call, what the model reads of it, and how often the server got it: one of each kind, of which
# client/test_hostile_http.py has more.
ENDINGS = {
    "huge": (Status.FAILED, "It was run, but its result cannot be used", 1),
    "hang": (Status.UNKNOWN, "Do not repeat it.", 1),
    "cut": (Status.UNKNOWN, "Do not repeat it.", 1),
    "unauthorised": (Status.FAILED, "It was not run: the server answered 401.", 1),
    "redirect_elsewhere": (Status.FAILED, "It was not run: the server redirects", 1),
    "fine": (Status.SUCCEEDED, "fine", 1),
}


UNANSWERED = {"hang"}


@pytest.fixture
async def hostile(serving: None) -> AsyncIterator[HostileHttp]:
    async with hostile_http() as there:
        yield there


@pytest.mark.slow("the same as over stdio, over HTTP")
@pytest.mark.guarantee("gate:truth", "gate:at-most-once")
async def test_whatever_a_tool_does_its_call_ends_as_it_was_and_was_made_once(
    alice: User, bob: User, neighbour: Tool, hostile: HostileHttp
) -> None:
    # What is answered may take its time; what is not is given up soon.
    hasty = await in_db(web)(alice, hostile, name="hasty", call_seconds=3)
    unanswered = await exposed(alice, hasty, *UNANSWERED, "fine")
    tools = await exposed(alice, await in_db(web)(alice, hostile), *ENDINGS)
    tools |= {name: unanswered[name] for name in UNANSWERED}

    async def end(name: str) -> None:
        status, words, times = ENDINGS[name]
        call = await reached(bob, tools[name])
        told = await read(call)
        assert (call.status, words in told, hostile.called(name)) == (status, True, times), (name, told[:500])

    async with unharmed(bob, neighbour):
        waiting = asyncio.gather(*map(end, UNANSWERED))
        for name in ENDINGS.keys() - UNANSWERED:
            await end(name)
        await waiting
    assert not [path for _, path, _ in hostile.seen if path == "/stolen"]
    for each in (tools, unanswered):
        assert (await reached(bob, each["fine"])).result == "fine"


UNUSABLE = {
    "/redirect-elsewhere": (ServerState.DOWN, "not followed"),
    "/unauthorised": (ServerState.SIGN_IN, "401"),
    "/hang": (ServerState.DOWN, "no connection within 1 seconds"),
}


async def test_why_a_server_cannot_be_used_stands_in_its_row(
    alice: User, hostile: HostileHttp, settings: Settings
) -> None:
    for path, (state, words) in UNUSABLE.items():
        # For what never answers, time runs out, whatever that is.
        settings.MCP_CONNECT_SECONDS = 1 if path == "/hang" else 30
        server = await is_in(state, await in_db(web)(alice, hostile, path, name=path.strip("/")))
        assert (words in server.reason, path) == (True, path), server.reason
    assert not [path for _, path, _ in hostile.seen if path == "/stolen"]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the world's names lead to, from now on."""
    leads: dict[str, str] = {}
    real = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real(leads.get(host, host), *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return leads


async def test_a_name_that_leads_elsewhere_after_a_while_is_not_followed_there(
    alice: User, bob: User, hostile: HostileHttp, names: dict[str, str]
) -> None:
    """Allowed to be on a private network, it still never leads to where a cloud keeps its keys."""
    names["shop.example"] = "127.0.0.1"
    draft = ServerDraft("shop", url=f"http://shop.example:{hostile.port}/mcp", allow_private=True)
    server = await in_db(servers.create)(draft, signed_in(alice))
    tools = await exposed(alice, server, "fine", "reset")
    names["shop.example"] = "169.254.169.254"
    await called(bob, tools["reset"])
    ended = await called(bob, tools["fine"])
    assert ended.status in {Status.FAILED, Status.REJECTED}
    assert hostile.called("fine") == 0
    assert "must not be reached" in (await is_in(ServerState.DOWN, server)).reason


CIRCLE: dict[str | None, dict[str, Any] | int] = {
    None: {"tools": [tool("fine")], "nextCursor": "2"},
    "2": {"tools": [], "nextCursor": "2"},
}
NOT_LISTED = {
    "gone": ({None: {"tools": [tool("fine")]}}, "its server no longer lists it"),
    "incomplete": (CIRCLE, "its server's list is incomplete, and the tool is not in it"),
    "unreadable": ({None: {"tools": [{"name": "tell"}]}}, "its server's entry for it cannot be read"),
}


@pytest.mark.guarantee("gate:truth", "gate:same-call")
@pytest.mark.parametrize("pages, words", NOT_LISTED.values(), ids=NOT_LISTED)
async def test_a_call_of_a_tool_that_is_not_listed_as_accepted_says_which_it_is(
    pages: dict[str | None, dict[str, Any] | int],
    words: str,
    alice: User,
    bob: User,
    hostile: HostileHttp,
    settings: Settings,
) -> None:
    settings.MCP_LIST_SECONDS = 0
    tools = await exposed(alice, await in_db(web)(alice, hostile), "tell")
    hostile.pages = pages
    call = await called(bob, tools["tell"])
    assert (call.status, words in call.error["message"], hostile.called("tell")) == (Status.FAILED, True, 0)
    assert '"executed": false' in await read(call)


async def test_a_text_beside_what_is_structured_and_a_structured_error_reach_models_and_people(
    alice: User, bob: User, hostile: HostileHttp
) -> None:
    block, odd = {"type": "text", "text": "closed 3 cases"}, {"type": "hologram"}
    hostile.given = {"content": [block, odd], "structuredContent": {"closed": 2}}
    tools = await exposed(alice, await in_db(web)(alice, hostile), "give")
    call = await called(bob, tools["give"])
    assert call.status == Status.SUCCEEDED
    assert call.result["structured"] == {"closed": 2}
    for told in (await read(call), await in_db(contents.text)(call)):
        for words in ("closed 3 cases", '"closed": 2', "hologram: a part of the result that cannot be read"):
            assert words in told
    assert await in_db(contents.has_text_beside)(call)
    given = await outcomes.outcome_of(call)
    assert given.structured_content == {"closed": 2}
    assert [getattr(each, "text", "")[:14] for each in given.content] == ["closed 3 cases", "[hologram: a p"]
    # An error that is only structured tells its reason too.
    hostile.given = {"content": [], "structuredContent": {"error": "locked until Friday"}, "isError": True}
    call = await called(bob, tools["give"])
    assert (call.status, "locked until Friday" in call.error["message"]) == (Status.FAILED, True)
    assert "locked until Friday" in await read(call)
