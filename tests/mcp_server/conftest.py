"""The whole application behind a real HTTP server, in a thread of the test's process."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
import uvicorn
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.accounts.models import Token, hashed
from hitlchat.asgi import application
from hitlchat.gate import stopping
from hitlchat.gate.models import ToolCall
from hitlchat.gate.sources import ToolResult
from hitlchat.mcp_server import tokens
from hitlchat.upstreams.client.link import Step
from hitlchat.upstreams.models import progressed
from tests.gate import sources_for_tests
from tests.gate.conftest import entered, previews, tool
from tests.mcp_server.inspecting import Inspecting
from tests.outside import outside
from tests.processes import installation, migrated, servers

__all__ = ["entered", "installation", "migrated", "outside", "previews", "servers", "tool"]

TokenOf = Callable[..., str]
# Of the loop, in which idle connections are closed.
TURNS: Final = 20


class StoppingSource:
    """Goes on until it is told to stop, and says so."""

    can_stop = True

    async def execute(self, call: ToolCall) -> ToolResult:
        sources_for_tests.entered.append(call)
        await stopping.wish(call).wait()
        return ToolResult.failure("stopped", "stopped")


class SteppingSource:
    """Tells three times how far it is, as the source of upstream tools does."""

    async def execute(self, call: ToolCall) -> ToolResult:
        for step in (1, 2, 3):
            told = {"call_id": call.pk, "conversation_id": None, "step": Step(step, 3, f"step {step}")}
            progressed.send_robust(sender=type(self), **told)
            await asyncio.sleep(0.2)
        return ToolResult(value="done")


class HalvingSource:
    """Gives half a character, in a text and in a key, or fails with one, as the call wants it."""

    async def execute(self, call: ToolCall) -> ToolResult:
        half = "caf\udce9.txt"
        match call.arguments["text"]:
            case "fails":
                return ToolResult.failure("tool", half)
            case "object":
                return ToolResult({half: [half]})
            case _:
                return ToolResult(half)


class PromptServer(uvicorn.Server):
    """Ends as soon as it may, where uvicorn looks every tenth of a second, and then waits for one more."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_serving = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ending.set)

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.on_tick(0)  # writes the headers of all answers
        self.is_serving.set()
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        for _ in range(TURNS):
            if not (self.server_state.connections or self.server_state.tasks):
                await self.lifespan.shutdown()
                return
            await asyncio.sleep(0)
        await super().shutdown(sockets)


@pytest.fixture(autouse=True)
def more_sources(entered: list[ToolCall], settings: Settings) -> None:
    names = {"stopping": "StoppingSource", "stepping": "SteppingSource", "halving": "HalvingSource"}
    more = {name: f"{__name__}.{class_name}" for name, class_name in names.items()}
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **more}


@pytest.fixture(autouse=True)
def word_counts(settings: Settings) -> None:
    """The word of trusted clients is enough for most tools of these tests."""
    settings.HITL_ELICITATION_MAX_RISK = 4


@pytest.fixture
def url(transactional_db: None, entered: list[ToolCall]) -> Iterator[str]:
    """Where the server is."""
    config = uvicorn.Config(application, port=0, log_config=None, ws="websockets-sansio", timeout_graceful_shutdown=5)
    server = PromptServer(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    assert server.is_serving.wait(40), "uvicorn serves"
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.stop()
    thread.join(40)
    assert not thread.is_alive()


@pytest.fixture
def token(bob: User) -> str:
    """Of bob, with a trusted client and no limits of its own."""
    return attended(tokens.make_mcp(bob))


@pytest.fixture
def token_of() -> TokenOf:
    """A token of a trusted client, with limits: columns of McpToken."""

    def make(user: User, **limits: Any) -> str:
        return attended(tokens.make_mcp(user, **limits))

    return make


def attended(secret: str) -> str:
    Token.objects.filter(digest=hashed(secret)).update(attended=True)
    return secret


@pytest.fixture
def inspecting(url: str, bob: User) -> Iterator[Inspecting]:
    """bob at the Inspector."""
    person = Inspecting(url, "bob")
    yield person
    person.close()
