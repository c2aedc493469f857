"""A body that readers could take for different things: what a proxy or a log saw is not what would count (SR-13)."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from hitlchat.gate.models import Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.mcp_server.clients import MODERN, Raw
from tests.mcp_server.older import ACCEPT, older

pytestmark = pytest.mark.django_db(transaction=True)

RESULTS = {
    "two actions": '"result": {"action": "decline", "action": "accept"}',
    "two spellings of one key": '"result": {"action": "decline", "\\u0061ction": "accept"}',
    "two results": '"result": {"action": "decline"}, "result": {"action": "accept"}',
    "behind what is no JSON": '"x": NaN, "result": {"action": "decline", "action": "accept"}',
    "in a long body": f'"x": "{"x" * 100_000}", "result": {{"action": "decline", "action": "accept"}}',
}


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_an_older_answer_with_a_key_twice_is_refused_and_leaves_the_question_open(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    async with older(url, token) as client:
        calling = asyncio.create_task(client.call(text="hello"))
        await asyncio.wait_for(client.asked.wait(), 30)
        for case, result in RESULTS.items():
            body = f'{{"jsonrpc": "2.0", "id": {json.dumps(client.question["id"])}, {result}}}'
            refused(await client._web.post("/mcp", content=body, headers={"content-type": "application/json"}))
            assert (await ToolCall.objects.aget()).status == Status.WAITING, case
            assert not await Decision.objects.aexists()
        await client.answer(result={"action": "decline"})
        await calling
    assert (client.result["_meta"]["hitlchat/status"], entered) == ("declined", [])


PARAMETERS = {
    "two actions": '"requestState": "STATE", "inputResponses": {"approval": {"action": "decline", "action": "accept"}}',
    "two approvals": '"requestState": "STATE",'
    ' "inputResponses": {"approval": {"action": "decline"}, "approval": {"action": "accept"}}',
    "two answers": '"requestState": "STATE", "inputResponses": {"approval": {"action": "decline"}},'
    ' "inputResponses": {"approval": {"action": "accept"}}',
}


@pytest.mark.guarantee("gate:no-yes-no-run", "SR-13")
async def test_a_yes_of_2026_with_a_key_twice_is_refused_and_leaves_the_question_open(
    url: str, token: str, tool: Tool, entered: list[ToolCall]
) -> None:
    state = (await Raw(url, token, elicitation={}).call())["result"]["requestState"]
    for case, more in PARAMETERS.items():
        refused(await called(url, token, f'"arguments": {{"text": "hello"}}, {more.replace("STATE", state)}'))
        assert (await ToolCall.objects.aget()).status == Status.WAITING, case
        assert entered == []
        assert not await Decision.objects.aexists()


async def test_arguments_with_a_key_twice_are_put_to_nobody(url: str, token: str, tool: Tool) -> None:
    refused(await called(url, token, '"arguments": {"text": "first", "text": "second"}'))
    assert not await ToolCall.objects.aexists()


async def test_a_body_that_comes_in_pieces_is_read_as_a_whole(url: str, token: str, tool: Tool) -> None:
    assert (await called(url, token, '"arguments": {"text": "hello"}', pieces=7)).status_code == 200
    refused(await called(url, token, '"arguments": {"text": "first", "text": "second"}', pieces=7))
    assert await ToolCall.objects.acount() == 1


async def test_a_body_too_large_is_refused_as_such_however_it_comes(url: str, token: str, tool: Tool) -> None:
    for pieces in (0, 5):
        response = await called(url, token, f'"arguments": {{"text": "{"x" * 2**21}"}}', pieces=pieces)
        assert response.status_code == 413


def refused(response: httpx2.Response) -> None:
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32700


async def called(url: str, token: str, parameters: str, pieces: int = 0) -> httpx2.Response:
    """tools/call with these parameters as they are written here."""
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": MODERN, f"{prefix}/clientCapabilities": {"elicitation": {}}}
    told = f'{{"name": "refund", "_meta": {json.dumps(meta)}, {parameters}}}'
    body = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {told}}}'.encode()
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": ACCEPT,
        "Content-Type": "application/json",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "refund",
    }

    async def parts() -> Any:
        length = len(body) // pieces + 1
        for at in range(0, len(body), length):
            yield body[at : at + length]

    async with httpx2.AsyncClient(timeout=30, trust_env=False, verify=False) as web:
        return await web.post(f"{url}/mcp", content=parts() if pieces else body, headers=headers)
