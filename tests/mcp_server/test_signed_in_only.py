"""“A signed-in person must decide”: then even clients that could ask are sent to the page."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestURLParams, ElicitResult

from hitlchat.accounts.models import Token
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate.asking import recording
from tests.gate.deciding_people import approver, rule
from tests.mcp_server.clients import Raw, answer, call_that_is, connected, status, text, yes
from tests.mcp_server.older import older
from tests.waiting import soon

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]

HELLO = {"text": "hello"}
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])


def turn(on: bool) -> None:
    Tool.objects.update(signed_in_only=on)


def not_enough(why: str, alice: User, bob: User) -> User:
    """Make a tool of which this client's word decides nothing, and return who decides."""
    if why == "the rules":
        dora = approver("dora")
        rule(recording(), alice, not_the_requester=True)
        return dora
    recording(signed_in_only=why == "the setting", risk_level=5 if why == "the risk" else 1)
    Token.objects.update(attended=why != "the mark")
    return bob


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-26")
@pytest.mark.parametrize(
    "era, why",
    [
        ("2025", "the setting"),
        ("2025", "the risk"),
        ("2026", "the risk"),
        ("2026", "the mark"),
        ("2026", "the rules"),
    ],
)
async def test_a_client_that_could_ask_is_sent_to_the_page_which_its_user_goes_to_without_a_yes(
    era: str, why: str, url: str, token: str, alice: User, bob: User, entered: list[ToolCall]
) -> None:
    decider = await in_thread(not_enough)(why, alice, bob)
    user = yes()
    async with connected(url, token, era, user) as client:
        (listed,) = (await client.list_tools()).tools
        assert (listed.meta or {})["hitlchat/signedInOnly"] is True
        calling = asyncio.create_task(client.call_tool("refund", HELLO))
        await soon(lambda: user.questions, "the user is sent to the page")
        approval = await Approval.objects.aget()
        (question,) = user.questions
        assert isinstance(question, ElicitRequestURLParams)
        assert question.url == f"{url}/approvals/{approval.pk}"
        assert question.message.startswith("A signed-in person must decide this call")
        assert entered == []
        await in_thread(decide.approve)(approval.pk, signed_in(decider))
        result = await calling
    assert (text(result), len(entered)) == ("done", 1)
    assert (await Decision.objects.aget()).means == "session"


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth")
@both_eras
@pytest.mark.parametrize("change", ["the setting", "the mark"])
async def test_where_that_changes_while_the_user_is_asked_their_yes_does_not_count_and_they_are_sent_to_the_page(
    change: str, era: str, url: str, token: str, tool: Tool, bob: User, entered: list[ToolCall]
) -> None:
    sent: list[ElicitRequestURLParams] = []

    async def user(context: ClientRequestContext, params: Any) -> Any:
        if isinstance(params, ElicitRequestURLParams):
            sent.append(params)
        elif change == "the setting":
            await in_thread(turn)(True)
        else:
            await in_thread(Token.objects.update)(attended=False)
        return ElicitResult(action="accept")

    async with connected(url, token, era, user) as client:
        calling = asyncio.create_task(client.call_tool("refund", HELLO))
        await soon(lambda: sent, "the user is sent to the page")
        assert (await ToolCall.objects.aget()).status == Status.WAITING
        assert (entered, await Decision.objects.acount()) == ([], 0)
        await in_thread(decide.decline)((await Approval.objects.aget()).pk, signed_in(bob))
        result = await calling
    assert (status(result), entered) == ("declined", [])
    assert (await Decision.objects.aget()).means == "session"


@pytest.mark.guarantee("SR-35")
@both_eras
async def test_a_client_that_opens_no_pages_waits_while_its_user_is_asked_in_the_inbox(
    era: str, url: str, token: str, db: None, bob: User, entered: list[ToolCall]
) -> None:
    await in_thread(recording)(signed_in_only=True)
    calling = asyncio.create_task(asking_forms_only(era, url, token))
    call = await call_that_is(Status.WAITING)
    await in_thread(decide.approve)((await Approval.objects.aget(call=call)).pk, signed_in(bob))
    result, questions = await calling
    assert (result["content"][0]["text"], questions, len(entered)) == ("done", 0, 1)


async def asking_forms_only(era: str, url: str, token: str) -> tuple[dict[str, Any], int]:
    """The result of a call by a client that can ask its user and open no pages, and how often it was to ask."""
    if era == "2026":
        return (await Raw(url, token, elicitation={"form": {}}).call())["result"], 0
    async with older(url, token, form={}) as client:
        await client.call(text="hello")
        return client.result, int(client.asked.is_set())


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_yes_brought_back_after_it_was_turned_on_gets_the_page_instead(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    client = Raw(url, token, elicitation={"form": {}, "url": {}})
    state = (await client.call())["result"]["requestState"]
    await in_thread(turn)(True)
    result = (await client.call(**answer(state)))["result"]
    assert result["inputRequests"]["approval"]["params"]["mode"] == "url"
    assert (entered, await Decision.objects.acount()) == ([], 0)
    events = AuditEvent.objects.filter(call__isnull=False)
    assert [event.name async for event in events] == ["call.waiting", "call.shown"]


async def test_a_clients_no_ends_the_question_although_its_yes_would_not_count(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async def user(context: ClientRequestContext, params: Any) -> Any:
        await in_thread(turn)(True)
        return ElicitResult(action="decline")

    async with connected(url, token, "2025", user) as client:
        result = await client.call_tool("refund", HELLO)
    assert (status(result), entered) == ("withdrawn", [])
    assert "the client says that its user declined" in text(result)
    assert not await Decision.objects.aexists()


async def test_clients_are_told_of_it_with_the_tool(url: str, token: str, settings: Any, db: None) -> None:
    settings.HITL_ELICITATION_MAX_RISK = 3
    columns: dict[str, dict[str, Any]] = {"free": {}, "set": {"signed_in_only": True}, "risky": {"risk_level": 4}}
    for name, more in columns.items():
        await in_thread(recording)(name, **more)
    async with connected(url, token, "2026") as client:
        listed = (await client.list_tools()).tools
    said = {each.name: (each.meta or {})["hitlchat/signedInOnly"] for each in listed}
    assert said == {"free": False, "set": True, "risky": True}
