"""Which machines a server's name leads to, and whether they may be asked."""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

from httpcore2 import SOCKET_OPTION, AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from hitlchat.upstreams.wire.exchange import CURRENT
from hitlchat.upstreams.wire.surroundings import Address, AddressRules

MOST_ATTEMPTS = 4
# A look-up cannot be stopped: those for upstream servers must not fill the threads that everything else needs.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="upstream-lookup")


class NotReachable(Exception):
    """The name leads nowhere, or to where nobody may ask; in words for the administrator."""


async def addresses(
    host: str, port: int, rules: AddressRules, *, allow_private: bool, threads: ThreadPoolExecutor = _THREADS
) -> list[str]:
    """Where to connect to, every one of them allowed. NotReachable."""
    if rules.is_metadata_name(host.lower().rstrip(".")):
        raise NotReachable(f"{host} is where a cloud keeps its keys: nobody may ask there")
    loop = asyncio.get_running_loop()
    try:
        found = await loop.run_in_executor(threads, _look_up, host, port)
    except (OSError, ValueError):
        found = []
    if not found:
        raise NotReachable(f"{host} was not found")
    for address in found:
        if not rules.is_public(address) and not (allow_private and rules.is_local(address)):
            hint = "" if allow_private or not rules.is_local(address) else ", and private addresses are not allowed"
            led = host if host.strip("[]") == str(address) else f"{host} leads to {address}"
            raise NotReachable(f"{led}, where nobody may ask{hint}")
    return [str(address) for address in found]


def _look_up(host: str, port: int) -> list[Address]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in infos))


class CheckedNetwork(AsyncNetworkBackend):
    """Connects only to addresses that were checked right before, so that no name changes its meaning in between.

    `threads`: in which names are looked up.
    """

    def __init__(self, rules: AddressRules, *, allow_private: bool, threads: ThreadPoolExecutor = _THREADS) -> None:
        self._rules, self._allow_private, self._network = rules, allow_private, AnyIOBackend()
        self._threads = threads

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> AsyncNetworkStream:
        found = await addresses(host, port, self._rules, allow_private=self._allow_private, threads=self._threads)
        *others, last = found[:MOST_ATTEMPTS]
        for address in others:
            try:
                return _Noticed(await self._network.connect_tcp(address, port, timeout))
            except (ConnectError, ConnectTimeout):
                continue
        return _Noticed(await self._network.connect_tcp(last, port, timeout))


class _Noticed(AsyncNetworkStream):
    """Tells the request at hand when its first byte leaves."""

    def __init__(self, stream: AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if exchange := CURRENT.get():
            exchange.sent = True
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> AsyncNetworkStream:
        try:
            return _Noticed(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            # Also when cancelled: nobody else knows of the connection yet.
            await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
