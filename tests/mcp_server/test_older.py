"""The arm for clients of 2025 and older, whose question holds their request open: what they may do to it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.gate import editing
from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.models import McpToken
from tests.conftest import signed_in
from tests.mcp_server.clients import Asked, call_that_is, connected, for_ever
from tests.mcp_server.older import older
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERS: dict[str, dict[str, Any]] = {
    "another word": {"result": {"action": "yes"}},
    "another case": {"result": {"action": "Accept"}},
    "true": {"result": {"action": True}},
    "nothing": {"result": {}},
    "content of another shape": {"result": {"action": "accept", "content": {"a": {"b": 1}}}},
    "content that was not asked for": {"result": {"action": "accept", "content": {"a": 1}}},
}


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-34")
async def test_an_answer_that_is_none_withdraws_the_call(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    for case, given in ANSWERS.items():
        async with older(url, token) as client:
            calling = asyncio.create_task(client.call(text="hello"))
            await asyncio.wait_for(client.asked.wait(), 15)
            await client.answer(**given)
            await calling
        assert client.result["isError"], case
        assert client.result["_meta"]["hitlchat/status"] == "withdrawn", case
        assert "did not fit" in client.result["content"][0]["text"], case
    assert entered == []
    assert not await Decision.objects.aexists()


async def test_a_second_answer_changes_nothing(url: str, token: str, tool: Tool, entered: list[ToolCall]) -> None:
    async with older(url, token) as client:
        calling = asyncio.create_task(client.call(text="hello"))
        await asyncio.wait_for(client.asked.wait(), 15)
        await client.answer(result={"action": "decline"})
        await client.answer(result={"action": "accept"})
        await calling
    assert client.result["_meta"]["hitlchat/status"] == "declined"
    assert entered == []


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-34")
async def test_a_client_that_dies_with_the_question_open_withdraws_the_call(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async with older(url, token) as client:
        calling = asyncio.create_task(client.call(text="hello"))
        await asyncio.wait_for(client.asked.wait(), 15)
        calling.cancel()
        await asyncio.wait_for(client.over.wait(), 15)
    call = await call_that_is(Status.WITHDRAWN)
    assert "went away" in call.reason
    assert entered == []


@pytest.mark.guarantee("gate:truth")
async def test_a_question_that_nobody_answers_expires_with_its_deadline(
    url: str, token: str, tool: Tool, entered: list[ToolCall], settings: Settings
) -> None:
    await Tool.objects.aupdate(deadline_seconds=3600)
    settings.MCP_ELICITATION_SECONDS = 0.3
    async with older(url, token) as client:
        await asyncio.wait_for(client.call(text="hello"), 15)
    assert client.result["isError"]
    assert client.result["_meta"]["hitlchat/status"] == "expired"
    assert "in time" in client.result["content"][0]["text"]
    assert entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_yes_to_a_tool_that_its_token_may_no_longer_use_runs_nothing(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async with older(url, token) as client:
        calling = asyncio.create_task(client.call(text="hello"))
        await asyncio.wait_for(client.asked.wait(), 30)
        await McpToken.objects.aupdate(tools=["another"])
        await client.answer(result={"action": "accept"})
        await calling
    assert client.result["_meta"]["hitlchat/status"] == "withdrawn"
    assert "may no longer use this tool" in client.result["content"][0]["text"]
    assert entered == []
    assert not await Decision.objects.aexists()


async def test_a_session_belongs_to_the_token_that_began_it(url: str, token: str, tool: Tool, bob: User) -> None:
    async with older(url, token) as client:
        client._web.headers["authorization"] = f"Bearer {await in_thread(tokens.make_mcp)(bob)}"
        response = await client._web.post("/mcp", json={"jsonrpc": "2.0", "id": 5, "method": "tools/list"})
        assert response.status_code == 404


async def test_a_client_that_cancels_while_its_user_thinks_withdraws_the_call(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async with connected(url, token, "2025", Asked(for_ever)) as client:
        calling = asyncio.create_task(client.call_tool("refund", {"text": "hello"}))
        await call_that_is(Status.WAITING)
        calling.cancel()
        call = await call_that_is(Status.WITHDRAWN)
    assert "cancelled it" in call.reason
    assert entered == []


@pytest.mark.slow("waits out a deadline")
async def test_a_question_whose_deadline_is_put_off_stays_open_for_its_client(
    url: str, token: str, tool: Tool, entered: list[ToolCall], settings: Settings, bob: User
) -> None:
    settings.MCP_ELICITATION_SECONDS = 2
    async with older(url, token) as client:
        calling = asyncio.create_task(client.call(text="hello"))
        await asyncio.wait_for(client.asked.wait(), 15)
        call: Any = await ToolCall.objects.select_related("approval").aget()
        await in_thread(editing.extend)(call.approval.pk, signed_in(bob))
        # Its first deadline passes, as the database has it.
        await soon(lambda: timezone.now() > call.deadline + timedelta(seconds=1.2))
        assert (await ToolCall.objects.aget()).status == Status.WAITING
        await client.answer(result={"action": "accept"})
        await asyncio.wait_for(calling, 15)
    assert not client.result.get("isError")
    assert [each.pk for each in entered] == [call.pk]
