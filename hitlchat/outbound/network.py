"""The network of connections that leave this machine: names are looked up, checked, and connected to as checked."""

import asyncio
import functools
import socket
import ssl
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any

import httpcore2
import httpx2
from httpcore2 import SOCKET_OPTION, AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from hitlchat.outbound import addresses
from hitlchat.outbound.addresses import Address

MOST_CONNECTIONS = 64
CONNECT_SECONDS = 10.0
MOST_ATTEMPTS = 4
# A look-up cannot be stopped: they must not fill the threads that everything else needs.
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="outbound-lookup")


@functools.cache
def tls() -> ssl.SSLContext:
    """Return the trusted authorities: the usual ones, or the operator's own in SSL_CERT_FILE.

    All connections share them, since reading them costs 20 ms of processor time.
    """
    return httpx2.create_ssl_context()


class NotReachable(Exception):
    """The name leads nowhere, or to where nobody may ask; in words for the administrator."""


async def allowed(
    host: str, port: int, *, allow_private: bool, loopback: bool = True, threads: ThreadPoolExecutor = _THREADS
) -> list[str]:
    """Addresses to connect to, every one of them allowed. `loopback`: whether private ones may be this machine's own.

    Raises: NotReachable
    """
    if addresses.is_metadata_name(host.lower().rstrip(".")):
        raise NotReachable(f"{host} is where a cloud keeps its keys: nobody may ask there")
    found = await look_up(host, port, threads)
    if not found:
        raise NotReachable(f"{host} was not found")
    for address in found:
        local = addresses.is_local(address) and (loopback or not address.is_loopback)
        if not addresses.is_public(address) and not (allow_private and local):
            hint = "" if allow_private or not local else ", and private addresses are not allowed"
            led = host if host.strip("[]") == str(address) else f"{host} leads to {address}"
            raise NotReachable(f"{led}, where nobody may ask{hint}")
    return [str(address) for address in found]


async def look_up(host: str, port: int, threads: ThreadPoolExecutor) -> list[Address]:
    """Return the addresses behind a host, none if it is not found."""
    if address := addresses.literal(host):
        return [address]
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, _ask_resolver, host, port)
    except (OSError, ValueError):
        return []


def _ask_resolver(host: str, port: int) -> list[Address]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in infos))


class StreamAround(AsyncNetworkStream):
    """A stream that passes everything on; TLS over it is a stream of the same kind."""

    def __init__(self, stream: AsyncNetworkStream) -> None:
        self._stream = stream

    def _like(self, stream: AsyncNetworkStream) -> AsyncNetworkStream:
        return type(self)(stream)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
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
            return self._like(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:
            # Also when cancelled: nobody else knows of the connection yet.
            await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class PinnedNetwork(AsyncNetworkBackend):
    """Connects to the given addresses, one after the other, whatever name it is told: nobody resolves again."""

    def __init__(self, found: Sequence[str] = ()) -> None:
        self._network, self._found = AnyIOBackend(), found

    async def found(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002
        return self._found

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> AsyncNetworkStream:
        *others, last = (await self.found(host, port))[:MOST_ATTEMPTS]
        for address in others:
            try:
                return await self._network.connect_tcp(address, port, timeout)
            except (ConnectError, ConnectTimeout):
                continue
        return await self._network.connect_tcp(last, port, timeout)


class CheckedNetwork(PinnedNetwork):
    """Connects only to addresses that were checked right before, so that no name changes its meaning in between.

    `loopback`: whether private addresses may be this machine's own. `threads`: in which names are looked up.
    """

    def __init__(self, *, allow_private: bool, loopback: bool = True, threads: ThreadPoolExecutor = _THREADS) -> None:
        super().__init__()
        self._allowed = functools.partial(allowed, allow_private=allow_private, loopback=loopback, threads=threads)

    async def found(self, host: str, port: int) -> Sequence[str]:
        return await self._allowed(host, port)


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """Plain HTTP over a checked network, for clients that bound what they read themselves. No proxy is asked."""

    def __init__(self, *, allow_private: bool) -> None:
        super().__init__(verify=tls(), trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls(),
            max_connections=MOST_CONNECTIONS,
            network_backend=CheckedNetwork(allow_private=allow_private),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except NotReachable as error:
            raise httpx2.ConnectError(str(error), request=request) from error


def as_sent(request: httpx2.Request) -> httpcore2.Request:
    url = request.url
    return httpcore2.Request(
        method=request.method,
        url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


def in_words(error: Exception) -> str:
    """Return what went wrong beneath HTTP."""
    match error:
        case httpcore2.ConnectTimeout():
            return f"could not connect within {CONNECT_SECONDS:g} seconds"
        case httpcore2.ConnectError():
            return f"could not connect: {error}"
        case httpcore2.PoolTimeout():
            return f"all {MOST_CONNECTIONS} connections to the server are busy"
        case httpcore2.TimeoutException():
            return "the server was silent for too long"
        case httpcore2.ProtocolError():
            return f"the server broke off or does not speak HTTP: {error}"
        case _:
            return "the connection broke"
