"""Requests to authorization servers, which a server that nobody trusts may have named: to checked addresses, no
further than the first answer, and bounded.
"""

import asyncio
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urlsplit

import httpcore2
import httpx2

from hitlchat.outbound import addresses
from hitlchat.upstreams import reaching
from hitlchat.upstreams.judge.server_rubric import reach
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.wire.http import CONNECT_SECONDS, as_sent, in_words, tls
from hitlchat.upstreams.wire.reach import CheckedNetwork, NotReachable

SECONDS = 15.0
MOST_BYTES = 256 * 1024
LONGEST_URL = 2000


class NotPossible(Exception):
    """Signing in there is not possible; why, in a sentence for the administrator."""


class NoAnswer(NotPossible):
    """It may be possible at another time."""


@dataclass(frozen=True)
class Bounds:
    """Where requests on behalf of one server may go. A server on this machine may name others on it; one of a private
    network, others of private networks, but nothing that listens on this machine alone."""

    allow_private: bool
    here: bool

    def is_public(self, address: IPv4Address | IPv6Address) -> bool:
        return addresses.is_public(address)

    def is_local(self, address: IPv4Address | IPv6Address) -> bool:
        return addresses.is_local(address) and (self.here or not address.is_loopback)

    def is_metadata_name(self, host: str) -> bool:
        return addresses.is_metadata_name(host)

    def checked(self, url: str, what: str) -> str:
        """The address `what` names, unless nobody may go there. NotPossible."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise NotPossible(f"{what} is no usable address.") from None
        if len(url) > LONGEST_URL or not parts.hostname or port == 0 or not url.isascii() or not url.isprintable():
            raise NotPossible(f"{what} is no usable address.")
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise NotPossible(f"{what} contains a user name, a password or a fragment, which it must not.")
        where = reach(parts.hostname)
        if parts.scheme != "https" and not (parts.scheme == "http" and where == "local" and self.here):
            raise NotPossible(f"{what} does not begin with https://: what is secret would travel openly.")
        if (where == "local" and not self.here) or (where == "private" and not self.allow_private):
            raise NotPossible(f"{what} leads to {parts.hostname}, where nobody may ask on this server's behalf.")
        return url


def bounds_of(server: UpstreamServer) -> Bounds:
    """NotPossible: over this connection nobody could be signed in."""
    private = reaching.may_be_private(server)
    bounds = Bounds(private, private and reach(urlsplit(server.url).hostname or "") == "local")
    bounds.checked(server.url.partition("?")[0], "The server's own address")
    return bounds


async def fetched(request: httpx2.Request, bounds: Bounds, what: str, *, body: bool = True) -> httpx2.Response:
    """The answer as it comes first: redirects are not followed. NotPossible, NoAnswer."""
    bounds.checked(str(request.url), what)
    request.headers["Accept-Encoding"] = "identity"
    request.headers["User-Agent"] = "hitlchat"
    try:
        async with asyncio.timeout(SECONDS), _pool(bounds) as pool:
            return await _answered(pool, request, what, body=body)
    except TimeoutError:
        raise NoAnswer(f"{what}: there was no answer within {SECONDS:g} seconds.") from None
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise NoAnswer(f"{what}: {in_words(error)}.") from error
    except NotReachable as error:
        raise NoAnswer(f"{what}: {error}.") from error


def _pool(bounds: Bounds) -> httpcore2.AsyncConnectionPool:
    network = CheckedNetwork(bounds, allow_private=bounds.allow_private)
    return httpcore2.AsyncConnectionPool(ssl_context=tls(), max_connections=1, network_backend=network)


async def _answered(
    pool: httpcore2.AsyncConnectionPool, request: httpx2.Request, what: str, *, body: bool
) -> httpx2.Response:
    sent = as_sent(request)
    sent.extensions = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), CONNECT_SECONDS)}
    answer = await pool.handle_async_request(sent)
    try:
        content = await _read(answer, what) if body else b""
    finally:
        await answer.aclose()
    headers: Any = [(name, value) for name, value in answer.headers if name.lower() != b"content-encoding"]
    return httpx2.Response(answer.status, headers=headers, content=content, request=request)


async def _read(answer: httpcore2.Response, what: str) -> bytes:
    for name, value in answer.headers:
        if name.lower() == b"content-encoding" and value.lower() != b"identity":
            raise NotPossible(f"{what}: the answer came in a compressed form that nobody asked for.")
    content = b""
    async for chunk in answer.aiter_stream():
        content += chunk
        if len(content) > MOST_BYTES:
            raise NotPossible(f"{what}: the answer has more than {MOST_BYTES:,} bytes.")
    return content
