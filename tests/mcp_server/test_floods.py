"""Too much at /mcp: bodies without end, clients that never read, sessions by the hundred. The server's memory stays
bounded, and everyone else is served meanwhile.
"""

import asyncio
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from hitlchat.mcp_server.server import MOST_SESSIONS
from tests.mcp_server.clients import connected
from tests.mcp_server.floods import MIB, connection, is_closed, memory, peak, pour, program, request
from tests.mcp_server.older import ACCEPT
from tests.mcp_server.test_session_limits import opened
from tests.ports import free_port
from tests.processes import ROOT, STEADY, Installation, Server, Servers, _drop_database, copy_of
from tests.waiting import until

pytestmark = [
    pytest.mark.slow("floods a server, and bets on its memory"),
    pytest.mark.embedded,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

# The same in one process and in the next: what it grows by has nothing to do with what is sent.
MOST_MIB = 100
STALL = 3


@pytest.fixture(scope="module")
def prepared(migrated: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    home = copy_of(migrated, tmp_path_factory.mktemp("floods") / "data")
    yield home
    _drop_database(home.database)


@pytest.fixture
def installation(prepared: Installation, tmp_path: Path) -> Iterator[Installation]:
    home = copy_of(prepared, tmp_path / "data")
    yield home
    _drop_database(home.database)


def token_of(home: Installation, user: str) -> str:
    return home.manage("create_token", user, "--kind", "mcp").strip()


async def served(server: Server, token: str) -> None:
    """Someone else is: over /mcp and on pages."""
    async with asyncio.timeout(30), connected(server.url, token) as client:
        assert (await client.list_tools()).tools
    async with httpx2.AsyncClient(trust_env=False, verify=False) as web:
        assert (await web.get(f"{server.url}/healthz", timeout=30)).status_code == 200


def report(what: str, before: float, after: float) -> None:
    sys.stderr.write(f"{what}: {before:.0f} MiB before, {after:.0f} MiB after\n")


async def test_bodies_of_300_mb_are_refused_early_and_others_are_served_meanwhile(servers: Servers) -> None:
    bobs, charlies = token_of(servers.home, "bob"), token_of(servers.home, "charlie")
    server = servers.start(**STEADY)
    await served(server, charlies)
    before = memory(server)
    kinds = [(token, declared) for token in (bobs, "") for declared in (True, False)]
    with ThreadPoolExecutor(8) as pool:
        pouring = [pool.submit(pour, server, token, 300 * MIB, declared=declared) for token, declared in kinds * 2]
        await served(server, charlies)
        done = [await asyncio.wrap_future(each) for each in pouring]
    for (_, declared), (sent, answer) in zip(kinds * 2, done, strict=True):
        # What is on its way when the server hangs up counts as sent.
        assert sent < (16 if declared else 48) * MIB
        assert answer[:12] in (b"HTTP/1.1 413", b"")
    assert any(answer for _, answer in done)
    await served(server, charlies)
    report("8 bodies of 300 MiB", before, memory(server))
    assert memory(server) - before < MOST_MIB


async def test_a_client_that_sends_and_never_reads_is_given_up_and_nothing_is_kept_for_it(servers: Servers) -> None:
    bobs, charlies = token_of(servers.home, "bob"), token_of(servers.home, "charlie")
    server = servers.start(**STEADY, STALL_SECONDS=str(STALL))
    await served(server, charlies)
    before = memory(server)
    asking = request(server, bobs, "tools/list")
    with ExitStack() as stack:
        clients = [stack.enter_context(connection(server, takes=4096)) for _ in range(20)]
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(lambda each: stuffed(each, asking, 8 * MIB), clients))
            await served(server, charlies)
        report("20 clients that never read", before, memory(server))
        assert memory(server) - before < MOST_MIB
        for each in clients:
            await asyncio.to_thread(until, lambda each=each: is_closed(each), "the connection is given up", seconds=60)
    await served(server, charlies)
    assert "Traceback" not in server.log


def stuffed(opened: socket.socket, asking: bytes, size: int) -> None:
    """Requests, one behind the other, until the server takes no more."""
    opened.settimeout(2)
    try:
        for _ in range(size // len(asking)):
            opened.sendall(asking)
    except OSError:
        pass


TOKENS = """
from django.contrib.auth.models import User
from hitlchat.mcp_server import tokens
for number in range(9):
    user = User.objects.create_user(f"person {number}")
    for _ in range(3):
        print(tokens.make_mcp(user))
"""


async def test_540_idle_sessions_of_nine_people_leave_bounded_memory_and_everyone_else_served(servers: Servers) -> None:
    charlies = token_of(servers.home, "charlie")
    theirs = servers.home.manage("shell", "-v", "0", "-c", TOKENS).split()
    server = servers.start(**STEADY)
    async with connected(server.url, charlies, "2025") as charlie:
        await served(server, charlies)
        before = memory(server)
        # One of them has all that it may; the others come at once.
        begun = [await sessions_of(server, theirs[0])]
        begun += await asyncio.gather(*(sessions_of(server, token) for token in theirs[1:]))
        answers = [answer for of_token in begun for answer in of_token]
        assert sorted({answer.status_code for answer in answers}) == [200, 503]
        refused = [answer for answer in answers if answer.status_code == 503]
        assert len(answers) - len(refused) <= MOST_SESSIONS
        assert "Too many open sessions" in refused[0].text
        report("540 sessions", before, memory(server))
        assert memory(server) - before < MOST_MIB
        # What there was goes on, newer clients need no session, and whoever has one can give it up for another.
        assert (await charlie.list_tools()).tools
        await served(server, charlies)
        (again,) = await sessions_of(server, theirs[0], count=1)
        assert again.status_code == 200


async def sessions_of(server: Server, token: str, count: int = 20) -> list[httpx2.Response]:
    headers = {"Authorization": f"Bearer {token}", "Accept": ACCEPT}
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, timeout=120, trust_env=False, verify=False
    ) as web:
        return [await opened(web) for _ in range(count)]


ENDLESS = """
import sys
import django
django.setup()
from hitlchat.management.commands.serve import GracefulServer

async def application(scope, receive, send):
    event = await receive()
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for count in range(200):
        print(count, flush=True)
        await send({"type": "http.response.body", "body": b"x" * 2**20, "more_body": True})
        if count == int(scope["query_string"] or 1000):
            break
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    print((await receive())["type"], flush=True)

GracefulServer(application=application, endpoints=[f"tcp:{sys.argv[1]}:interface=127.0.0.1"]).run()
"""


@pytest.fixture
def endless(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in installation.variables(STALL_SECONDS=str(STALL)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "hitlchat.settings")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.parametrize("reads", [True, False], ids=["reads", "never reads"])
def test_a_stream_is_sent_as_fast_as_its_client_reads_and_not_for_ever(reads: bool, endless: None) -> None:
    port = free_port()
    with program("-c", ENDLESS, str(port)) as server, ExitStack() as stack:
        reading = until(lambda: reached(port), "it serves")
        assert reading is not None
        stack.enter_context(reading)
        reading.settimeout(60)
        reading.sendall(f"GET /?{40 if reads else ''} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert server.stdout is not None
        if reads:
            taken = 0
            while taken < 40 * MIB:
                taken += len(reading.recv(MIB))
            return
        assert server.stdout.readline() == "0\n"
        begun = peak(server.pid)
        # It ends, since the connection is given up; from then on what is sent goes nowhere.
        assert "http.disconnect\n" in server.stdout
        report("a stream of 200 MiB that is never read", begun, peak(server.pid))
        assert peak(server.pid) - begun < 50
        assert is_closed(reading)


def reached(port: int) -> socket.socket | None:
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    if opened.connect_ex(("127.0.0.1", port)) == 0:
        return opened
    opened.close()
    return None
