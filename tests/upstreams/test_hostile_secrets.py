"""What a connection is given to prove itself reaches its server whole, and is seen by nobody else: SR-44."""

import base64
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate.status import Status
from hitlchat.secrets.values import Value
from hitlchat.upstreams.client.link import Step
from hitlchat.upstreams.models import progressed
from tests.gate.asking import approval_of
from tests.upstreams.gated import asked, called, exposed, now, offering, program, read, settled, web, yes
from tests.upstreams.hostile_http import HostileHttp, hostile_http
from tests.upstreams.hostile_tools import leaking
from tests.waiting import stored

pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True)]

KEY = "sk-very-secret-0815-4711-abcdef"
HEREDOC = (
    f"-----BEGIN KEY-----\n{'QUJDREVGR0hJSktMTU5PUFFS' * 3}\n{'c3R1dnd4eXphYmNkZWZnaGlq' * 3}\n-----END KEY-----\n"
)


def everything_stored() -> str:
    """Every column of every row, as text; what is sealed is sealed."""
    found: list[str] = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found += [str(value) for row in cursor.fetchall() for value in row]
    return "\n".join(found)


def parts(secret: str) -> list[str]:
    """What of it would give it away: the whole, and each longer line."""
    return [secret, *(line for line in secret.splitlines() if len(line) > 20)]


@pytest.fixture
async def hostile(serving: None) -> AsyncIterator[HostileHttp]:
    async with hostile_http() as there:
        yield there


async def test_a_bearer_token_reaches_the_server_and_is_seen_nowhere_else(
    alice: User, bob: User, hostile: HostileHttp, caplog: pytest.LogCaptureFixture
) -> None:
    """SR-44: in the result, its keys and nested values, on the card, in the audit and in the log."""
    caplog.set_level(logging.DEBUG, "hitlchat")
    header = Value("Authorization", f"Bearer {KEY}")
    server = await in_db(web)(alice, hostile, headers=(header,))
    tool = (await exposed(alice, server, "tell", mode="REQUIRED"))["tell"]
    call = await asked(bob, tool, text="hello")
    card = json.dumps((await in_db(approval_of)(call)).disclosure)
    await yes(bob, call)
    ended = await settled(call)
    assert ended.status == Status.SUCCEEDED
    assert {each["authorization"] for each in hostile.headers} == {f"Bearer {KEY}"}
    assert ended.result["structured"]["headers"]["nested"] == [{"authorization": "•••", "•••": 1}]
    assert "Authorization" in card
    for place in (card, await read(ended), await in_db(everything_stored)(), caplog.text):
        assert KEY not in place


async def test_a_secret_of_the_environment_is_hidden_in_all_that_a_program_says(
    alice: User,
    bob: User,
    allow_stdio: None,
    serving: None,
    caplog: pytest.LogCaptureFixture,
    settings: Settings,
) -> None:
    """SR-44: in results, errors, progress, notes, names; however it was cut. The program itself has the raw value."""
    settings.MCP_LIST_SECONDS = 0  # What a program wrote is reported with the next list.
    steps: list[Step] = []

    def follow(*, step: Step, **_: Any) -> None:
        steps.append(step)

    progressed.connect(follow)
    server = await in_db(program)(alice, "leaks", secrets=(Value("API_KEY", HEREDOC),))
    names = ("secret", "secret_error", "secret_progress", "secret_at_the_end", "secret_hash")
    tools = await exposed(alice, server, *names)
    ended = {name: await called(bob, tool) for name, tool in tools.items()}
    await stored(lambda: len(now(server).notes) >= 4, "what it wrote is noted")
    assert ended["secret_hash"].result == base64.b32encode(HEREDOC.encode()).decode()
    assert ended["secret"].result["structured"] == {"key": "•••"}
    assert (await in_db(now)(server)).told_version == "•••"
    told = [*[await read(call) for call in ended.values()], *(step.message for step in steps)]
    assert steps
    for place in (*told, await in_db(everything_stored)(), caplog.text):
        assert [part for part in parts(HEREDOC) if part in place] == []
        # Nor the half of it that is left where something was cut.
        assert HEREDOC[:12] not in place


async def test_a_tool_that_was_told_a_secret_does_not_tell_models_and_people(
    alice: User, bob: User, allow_stdio: None, serving: None, tmp_path: Path
) -> None:
    """SR-44: a server may write what it was given into its tools, where cards and models would show it."""
    secrets = (Value("API_KEY", KEY),)
    server = await in_db(offering)(alice, tmp_path, [leaking(KEY)], secrets=secrets)
    tool = (await exposed(alice, server, "tell", mode="REQUIRED"))["tell"]
    call = await asked(bob, tool, a="b")
    assert (tool.description, call.status) == ("uses •••", Status.WAITING)
    assert KEY not in await in_db(everything_stored)()


async def test_a_secret_in_the_address_is_hidden_where_the_address_is_shown(
    alice: User, bob: User, hostile: HostileHttp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """SR-44. The log of HTTP requests included."""
    monkeypatch.setenv("SHOP_KEY", KEY)
    server = await in_db(web)(alice, hostile, path="/mcp?key=${SHOP_KEY}")
    tools = await exposed(alice, server, "fine", "reset", mode="REQUIRED")
    call = await asked(bob, tools["fine"])
    await yes(bob, call)
    assert (await settled(call)).status == Status.SUCCEEDED
    assert f"/mcp?key={KEY}" in {path for _, path, _ in hostile.seen}
    for place in (await in_db(everything_stored)(), caplog.text):
        assert KEY not in place
