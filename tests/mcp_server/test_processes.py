"""/mcp of real servers: killed, restarted, and several on one database."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.mcp_server.clients import ERAS, Raw, answer, connected, text, yes
from tests.mcp_server.older import older
from tests.mcp_server.prepared import Prepared, installation, prepared
from tests.outside import Outside
from tests.processes import STEADY, Server, Servers
from tests.scripted_model import Gate
from tests.waiting import until

__all__ = ["installation", "prepared"]

# Each test starts processes, which takes long where others work too.
pytestmark = [
    pytest.mark.processes,
    pytest.mark.timeout(300),
    pytest.mark.servers("what a killed process leaves is what was committed"),
]

FORM: Any = {"elicitation": {"form": {}}}


@pytest.fixture
def bobs_token(prepared: Prepared) -> str:
    return prepared.token


async def asked(server: Server, token: str) -> str:
    result = (await Raw(server.url, token, **FORM).call("echo"))["result"]
    assert result["resultType"] == "input_required", result
    return str(result["requestState"])


def said(response: dict[str, Any]) -> str:
    return str(response["result"]["content"][0]["text"])


@pytest.mark.slow("starts processes")
@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel")
async def test_a_gated_call_is_asked_about_under_the_server_that_ships(servers: Servers, bobs_token: str) -> None:
    server = servers.start(**STEADY)
    for era in ERAS:
        user = yes()
        async with connected(server.url, bobs_token, era, user) as client:
            assert [tool.name for tool in (await client.list_tools()).tools if tool.name == "echo"] == ["echo"]
            result = await client.call_tool("echo", {"text": "hello"})
        assert (result.is_error, text(result), len(user.questions)) == (False, "hello", 1)


@pytest.mark.guarantee("gate:same-call")
async def test_a_question_survives_a_kill_of_the_server_and_is_answered_to_another_one(
    servers: Servers, bobs_token: str
) -> None:
    first, second = servers.start(**STEADY), servers.start(**STEADY)
    state = await asked(first, bobs_token)
    first.kill()
    assert said(await Raw(second.url, bobs_token, **FORM).call("echo", **answer(state))) == "hello"
    first.start()
    again = await Raw(first.url, bobs_token, **FORM).call("echo", **answer(state))
    assert "was already answered" in said(again)


@pytest.mark.slow("starts processes")
@pytest.mark.guarantee("gate:same-call", "gate:no-yes-no-run")
async def test_what_is_no_answer_at_the_process_that_asked_is_none_at_another_and_none_after_a_restart(
    servers: Servers, bobs_token: str
) -> None:
    first, second = servers.start(**STEADY), servers.start(**STEADY)
    elsewhere = servers.home.manage("create_token", "bob", "--kind", "mcp").strip()
    state = await asked(first, bobs_token)
    # That of a question that had its answer, at the one process: another one counts nowhere.
    used = await asked(first, bobs_token)
    assert "declined" in said(await Raw(first.url, bobs_token, **FORM).call("echo", **answer(used, "decline")))
    first.kill()
    first.start()
    for server in (second, first):
        client = Raw(server.url, bobs_token, **FORM)
        attempts = [
            client.call("echo", {"text": "goodbye"}, **answer(state)),
            client.call("echo", **answer(state[:-3] + ("AAA" if state[-3:] != "AAA" else "BBB"))),
            Raw(server.url, elsewhere, **FORM).call("echo", **answer(state)),
        ]
        assert [(await each)["error"]["code"] for each in attempts] == [-32602] * 3
        assert "was already answered" in said(await client.call("echo", **answer(used)))
        without_question = await client.call("echo", inputResponses=answer("")["inputResponses"])
        assert without_question["result"]["resultType"] == "input_required"
    person = second.sign_in("bob")
    assert sorted(statuses(person)) == ["declined", "waiting", "waiting", "waiting"]
    # The true one stands, through all of that.
    assert said(await Raw(second.url, bobs_token, **FORM).call("echo", **answer(state))) == "hello"


@pytest.mark.slow("starts processes")
@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_an_answer_to_an_older_question_counts_only_at_the_process_that_holds_it_open(
    servers: Servers, bobs_token: str
) -> None:
    here, there = servers.start(**STEADY), servers.start(**STEADY)
    async with older(here.url, bobs_token) as client, older(there.url, bobs_token) as other:
        calling = asyncio.create_task(client.call("echo", text="hello"))
        await asyncio.wait_for(client.asked.wait(), 60)
        yes = {"jsonrpc": "2.0", "id": client.question["id"], "result": {"action": "accept"}}
        # With a session of its own, which was asked nothing; and with the session that was, which is none there.
        assert (await other._web.post("/mcp", json=yes)).status_code in (202, 400)
        session = {"mcp-session-id": client._web.headers["mcp-session-id"]}
        assert (await other._web.post("/mcp", json=yes, headers=session)).status_code == 404
        await client.answer(result={"action": "decline"})
        await asyncio.wait_for(calling, 60)
    assert client.result["_meta"]["hitlchat/status"] == "declined"


@pytest.mark.slow("starts processes")
@pytest.mark.guarantee("gate:at-most-once", "gate:one-outcome")
async def test_answers_sent_to_two_servers_at_once_run_it_once(servers: Servers, bobs_token: str) -> None:
    processes = [servers.start(**STEADY), servers.start(**STEADY)]
    state = await asked(processes[0], bobs_token)
    clients = [Raw(processes[n % 2].url, bobs_token, **FORM) for n in range(10)]
    texts = [said(one) for one in await asyncio.gather(*(each.call("echo", **answer(state)) for each in clients))]
    assert texts.count("hello") == 1
    person = processes[0].sign_in("bob")
    assert [call["status"] for call in person.get("/api/calls").json()] == ["succeeded"]


@pytest.mark.slow("starts processes")
async def test_a_person_answers_at_one_server_while_an_older_client_waits_at_another(
    servers: Servers, bobs_token: str
) -> None:
    here, there = servers.start(**STEADY), servers.start(**STEADY)
    person = there.sign_in("bob")
    async with older(here.url, bobs_token) as client:
        calling = asyncio.create_task(client.call("echo", text="hello"))
        await asyncio.wait_for(client.asked.wait(), 60)
        (approval,) = person.pending()
        assert person.post(f"/api/approvals/{approval['id']}/approve", {}).status_code == 200
        await asyncio.wait_for(calling, 60)
    assert client.result["content"][0]["text"] == "hello"


@pytest.mark.slow("starts processes")
@pytest.mark.guarantee("gate:at-most-once")
async def test_a_call_whose_server_is_killed_while_it_executes_is_unknown_and_never_run_again(
    servers: Servers, bobs_token: str, outside: Outside
) -> None:
    outside.gate = Gate()
    server = servers.start()
    server.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    client = Raw(server.url, bobs_token, **FORM)
    result = (await client.call("order", {"what": "a lamp"}))["result"]
    yes = answer(result["requestState"])
    calling = asyncio.create_task(client.call("order", {"what": "a lamp"}, **yes))
    await asyncio.to_thread(outside.gate.wait)
    server.kill()
    await asyncio.wait({calling}, timeout=60)
    assert isinstance(calling.exception(), httpx2.TransportError)
    server.start()
    person = server.sign_in("bob")
    await asyncio.to_thread(until, lambda: statuses(person) == ["unknown"], "it counts as unknown", seconds=60)
    again = await client.call("order", {"what": "a lamp"}, **yes)
    assert "was already answered" in said(again)
    assert (statuses(person), len(outside.orders)) == (["unknown"], 1)


def statuses(person: Any) -> list[str]:
    return [call["status"] for call in person.get("/api/calls").json()]


@pytest.mark.slow("starts processes")
async def test_a_server_that_is_stopped_ends_soon_with_streams_and_questions_open(
    servers: Servers, bobs_token: str
) -> None:
    server = servers.start(**STEADY)
    async with older(server.url, bobs_token) as client:
        calling = asyncio.create_task(client.call("echo", text="hello"))
        await asyncio.wait_for(client.asked.wait(), 60)
        assert await asyncio.to_thread(server.stop) == 0
        await asyncio.wait({calling}, timeout=60)
    assert "Traceback" not in server.log
