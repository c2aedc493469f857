"""Ending an older session while a question is open in it."""

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server.authentication import ACCESS
from hitlchat.mcp_server.server import Limits
from hitlchat.mcp_server.tokens import Access
from tests.mcp_server.clients import call_that_is
from tests.mcp_server.older import older

pytestmark = pytest.mark.django_db(transaction=True)

OF_THE_SAME_KIND = pytest.mark.slow("one more of its kind")
WITH_IT: list[Any] = [
    pytest.param([], id="alone"),
    pytest.param(
        [{"method": "notifications/cancelled", "params": {"requestId": 1}}],
        id="cancelling first",
        marks=OF_THE_SAME_KIND,
    ),
    pytest.param([{"method": "notifications/roots/list_changed"}] * 20, id="saying much at once"),
    pytest.param([{"id": "another", "result": {}}] * 20, id="answering at once", marks=OF_THE_SAME_KIND),
]


@pytest.mark.servers("row locks tell two at a time apart")
@pytest.mark.parametrize("messages", WITH_IT)
async def test_a_client_that_ends_its_session_withdraws_its_question_and_leaves_no_error_behind(
    messages: list[dict[str, Any]],
    url: str,
    token: str,
    tool: Tool,
    entered: list[ToolCall],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with older(url, token) as client:
        calling = asyncio.create_task(client.call(text="hello"))
        await asyncio.wait_for(client.asked.wait(), 30)
        posts = [client._web.post("/mcp", json={"jsonrpc": "2.0", **message}) for message in messages]
        # What comes after the end is told that there is no such session.
        ended, *told = await asyncio.gather(client._web.delete("/mcp"), *posts)
        assert ended.status_code == 200
        assert {response.status_code for response in told} <= {202, 404}
        await asyncio.wait_for(client.over.wait(), 30)
        await calling
        await call_that_is(Status.WITHDRAWN)
    assert entered == []
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_a_session_ends_only_once_what_was_sent_to_it_before_has_been_taken_in(bob: User) -> None:
    taken, done = asyncio.Event(), []

    async def manager(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"mcp-session-id", b"s")]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        if scope["method"] == "POST" and scope["id"]:
            # Answered, and not taken in yet.
            await taken.wait()
        done.append(scope["method"])

    async def send(_: Any) -> None:
        pass

    def request(method: str, number: int) -> Any:
        shown = [(b"mcp-session-id", b"s")] if number else []
        scope = {"method": method, "headers": shown, "id": number, ACCESS: Access(1, bob.pk, "bob")}
        return asyncio.create_task(limits(scope, None, send))

    limits = Limits(manager)
    await request("POST", 0)
    answer, end = request("POST", 1), request("DELETE", 2)
    await asyncio.wait({end}, timeout=0.3)
    assert done == ["POST"]
    taken.set()
    await asyncio.wait_for(asyncio.gather(answer, end), 30)
    assert done == ["POST", "POST", "DELETE"]
