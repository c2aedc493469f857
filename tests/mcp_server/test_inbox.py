"""Clients that cannot ask their user: refused, or asked about in the inbox, as their token says."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.utils import timezone
from mcp_types import ElicitResult
from pytest_django import Settings

from hitlchat.accounts.models import Token, hashed
from hitlchat.gate import decide, queue, results
from hitlchat.gate.models import Approval, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.outcomes import MOST_WAITING
from tests.conftest import signed_in
from tests.gate.asking import ask, recording
from tests.mcp_server.clients import Asked, Raw, call_that_is, connected, for_ever, status, text
from tests.mcp_server.conftest import TokenOf
from tests.waiting import soon, stored

pytestmark = pytest.mark.django_db(transaction=True)

HELLO = {"text": "hello"}
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])


async def approve(bob: User) -> None:
    approval = await stored(lambda: Approval.objects.filter(call__status="waiting").first(), "an approval waits")
    await in_thread(decide.approve)(approval.pk, signed_in(bob))


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_by_default_such_a_call_is_refused_and_nobody_is_bothered(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async with connected(url, token, "2025") as client:
        result = await client.call_tool("refund", HELLO)
    assert (result.is_error, status(result), entered) == (True, "refused", [])
    assert "cannot ask its user" in text(result)
    assert "does not allow calls to wait for a person" in text(result)
    assert "policy" not in text(result)
    assert not await Approval.objects.aexists()


@pytest.mark.servers("Redis announces it after the commit")
async def test_a_call_waits_for_the_inbox_and_tells_that_it_does(
    url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    token = await in_thread(token_of)(bob, without_elicitation="inbox")
    told: list[Any] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with connected(url, token, "2026") as client:
        calling = asyncio.create_task(client.call_tool("refund", HELLO, progress_callback=note))
        await soon(lambda: told, "it is told to wait")
        assert entered == []
        await approve(bob)
        result = await calling
    assert (text(result), len(entered)) == ("done", 1)
    approval = await Approval.objects.aget()
    assert told[0] == f"Waits for a person's approval, at {url}/approvals/{approval.pk}"


async def test_after_a_while_the_client_is_told_to_come_back_and_then_gets_the_outcome_of_that_call(
    url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall], settings: Settings
) -> None:
    settings.MCP_INBOX_SECONDS = 0
    token = await in_thread(token_of)(bob, without_elicitation="inbox")
    async with connected(url, token, "2026") as client:
        first = await client.call_tool("refund", HELLO)
        approval = await Approval.objects.aget()
        assert (first.is_error, status(first)) == (True, "waiting")
        assert f"{url}/approvals/{approval.pk}" in text(first)
        assert status(await client.call_tool("refund", HELLO)) == "waiting"
        await approve(bob)
        await call_that_is(Status.SUCCEEDED)
        result = await client.call_tool("refund", HELLO)
        assert (text(result), len(entered)) == ("done", 1)
        # Its outcome is there once: the same call is a new one from then on.
        assert status(await client.call_tool("refund", HELLO)) == "waiting"
    assert (await Approval.objects.acount(), len(entered)) == (2, 1)


async def test_other_arguments_and_other_tokens_do_not_take_up_a_call_that_waits(
    url: str, token_of: TokenOf, bob: User, tool: Tool, settings: Settings
) -> None:
    settings.MCP_INBOX_SECONDS = 0
    first, second = [await in_thread(token_of)(bob, without_elicitation="inbox") for _ in range(2)]
    one, other = Raw(url, first), Raw(url, second)
    await one.call()
    await one.call(arguments={"text": "hello", "amount": 2})
    await other.call()
    assert await Approval.objects.acount() == 3


@pytest.mark.servers("Redis announces it after the commit")
@pytest.mark.guarantee("SR-41")
async def test_identical_calls_at_once_take_up_one_call_once(
    url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall], settings: Settings
) -> None:
    settings.MCP_INBOX_SECONDS = 0
    client = Raw(url, await in_thread(token_of)(bob, without_elicitation="inbox"))
    await client.call()
    await approve(bob)
    await call_that_is(Status.SUCCEEDED)
    results = await asyncio.gather(*(client.call() for _ in range(6)))
    states = [result["result"]["_meta"]["hitlchat/status"] for result in results]
    assert sorted(states) == ["succeeded"] + ["waiting"] * 5
    assert len(entered) == 1


async def test_an_outcome_of_long_ago_is_history_and_no_answer_to_a_new_call(
    url: str, token_of: TokenOf, bob: User, tool: Tool, settings: Settings
) -> None:
    settings.MCP_INBOX_SECONDS = 0
    client = Raw(url, await in_thread(token_of)(bob, without_elicitation="inbox"))
    await client.call()
    await approve(bob)
    await call_that_is(Status.SUCCEEDED)
    await ToolCall.objects.aupdate(settled_at=timezone.now() - timedelta(hours=2))
    assert (await client.call())["result"]["_meta"]["hitlchat/status"] == "waiting"


async def test_a_declined_call_is_told_to_whoever_comes_back(
    url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    token = await in_thread(token_of)(bob, without_elicitation="url")
    async with connected(url, token, "2025") as client:
        first = await client.call_tool("refund", HELLO)
        assert status(first) == "waiting"
        approval = await Approval.objects.aget()
        assert (first.meta or {})["hitlchat/approval"] == f"{url}/approvals/{approval.pk}"
        await in_thread(decide.decline)(approval.pk, signed_in(bob), reason="too much")
        result = await client.call_tool("refund", HELLO)
    assert (status(result), entered) == ("declined", [])
    assert "too much" in text(result)


@pytest.mark.guarantee("gate:truth")
async def test_an_answer_in_the_tools_place_is_no_error_and_says_that_a_person_gave_it(
    url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    token = await in_thread(token_of)(bob, without_elicitation="url")
    async with connected(url, token, "2025") as client:
        for schema, is_error in ((None, False), ({"type": "object", "required": ["id"]}, True)):
            await Tool.objects.filter(pk=tool.pk).aupdate(output_schema=schema)
            arguments = {"text": str(is_error)}
            assert status(await client.call_tool("refund", arguments)) == "waiting"
            approval = await Approval.objects.alatest("created_at")
            await in_thread(decide.answer)(approval.pk, signed_in(bob), "Customer 12")
            result = await client.call_tool("refund", arguments)
            assert (result.is_error, status(result), entered) == (is_error, "answered", [])
            assert "The tool was not executed. A person answered in its place" in text(result)
            assert "Customer 12" in text(result)


async def test_a_client_that_opens_addresses_is_sent_to_the_page_and_its_yes_is_none_to_the_call(
    url: str, token_of: TokenOf, bob: User, db: None, entered: list[ToolCall], settings: Settings
) -> None:
    await in_thread(recording)(risk_level=5)
    settings.MCP_INBOX_SECONDS = 0
    token = await in_thread(token_of)(bob)
    async with connected(url, token, "2026", Asked("accept")) as client:
        first = await client.call_tool("refund", HELLO)
        assert (status(first), entered) == ("waiting", [])
        await approve(bob)
        await call_that_is(Status.SUCCEEDED)
        assert text(await client.call_tool("refund", HELLO)) == "done"
    assert len(entered) == 1


@both_eras
async def test_a_client_whose_user_does_not_go_to_the_page_withdraws_the_call(
    era: str, url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    await in_thread(recording)(risk_level=5)
    replies = ("decline", "cancel", ElicitResult(action="accept", content={"a": 1}))
    async with connected(url, token, era, Asked(*replies)) as client:
        for reply in replies:
            result = await client.call_tool("refund", HELLO)
            assert (result.is_error, status(result), entered) == (True, "withdrawn", []), reply


async def test_what_is_too_long_for_a_question_is_decided_on_the_page(
    url: str, token: str, tool: Tool, bob: User, entered: list[ToolCall]
) -> None:
    calling = asyncio.create_task(Raw(url, token, elicitation={}).call(arguments={"text": "x" * 10_000}))
    await approve(bob)
    assert (await calling)["result"]["content"][0]["text"] == "done"


@pytest.mark.servers("Redis announces it after the commit")
@both_eras
async def test_a_client_that_cancels_while_it_waits_withdraws_the_call(
    era: str, url: str, token_of: TokenOf, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    token = await in_thread(token_of)(bob, without_elicitation="inbox")
    async with connected(url, token, era) as client:
        calling = asyncio.create_task(client.call_tool("refund", HELLO))
        await call_that_is(Status.WAITING)
        calling.cancel()
        call = await call_that_is(Status.WITHDRAWN)
    assert "cancelled" in call.reason
    assert entered == []


@pytest.mark.guarantee("SR-41")
async def test_no_more_than_so_many_calls_of_a_token_wait(url: str, token_of: TokenOf, bob: User, tool: Tool) -> None:
    secret = await in_thread(token_of)(bob, without_elicitation="url")
    await in_thread(let_wait)(bob, tool, secret, MOST_WAITING - 1)
    client = Raw(url, secret)
    calls = [await client.call(arguments={"text": each}) for each in ("the last", "one more")]
    assert [call["result"]["_meta"]["hitlchat/status"] for call in calls] == ["waiting", "refused"]
    assert await Approval.objects.acount() == MOST_WAITING


def let_wait(user: User, tool: Tool, secret: str, count: int) -> None:
    """So many calls that came in with this token wait."""
    token = Token.objects.get(digest=hashed(secret))
    for _ in range(count):
        Submission.objects.create(call=ask(user, tool, kind="mcp"), token=token, request="")


async def test_what_waits_for_a_person_is_limited_for_clients_as_for_everyone(
    url: str, token_of: TokenOf, bob: User, tool: Tool, settings: Settings
) -> None:
    settings.HITL_MAX_WAITING_PER_CALLER = 1
    first, second = [Raw(url, await in_thread(token_of)(bob, without_elicitation="url")) for _ in range(2)]
    await first.call()
    result = (await second.call())["result"]
    told = result["content"][0]["text"]
    assert result["_meta"]["hitlchat/status"] == "refused"
    assert results.NOBODY_ASKED in told
    assert queue.TOO_MANY in told
    assert await Approval.objects.acount() == 1


@pytest.mark.servers("Redis announces it after the commit")
async def test_a_running_tool_hears_that_its_client_cancelled(
    url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    await in_thread(recording)(source="stopping", mode="DISABLED")
    async with connected(url, token, "2026", Asked(for_ever)) as client:
        calling = asyncio.create_task(client.call_tool("refund", HELLO))
        await soon(lambda: entered, "the tool runs")
        calling.cancel()
        call = await call_that_is(Status.FAILED)
    assert call.error["message"] == "stopped"


async def test_a_call_that_ran_after_its_client_gave_up_is_told_of_when_it_is_asked_for_again(
    url: str, token: str, bob: User, tool: Tool, entered: list[ToolCall]
) -> None:
    client = Raw(url, token, elicitation={})
    await client.call(arguments=HELLO)
    await approve(bob)
    await call_that_is(Status.SUCCEEDED)
    again = await client.call(arguments=HELLO)
    assert "Note: The same call, with the same arguments, ran at" in json.dumps(again)
    assert len(entered) == 1
