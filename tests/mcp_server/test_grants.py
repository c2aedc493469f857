"""Grants and MCP clients: given by the signed-in person, for one token; never on a client's word."""

import asyncio

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User

from hitlchat.gate import decide
from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Approval, Grant, ToolCall
from tests.conftest import signed_in
from tests.gate.granting import conditional
from tests.mcp_server.clients import connected, status, text, yes
from tests.mcp_server.conftest import TokenOf
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)

HELLO = {"text": "hello"}


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_grant_from_the_inbox_covers_the_next_call_with_this_token_and_then_it_waits_again(
    url: str, token_of: TokenOf, bob: User, entered: list[ToolCall]
) -> None:
    await in_thread(conditional)()
    token = await in_thread(token_of)(bob, without_elicitation="inbox")
    other = await in_thread(token_of)(bob)
    async with connected(url, token, "2025") as client:
        calling = asyncio.create_task(client.call_tool("refund", HELLO))
        approval = await stored(lambda: Approval.objects.filter(call__status="waiting").first(), "it waits")
        await in_thread(decide.approve)(approval.pk, signed_in(bob), grant=Scope(calls=1))
        assert text(await calling) == "done"
        async with connected(url, other, "2025") as stranger:
            assert status(await stranger.call_tool("refund", HELLO)) == "refused"
        assert text(await client.call_tool("refund", HELLO)) == "done"
        assert (await Grant.objects.aget()).used == 1
        calling = asyncio.create_task(client.call_tool("refund", HELLO))
        approval = await stored(lambda: Approval.objects.filter(call__status="waiting").first(), "it waits again")
        await in_thread(decide.decline)(approval.pk, signed_in(bob))
        assert status(await calling) == "declined"
    assert len(entered) == 2


@pytest.mark.guarantee("gate:only-people")
async def test_a_clients_word_gives_no_grant(url: str, token: str, bob: User) -> None:
    await in_thread(conditional)()
    for _ in range(2):
        asked = yes()
        async with connected(url, token, "2025", asked) as client:
            assert text(await client.call_tool("refund", HELLO)) == "done"
    assert await Approval.objects.acount() == 2
    assert not await Grant.objects.aexists()
