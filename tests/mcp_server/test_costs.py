"""What a request costs in statements to the database: a fixed number, whatever else there is."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.db import connection
from mcp.client import Client

from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from tests.gate.asking import recording
from tests.mcp_server.clients import connected, text
from tests.mcp_server.conftest import TokenOf

pytestmark = pytest.mark.django_db(transaction=True)
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])

# The token, what is exposed, and the tools of one page.
LIST: Final = 3
# The same with one tool, and whether there is a call to pick up. Then the call is put on record (after one more look
# whether its tool still is), claimed (after a look at what it is by now) and settled, each with an audit event; and who
# asked is noted. At last it is read with its result.
CALL: Final = 16
MOST_TIMES: Final = 40


class Statements:
    """To the database, by the thread in which a server of this process talks to it, whoever caused them."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        if not sql.startswith(("BEGIN", "SAVEPOINT", "RELEASE")):
            self.seen.append(sql)
        return execute(sql, *more)


@asynccontextmanager
async def statements() -> AsyncIterator[Statements]:
    counter = Statements()
    await in_db(lambda: connection.execute_wrappers.append(counter))()
    try:
        yield counter
    finally:
        await in_db(lambda: connection.execute_wrappers.remove(counter))()


async def assert_within(work: Callable[[], Awaitable[None]], most: int) -> list[str]:
    """`work` needs so few statements, which are returned, once nothing else is done beside it."""
    await work()
    found: list[list[str]] = []
    async with statements() as counter:
        while len(found) < MOST_TIMES and not (found and len(found[-1]) <= most):
            counter.seen.clear()
            await work()
            found.append(list(counter.seen))
    needed = min(found, key=len)
    # That the token is looked for in every request shows that statements are counted at all.
    assert "accounts_token" in needed[0]
    assert len(needed) <= most, "\n".join(needed)
    return needed


def calling(client: Client) -> Callable[[], Awaitable[None]]:
    async def call() -> None:
        result = await client.call_tool("free", {"text": "hello"})
        assert not result.is_error, text(result)

    return call


def listing(client: Client) -> Callable[[], Awaitable[None]]:
    async def read() -> None:
        assert (await client.list_tools()).tools

    return read


@both_eras
async def test_a_call_and_a_list_take_a_fixed_number_of_statements_however_many_tools_calls_and_questions_there_are(
    era: str, url: str, token_of: TokenOf, bob: User
) -> None:
    patient = await in_thread(token_of)(bob, without_elicitation="url")
    await in_thread(_crowd)()
    async with connected(url, patient, era) as client:
        for number in range(6):
            await client.call_tool("refund", {"text": f"order {number}"})
            await client.call_tool("free", {"text": f"order {number}"})
        needed = await assert_within(calling(client), CALL)
        # Nor is it written with every request that the token was used.
        assert not [sql for sql in needed if sql.startswith("UPDATE") and "accounts_token" in sql]
        await assert_within(listing(client), LIST)
    assert await ToolCall.objects.filter(status=Status.WAITING).acount() == 6


def _crowd() -> None:
    """A tool that asks, one that does not, and 300 more."""
    recording("free", mode="DISABLED")
    like = recording("refund")
    Tool.objects.bulk_create(
        Tool(name=f"other_{number}", source=like.source, input_schema=like.input_schema, published=True)
        for number in range(300)
    )
