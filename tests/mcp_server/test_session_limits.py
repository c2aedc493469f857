"""What one token and one person may keep open at /mcp, so that there is room for everyone else."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pytest_django import Settings

from hitlchat.gate.models import Tool
from hitlchat.mcp_server import server
from hitlchat.mcp_server.authentication import Authentication
from hitlchat.mcp_server.server import IDLE_SECONDS, make_server
from tests.mcp_server.clients import connected
from tests.mcp_server.conftest import TokenOf
from tests.mcp_server.older import ACCEPT, older
from tests.mcp_server.test_revoking import listening
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)

MOST_OF_TOKEN, MOST_OF_PERSON = 3, 9


@pytest.fixture(autouse=True)
def few(settings: Settings) -> None:
    settings.MCP_TOKEN_SESSIONS, settings.MCP_PERSON_SESSIONS = MOST_OF_TOKEN, MOST_OF_PERSON


@asynccontextmanager
async def client_of(url: str, token: str) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}", "Accept": ACCEPT}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=30, trust_env=False, verify=False) as web:
        yield web


async def opened(web: httpx2.AsyncClient) -> httpx2.Response:
    """The answer to the request that begins a session."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    return await web.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})


async def answers(web: httpx2.AsyncClient, session: str) -> int:
    body = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    return (await web.post("/mcp", json=body, headers={"mcp-session-id": session})).status_code


async def test_a_token_with_as_many_sessions_as_it_may_have_gives_up_its_oldest_idle_one(
    url: str, token: str, token_of: TokenOf, bob: User
) -> None:
    other = await in_thread(token_of)(bob)
    async with client_of(url, token) as web, client_of(url, other) as others:
        untouched = (await opened(others)).headers["mcp-session-id"]
        begun = [(await opened(web)).headers["mcp-session-id"] for _ in range(MOST_OF_TOKEN)]
        # It was used last, so another one is the oldest.
        assert await answers(web, begun[0]) == 200
        last = (await opened(web)).headers["mcp-session-id"]
        assert [await answers(web, session) for session in (begun[0], begun[1], begun[2], last)] == [200, 404, 200, 200]
        assert await answers(others, untouched) == 200


async def test_what_is_open_is_not_given_up_and_the_limit_is_named(
    url: str, token: str, token_of: TokenOf, bob: User, alice: User, tool: Tool
) -> None:
    bobs, alices = await in_thread(token_of)(bob), await in_thread(token_of)(alice)
    async with AsyncExitStack() as stack:
        for _ in range(MOST_OF_TOKEN):
            client = await stack.enter_async_context(older(url, token))
            stream = await stack.enter_async_context(client._web.stream("GET", "/mcp"))
            assert stream.status_code == 200
        web = await stack.enter_async_context(client_of(url, token))
        refused = await opened(web)
        assert (refused.status_code, f"One token may have {MOST_OF_TOKEN} sessions" in refused.json()["error"]) == (
            429,
            True,
        )
        for each in (bobs, alices):
            async with connected(url, each, "2025") as session:
                assert (await session.list_tools()).tools


async def test_a_session_that_its_client_ended_leaves_room(url: str, token: str) -> None:
    async with client_of(url, token) as web, AsyncExitStack() as stack:
        for _ in range(MOST_OF_TOKEN - 1):
            client = await stack.enter_async_context(older(url, token))
            await stack.enter_async_context(client._web.stream("GET", "/mcp"))
        kept = (await opened(web)).headers["mcp-session-id"]
        assert (await web.delete("/mcp", headers={"mcp-session-id": kept})).status_code == 200
        first = (await opened(web)).headers["mcp-session-id"]
        second = await opened(web)
        for _ in range(50):
            # Its answer is here a moment before the server is done with the request.
            if second.status_code != 429:
                break
            second = await opened(web)
        assert [await answers(web, session) for session in (first, second.headers["mcp-session-id"])] == [404, 200]


async def test_streams_of_newer_clients_count_as_well_and_leave_room_when_they_end(
    url: str, token: str, token_of: TokenOf, bob: User
) -> None:
    other = await in_thread(token_of)(bob)
    async with AsyncExitStack() as stack:
        for _ in range(MOST_OF_TOKEN):
            assert (await stack.enter_async_context(listening(url, token))).status_code == 200
        async with listening(url, token) as refused, listening(url, other) as going_on:
            assert (refused.status_code, going_on.status_code) == (429, 200)
        async with client_of(url, token) as web:
            assert (await opened(web)).status_code == 429


async def test_all_tokens_of_a_person_have_a_limit_together_and_other_people_their_own(
    url: str, token_of: TokenOf, bob: User, alice: User
) -> None:
    tokens = [await in_thread(token_of)(bob) for _ in range(MOST_OF_PERSON // MOST_OF_TOKEN + 1)]
    for token in tokens[:-1]:
        async with client_of(url, token) as web:
            for _ in range(MOST_OF_TOKEN):
                assert (await opened(web)).status_code == 200
    async with client_of(url, tokens[-1]) as web:
        # It has no session of its own that could be closed, and those of another token are left alone.
        refused = await opened(web)
    assert (refused.status_code, "One person, with all their tokens," in refused.json()["error"]) == (429, True)
    async with client_of(url, await in_thread(token_of)(alice)) as web:
        assert (await opened(web)).status_code == 200


async def test_a_session_that_nobody_uses_is_closed(token: str, caplog: pytest.LogCaptureFixture) -> None:
    assert server.manager().session_idle_timeout == IDLE_SECONDS == 300
    hasty = server.McpApplication(lambda: StreamableHTTPSessionManager(make_server(), session_idle_timeout=0.2))
    headers = {"Authorization": f"Bearer {token}", "Accept": ACCEPT}
    transport = httpx2.ASGITransport(app=Authentication(hasty))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as web:
        session = (await opened(web)).headers["mcp-session-id"]
        with caplog.at_level(logging.INFO, "mcp.server.streamable_http_manager"):
            await soon(lambda: "idle timeout" in caplog.text, "the session is ended")
        assert await answers(web, session) == 404
    await hasty.end()
