"""A changing server, and the loop of a server process that keeps its servers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.base.background import background
from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool
from hitlchat.upstreams import connections
from hitlchat.upstreams.models import UpstreamServer
from tests.upstreams.asking import Counter, StartCounter
from tests.upstreams.gated import exposed, web
from tests.upstreams.hostile_http import hostile_http
from tests.upstreams.shops import SAYS_IT_BACK, Shop, listing, put_on_path, shop_in, somewhere, take_in

# A server process looks at what has changed every other second, or once woken.
LOOK_SECONDS: Final = 0.2


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Running, over HTTP; it offers `echo`."""
    made = shop_in(tmp_path)
    made.program.start()
    yield made
    made.program.kill()


@pytest.fixture
def server(alice: User) -> UpstreamServer:
    """A server “shop” that listed `echo` and `other`, and that nobody ever connects to."""
    made = somewhere(alice)
    take_in(made, listing(echo=SAYS_IT_BACK, other="Say something else instead."))
    return made


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[StartCounter]:
    """Start a server that asks back, in one of the WAYS."""
    started: list[Counter] = []

    def start(how: str = "http-2026") -> Counter:
        started.append(Counter(tmp_path, how).start())
        return started[-1]

    yield start
    for each in started:
        each.kill()


@pytest.fixture
def allow_stdio(settings: Settings, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """With programs named `shop` and `clock` that can be found, and end at once."""
    settings.MCP_ALLOW_STDIO = True
    put_on_path(tmp_path_factory.mktemp("bin"), monkeypatch, "shop", "clock")


@pytest.fixture
async def serving(transactional_db: None) -> AsyncIterator[None]:
    """As in a server: calls are started by themselves, and servers are kept."""
    background.adopt(asyncio.get_running_loop())
    keeper, waking = asyncio.create_task(connections.serve()), asyncio.create_task(keep_waking())
    yield
    waking.cancel()
    keeper.cancel()
    with suppress(asyncio.CancelledError):
        await keeper
    await background.drain(5)
    background.adopt(None)
    await asyncio.wait_for(connections.end(), 30)


@pytest.fixture
async def neighbour(alice: User, serving: None) -> AsyncIterator[Tool]:
    """A tool of another server, in use all the time."""
    async with hostile_http() as there:
        server = await in_db(web)(alice, there, name="neighbour")
        yield (await exposed(alice, server, "fine"))["fine"]


async def keep_waking() -> None:
    """What a connection is in stands in its row soon, and no test waits for the next look."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        connections.on_servers_changed()
