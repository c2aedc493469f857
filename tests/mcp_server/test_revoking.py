"""Revoking a token: on its page, by command, and what becomes of what is open with it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from io import StringIO

import httpx2
import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import tokens
from tests.conftest import signed_in
from tests.mcp_server.clients import MODERN, call_that_is, connected
from tests.mcp_server.conftest import TokenOf
from tests.mcp_server.older import ACCEPT, older

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 20.0


def revoke(user: User, secret: str) -> int:
    return tokens.revoke(user, Token.objects.get(digest=hashed(secret)).pk, signed_in(user))


def test_it_is_revoked_by_a_second_press_and_not_by_looking(client: Client, bob: User) -> None:
    secret = tokens.make_mcp(bob, "My laptop")
    address = f"/mcp-access/tokens/{Token.objects.get().pk}/revoke"
    client.force_login(bob)
    assert "Revoke My laptop?" in client.get(address).content.decode()
    assert tokens.find(secret) is not None
    assert "My laptop is revoked." in client.post(address, follow=True).content.decode()
    assert tokens.find(secret) is None
    assert client.post(address).status_code == 404


def test_nobody_revokes_the_token_of_another(client: Client, bob: User, alice: User) -> None:
    secret = tokens.make_mcp(bob)
    client.force_login(alice)
    address = f"/mcp-access/tokens/{Token.objects.get().pk}/revoke"
    assert (client.get(address).status_code, client.post(address).status_code) == (404, 404)
    assert tokens.find(secret) is not None


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_what_a_revoked_token_asked_for_is_withdrawn(
    url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    token = await in_thread(token_of)(bob, without_elicitation="inbox")
    async with connected(url, token) as client:
        calling = asyncio.create_task(client.call_tool("refund", {"text": "hello"}))
        await call_that_is(Status.WAITING)
        assert await in_thread(revoke)(bob, token) == 1
        call = await call_that_is(Status.WITHDRAWN)
        await asyncio.wait({calling}, timeout=SECONDS)
        assert calling.done()
        calling.exception()
    assert "revoked" in call.reason
    assert entered == []


@pytest.fixture
def short_leases(settings: Settings) -> None:
    """Expired tokens are looked for every second; to be set before the server starts."""
    settings.MCP_INBOX_SECONDS, settings.LEASE_SECONDS = 0, 3


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_what_an_expired_token_asked_for_is_withdrawn_and_what_others_did_waits_on(
    short_leases: None, url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    for expires_at in (None, timezone.now() + timedelta(hours=1)):
        token = await in_thread(token_of)(bob, expires_at=expires_at, without_elicitation="inbox")
        async with connected(url, token) as client:
            await client.call_tool("refund", {"text": "hello"})
    assert await ToolCall.objects.filter(status=Status.WAITING).acount() == 2
    await Token.objects.filter(expires_at__isnull=False).aupdate(expires_at=timezone.now())
    call = await call_that_is(Status.WITHDRAWN)
    assert "token expired" in call.reason
    assert await ToolCall.objects.filter(status=Status.WAITING).acount() == 1
    assert entered == []


async def test_streams_of_2026_end_with_their_token_and_others_go_on(
    url: str, token_of: TokenOf, bob: User, tool: Tool
) -> None:
    token, other = await in_thread(token_of)(bob), await in_thread(token_of)(bob)
    async with listening(url, token) as ended, listening(url, other) as going_on:
        await in_thread(revoke)(bob, token)
        await asyncio.wait_for(drained(ended), SECONDS)
        await Tool.objects.aupdate(description="another")
        await asyncio.wait_for(hears_of_a_change(going_on), SECONDS)


async def test_sessions_of_2025_hear_no_more_once_their_token_is_void(
    url: str, token_of: TokenOf, bob: User, charlie: User
) -> None:
    revoked, expired, charlies = [await in_thread(token_of)(user) for user in (bob, bob, charlie)]
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(older(url, token)) for token in (revoked, expired, charlies)]
        streams = [await stack.enter_async_context(client._web.stream("GET", "/mcp")) for client in clients]
        assert [stream.status_code for stream in streams] == [200] * 3
        await in_thread(revoke)(bob, revoked)
        await Token.objects.filter(digest=hashed(expired)).aupdate(expires_at=timezone.now())
        await User.objects.filter(pk=charlie.pk).aupdate(is_active=False)
        for client, stream in zip(clients, streams, strict=True):
            await asyncio.wait_for(drained(stream), SECONDS)
            assert (await client._web.post("/mcp", json={})).status_code == 401


@asynccontextmanager
async def listening(url: str, token: str) -> AsyncIterator[httpx2.Response]:
    """The answer to subscriptions/listen, which goes on."""
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": MODERN, f"{prefix}/clientCapabilities": {}}
    params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": ACCEPT,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "subscriptions/listen",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    async with (
        httpx2.AsyncClient(timeout=30, trust_env=False, verify=False) as web,
        web.stream("POST", f"{url}/mcp", json=body, headers=headers) as stream,
    ):
        yield stream


async def hears_of_a_change(stream: httpx2.Response) -> None:
    async for line in stream.aiter_lines():
        if "notifications/tools/list_changed" in line:
            return
    pytest.fail("the stream ended")


async def drained(stream: httpx2.Response) -> None:
    async for _ in stream.aiter_lines():
        pass


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("create_token", *arguments, stdout=out)
    return out.getvalue().strip()


def test_the_command_makes_a_limited_token_lists_it_without_its_text_and_revokes_it(bob: User, tool: Tool) -> None:
    limits = ("--tool", "refund", "--ceiling", "3", "--without-elicitation", "url")
    secret = told("bob", "--kind", "mcp", "--name", "CI\x1b[31m", "--expires", "30", *limits)
    assert re.fullmatch(r"hitl_mcp_[\w-]+", secret)
    access = tokens.find(secret)
    assert access is not None
    assert (access.tools, access.ceiling, access.without_elicitation) == (frozenset({"refund"}), 3, "url")
    listed = told("bob", "--list")
    assert "tools refund\tup to L3\twithout elicitation: url" in listed
    assert secret not in listed
    assert "\x1b" not in listed
    assert "was revoked" in told("bob", "--revoke", listed.split("\t")[0])
    assert tokens.find(secret) is None
    assert told("bob", "--list") == "No tokens."


def test_what_the_command_cannot_do_it_says_and_makes_nothing(bob: User) -> None:
    for arguments, said in {
        ("--kind", "api", "--ceiling", "2"): "only for --kind mcp",
        ("--kind", "mcp", "--tool", "nope"): "no tool named 'nope'",
        ("--kind", "mcp", "--name", "x" * 81): "name: ",
        ("--kind", "mcp", "--expires", "0"): "from 1 to 3650",
        ("--kind", "mcp", "--ceiling", "9"): "ceiling",
        ("--revoke", "7"): "no token with the number 7",
        ("--kind", "mcp", "--list"): "not allowed with",
        (): "required",
    }.items():
        with pytest.raises(CommandError, match=said):
            told("bob", *arguments)
    assert not Token.objects.exists()


def test_the_command_revokes_only_what_is_of_that_user(bob: User, charlie: User) -> None:
    Token.make(bob, TokenKind.API)
    with pytest.raises(CommandError):
        told("charlie", "--revoke", str(Token.objects.get().pk))
    assert Token.objects.exists()
