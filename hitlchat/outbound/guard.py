"""The guard of outgoing HTTP: hosts are looked up once, their addresses checked, and connected to as checked.

A tool's requests, notices, upstream servers, their authorization servers and stored model servers all leave by
`Transport`. It asks no proxy and follows no redirect.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from functools import cache, partial
from ipaddress import ip_address
from typing import Any, Literal

import httpcore2
import httpx2
from httpcore2 import SOCKET_OPTION, AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream

from hitlchat.outbound import addresses
from hitlchat.outbound.addresses import Address

MOST_CONNECTIONS = 64
# Shorter than the 5 s of common servers: if a server closes a connection during a request, nobody knows whether it was
# processed.
IDLE_SECONDS = 4.0
CONNECT_SECONDS = 10.0
MOST_ATTEMPTS = 4

# Says why a host must not be asked, empty if it may: with None before its look-up, then with each address found.
Refusal = Callable[[str, Address | None], str]
Purpose = Literal["server", "notice", "tool"]
# Look-ups cannot be cancelled: those for one purpose must not use up the threads of another, or of the program.
_LOOKUPS: dict[Purpose, ThreadPoolExecutor] = {
    "server": ThreadPoolExecutor(4, thread_name_prefix="server-lookup"),
    "notice": ThreadPoolExecutor(8, thread_name_prefix="notice-lookup"),
    "tool": ThreadPoolExecutor(8, thread_name_prefix="tool-lookup"),
}


class NotReachable(httpx2.ConnectError):
    """The name cannot be resolved, or must not be reached; the message is for administrators."""


class Forbidden(NotReachable):
    """The host must not be reached."""


def refusal(host: str, address: Address | None, *, allow_private: bool, loopback: bool = True) -> str:
    """Refuse all but public addresses, and private ones (this machine's own: `loopback`) if those are allowed."""
    if addresses.is_metadata_name(host.lower().rstrip(".")):
        return f"{host} serves a cloud's credentials and must not be reached"
    if address is None or addresses.is_public(address):
        return ""
    local = addresses.is_local(address) and (loopback or not address.is_loopback)
    if local and allow_private:
        return ""
    hint = ", and private addresses are not allowed" if local else ""
    place = host if host.strip("[]") == str(address) else f"{host} leads to {address}, which"
    return f"{place} must not be reached{hint}"


class Transport(httpx2.AsyncHTTPTransport):
    """HTTP to hosts that `refused` lets pass; callers bound the bodies. `on_read` is called with the size of all that
    arrives, below HTTP and within TLS, and `on_write` before anything leaves.
    """

    def __init__(
        self,
        refused: Refusal,
        *,
        purpose: Purpose = "server",
        connections: int = 1,
        on_read: Callable[[int], None] = lambda _: None,
        on_write: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(verify=tls(), trust_env=False)
        # httpx2 has no parameter for a network. If its pool is ever renamed, this line fails and nothing is sent.
        del self._pool
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls(),
            max_connections=connections,
            max_keepalive_connections=8,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Network(refused, _LOOKUPS[purpose], partial(_Stream, on_read=on_read, on_write=on_write)),
        )


@asynccontextmanager
async def answered(request: httpx2.Request, transport: Transport) -> AsyncIterator[httpx2.Response]:
    """Send the one request of a transport; the body is still to be read. Raises: NotReachable; httpx2.TransportError"""
    async with transport:
        response = await transport.handle_async_request(request)
        try:
            yield response
        finally:
            await response.aclose()


async def beginning(response: httpx2.Response, most: int) -> bytes:
    """Return the raw body; of one with more than `most` bytes, its beginning, which is longer than `most`."""
    body = bytearray()
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > most:
                break
    return bytes(body)


def is_packed(response: httpx2.Response) -> bool:
    return response.headers.get("content-encoding", "").strip().lower() not in ("", "identity")


def in_words(error: httpx2.TransportError) -> str:
    match error:
        case NotReachable() | httpx2.UnsupportedProtocol():
            return str(error)
        case httpx2.ConnectTimeout():
            return f"could not connect within {CONNECT_SECONDS:g} seconds"
        case httpx2.ConnectError():
            return f"could not connect: check the address, and that a server answers there ({error})"
        case httpx2.PoolTimeout():
            return f"all {MOST_CONNECTIONS} connections to the server are busy"
        case httpx2.TimeoutException():
            return "the server was silent for too long"
        case httpx2.ProtocolError():
            return f"the server broke off or does not speak HTTP: {error}"
        case _:
            return "the connection broke"


@cache
def tls() -> ssl.SSLContext:
    """Return the trusted authorities, or the operator's in SSL_CERT_FILE; shared, since reading them takes 20 ms."""
    return httpx2.create_ssl_context()


class _Network(AsyncNetworkBackend):
    """Connects to the very addresses that were checked, so that no name can be resolved differently in between."""

    def __init__(self, refused: Refusal, threads: ThreadPoolExecutor, stream: "Callable[[Any], _Stream]") -> None:
        self._network, self._refused, self._threads, self._stream = AnyIOBackend(), refused, threads, stream

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> AsyncNetworkStream:
        *others, last = (await self._checked(host, port))[:MOST_ATTEMPTS]
        for address in others:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return self._stream(await self._network.connect_tcp(address, port, timeout))
        return self._stream(await self._network.connect_tcp(last, port, timeout))

    async def _checked(self, host: str, port: int) -> list[str]:
        """Return the addresses behind a host, every one of them allowed. Raises: NotReachable"""
        if why := self._refused(host, None):
            raise Forbidden(why)
        found = await self._look_up(host, port)
        if not found:
            raise NotReachable(f"{host} was not found")
        for address in found:
            if why := self._refused(host, address):
                raise Forbidden(why)
        return [str(address) for address in found]

    async def _look_up(self, host: str, port: int) -> list[Address]:
        if address := addresses.literal(host):
            return [address]
        try:
            infos = await asyncio.get_running_loop().run_in_executor(
                self._threads, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
            )
            return list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in infos))
        except (OSError, ValueError):
            return []


class _Stream(AsyncNetworkStream):
    """A stream that reports reads and writes; TLS over it is a stream of the same kind."""

    def __init__(
        self, stream: AsyncNetworkStream, on_read: Callable[[int], None], on_write: Callable[[], None]
    ) -> None:
        self._stream, self._on_read, self._on_write = stream, on_read, on_write

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = await self._stream.read(max_bytes, timeout)
        self._on_read(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self._on_write()
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
            secure = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            # Also when cancelled: nobody else knows of the connection yet.
            await self._stream.aclose()
            raise
        return _Stream(secure, self._on_read, self._on_write)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
