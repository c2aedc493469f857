"""What the server tells by itself: that the catalog changed, how far a call is, and whose server it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from mcp.client import Client
from pytest_django import Settings

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.mcp_server.listing import Audience
from hitlchat.mcp_server.models import McpToken
from hitlchat.upstreams import endpoint
from tests.gate.asking import recording
from tests.mcp_server.clients import MODERN, connected, text, yes
from tests.mcp_server.conformance import catalog
from tests.mcp_server.conftest import TokenOf
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])


def describe_anew() -> int:
    return Tool.objects.update(description=f"as of {uuid4()}")


@pytest.mark.servers("Redis announces it after the commit")
@both_eras
async def test_a_client_is_told_when_the_catalog_or_its_limits_change_and_not_of_tokens_of_others(
    era: str, url: str, token: str, token_of: TokenOf, bob: User, charlie: User, tool: Tool
) -> None:
    second = await in_thread(token_of)(bob)
    async with hearing(url, token, era) as (_, told), hearing(url, second, era) as (client, narrowed):
        assert lists_change(client)
        await in_thread(token_of)(charlie)
        await in_thread(narrow_newest)(bob)
        await soon(narrowed.is_set, "the one whose limits changed is told")
        assert (await client.list_tools()).tools == []
        assert not told.is_set()
        await in_thread(describe_anew)()
        await soon(told.is_set, "both are told of a change for all")


def narrow_newest(user: User) -> None:
    newest = McpToken.objects.filter(token__user=user).order_by("-pk").first()
    assert newest is not None
    McpToken.objects.filter(pk=newest.pk).update(ceiling=0)


@asynccontextmanager
async def hearing(url: str, token: str, era: str) -> AsyncIterator[tuple[Client, asyncio.Event]]:
    """A client, and what is set once a client with this token is told that its list changed."""
    told = asyncio.Event()

    async def heard(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    async with connected(url, token, era, message_handler=heard) as client:
        if era == "2025":
            yield client, told
            return
        async with client.listen(tools_list_changed=True) as events:
            listening = asyncio.create_task(_set_with_first(events, told))
            yield client, told
            listening.cancel()


async def _set_with_first(events: Any, told: asyncio.Event) -> None:
    await anext(aiter(events))
    told.set()


async def test_a_change_before_the_first_look_is_told_to_who_listed_before_it(db: None, tool: Tool) -> None:
    audience, heard = Audience(), asyncio.Event()
    async with audience.watching():
        # Its client has listed by now, and nobody has looked since.
        await in_thread(describe_anew)()
        leave = audience.subscribe(lambda _: heard.set())
        await asyncio.wait_for(heard.wait(), 15)
        heard.clear()
        leave()
        await in_thread(describe_anew)()
        audience.subscribe(lambda _: heard.set())
        await asyncio.wait_for(heard.wait(), 15)


def lists_change(client: Client) -> bool:
    told = client.server_capabilities
    return told is not None and told.tools is not None and bool(told.tools.list_changed)


async def test_a_call_tells_how_far_its_tool_is(url: str, token: str, db: None, entered: list[ToolCall]) -> None:
    await in_thread(recording)(source="stepping")
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connected(url, token, "2025", yes()) as client:
        result = await client.call_tool("refund", {"text": "hello"}, progress_callback=note)
    assert text(result) == "done"
    assert [step for step in told if step[2]] == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_that_a_tool_has_begun_is_told_too_although_it_is_none_of_the_way(
    url: str, token: str, settings: Settings
) -> None:
    source = f"{catalog.__name__}.{catalog.ConformanceSource.__name__}"
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, catalog.SOURCE: source}
    await in_thread(recording)("test_tool_with_progress", source=catalog.SOURCE, mode="DISABLED")
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with connected(url, token) as client:
        await client.call_tool("test_tool_with_progress", {"text": "hello"}, progress_callback=note)
    assert told == [(0, "0 percent"), (50, "50 percent"), (100, "100 percent")]


@both_eras
async def test_a_server_that_is_this_installation_is_recognised_and_no_other(
    era: str, url: str, token: str, db: None, settings: Settings
) -> None:
    async with connected(url, token, era) as client:
        await discovered(client, era)
        assert client.server_capabilities is not None
        told = client.server_capabilities.experimental
    assert endpoint.is_this_installation(told)
    assert not endpoint.is_this_installation(None)
    assert not endpoint.is_this_installation({"hitlchat": {"installation": "another"}})
    settings.SECRET_KEY = "the key of another installation, long enough"
    assert not endpoint.is_this_installation(told)


async def discovered(client: Client, era: str) -> None:
    assert client.protocol_version == (MODERN if era == "2026" else "2025-11-25")
