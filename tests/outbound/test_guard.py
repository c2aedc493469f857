"""The one guard of outgoing HTTP: names that lead inside or change their meaning, certificates, proxies, long bodies.

What is refused by its address is in the table of test_addresses.py; which client passes through here, in its own tests.
"""

import asyncio
import gc
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hitlchat.outbound import guard
from tests.outbound.certificates import trusted
from tests.outbound.resolving import Answers
from tests.outbound.test_addresses import LOCAL, NOBODYS, PUBLIC
from tests.tables import each_row

ANYWHERE = partial(guard.refusal, allow_private=True)
PUBLIC_ONLY = partial(guard.refusal, allow_private=False)
BODY = b"x" * 1000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + BODY


@asynccontextmanager
async def listening(**settings: Any) -> AsyncIterator[int]:
    """The port of a server on this machine with one answer for everything."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, **settings) as server:
        yield server.sockets[0].getsockname()[1]


async def asked(url: str, refused: guard.Refusal = ANYWHERE, **how: Any) -> int:
    async with guard.answered(httpx2.Request("GET", url), guard.Transport(refused, **how)) as response:
        return response.status_code


def test_where_nobody_may_ask_no_permission_helps() -> None:
    for address in NOBODYS:
        assert "must not be reached" in ANYWHERE("host", ip_address(address)), address


def test_a_private_address_is_asked_only_where_that_is_allowed() -> None:
    remote = partial(guard.refusal, allow_private=True, loopback=False)
    for address in map(ip_address, LOCAL):
        assert ANYWHERE("host", address) == "", address
        assert PUBLIC_ONLY("host", address).endswith("must not be reached, and private addresses are not allowed"), (
            address
        )
        assert (remote("host", address) == "") is not address.is_loopback, address


def test_a_public_address_may_be_asked() -> None:
    for address in map(ip_address, PUBLIC):
        assert PUBLIC_ONLY("host", address) == "", address


@each_row("host", ["2130706433", "0x7f000001", "017700000001", "127.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"])
async def test_another_way_to_write_this_machine_leads_there_too(host: str) -> None:
    async with listening() as port:
        with pytest.raises(guard.Forbidden, match="must not be reached"):
            await asked(f"http://{host}:{port}/", PUBLIC_ONLY)


async def test_one_address_inside_among_public_ones_is_enough_to_refuse(answers: Answers) -> None:
    answers("api.example.com", "93.184.216.34", "10.0.0.1")
    with pytest.raises(guard.Forbidden, match=r"api\.example\.com leads to 10\.0\.0\.1, which must not be reached"):
        await asked("https://api.example.com/", PUBLIC_ONLY)


async def test_a_name_is_looked_up_once_for_each_connection_which_goes_where_that_leads(answers: Answers) -> None:
    looked_up = answers("shop.example", ("127.0.0.1",), ("169.254.169.254",))
    async with listening() as port:
        assert await asked(f"http://shop.example:{port}/") == 200
        assert looked_up == ["shop.example"]
        with pytest.raises(guard.Forbidden, match=r"leads to 169\.254\.169\.254"):
            await asked(f"http://shop.example:{port}/")


async def test_a_dead_address_is_passed_over_for_the_next(answers: Answers) -> None:
    answers("shop.example", "127.0.0.2", "127.0.0.1")
    async with listening() as port:
        assert await asked(f"http://shop.example:{port}/") == 200


@each_row("name", ["metadata", "METADATA.goog", "metadata.google.internal."])
async def test_where_clouds_keep_their_keys_nobody_looks_up(answers: Answers, name: str) -> None:
    looked_up = answers(name, "93.184.216.34")
    with pytest.raises(guard.Forbidden, match="serves a cloud's credentials"):
        await asked(f"http://{name}/")
    assert looked_up == []


async def test_a_name_that_leads_nowhere_is_no_refusal(answers: Answers) -> None:
    answers("elsewhere.example", "127.0.0.1")
    with pytest.raises(guard.NotReachable, match=r"nothing\.invalid was not found") as raised:
        await asked("http://nothing.invalid/")
    assert not isinstance(raised.value, guard.Forbidden)


async def test_the_certificate_is_checked_against_the_name_though_the_connection_goes_to_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trusted("localhost", tmp_path, monkeypatch) as context:
        async with listening(ssl=context) as port:
            assert await asked(f"https://localhost:{port}/") == 200
            with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
                await asked(f"https://127.0.0.1:{port}/")


async def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with listening() as port:
        assert await asked(f"http://127.0.0.1:{port}/") == 200


async def test_all_that_arrives_is_counted_and_nothing_leaves_unnoticed() -> None:
    arrived: list[int] = []
    left: list[int] = []
    async with listening() as port:
        await asked(f"http://127.0.0.1:{port}/", on_read=arrived.append, on_write=lambda: left.append(1))
    assert sum(arrived) == len(ANSWER)
    assert left


async def test_of_a_body_no_more_is_read_than_wanted() -> None:
    async with listening() as port:
        request = httpx2.Request("GET", f"http://127.0.0.1:{port}/")
        async with guard.answered(request, guard.Transport(ANYWHERE)) as response:
            assert await guard.beginning(response, len(BODY)) == BODY

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield BODY

    assert await guard.beginning(httpx2.Response(200, content=endless()), 1) == BODY


@each_row("encoding, packed", [(None, False), ("", False), ("Identity", False), ("gzip", True), ("identity, br", True)])
def test_a_body_is_packed_if_its_header_says_so(encoding: str | None, packed: bool) -> None:
    headers = {} if encoding is None else {"content-encoding": encoding}
    assert guard.is_packed(httpx2.Response(200, headers=headers)) is packed


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tools ask for names whose look-up does not end before the test does."""
    over, real = threading.Event(), socket.getaddrinfo

    def look_up(host: str, *args: Any, **settings: Any) -> Any:
        if host == "slow.example":
            over.wait(20)
        return real("127.0.0.1", *args, **settings)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield
    over.set()


async def test_slow_look_ups_of_tools_take_no_threads_from_anything_else(waits: None) -> None:
    async with asyncio.timeout(30), listening() as port:
        tools = [asyncio.create_task(asked("http://slow.example/", purpose="tool")) for _ in range(40)]
        assert await asked(f"http://shop.example:{port}/", purpose="server") == 200
        assert await asked(f"http://shop.example:{port}/", purpose="notice") == 200
        assert await asyncio.to_thread(int, "1") == 1
        assert not any(task.done() for task in tools)
        for task in tools:
            task.cancel()
        await asyncio.wait(tools)


async def test_a_connection_that_is_given_up_within_its_tls_handshake_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        request = asyncio.create_task(asked(f"https://127.0.0.1:{silent.getsockname()[1]}/"))
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            assert await asyncio.to_thread(connection.recv, 1)
            request.cancel()
            await asyncio.wait({request})
    gc.collect()  # a connection left open would warn here, and warnings are errors
