"""The connection itself: to checked addresses, in the name of the host, and the answer read within its limit."""

import asyncio
import json as jsons
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from httpcore2 import (
    URL,
    AsyncHTTPConnection,
    AsyncNetworkStream,
    ConnectError,
    NetworkError,
    Origin,
    ProtocolError,
    Response,
    TimeoutException,
)

from hitlchat.outbound.network import PinnedNetwork, StreamAround, look_up, tls
from hitlchat.sandbox.limits import in_words
from tools_studio.network.policy import FetchPolicy, Place
from tools_studio.network.request import Asked, Credential, shown

# A look-up cannot be stopped: those for tools must not fill the threads that the server itself needs.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="tool-lookup")


async def resolve(policy: FetchPolicy, place: Place, called: str) -> list[str]:
    """The addresses to connect to, all of them allowed.

    PermissionError: the policy does not allow this. ValueError: `called`, as errors name the place, was not found.
    """
    policy.require(place)
    found = await look_up(place.host, place.port, _THREADS)
    if not found:
        raise ValueError(f"{called} was not found")
    for address in found:
        if not policy.may_reach(place, address):
            raise PermissionError(f"{called} leads to {address}, an address that tools may not reach")
    return [str(address) for address in found]


CONNECT_SECONDS = 5.0
# Headers, and the framing of bodies that come in small pieces.
OVERHEAD_BYTES = 128 * 1024


class TooLarge(Exception):
    """More arrives than may."""


@dataclass
class Wire:
    """The bytes that may still arrive, headers and framing included."""

    left: int

    @classmethod
    def within(cls, max_bytes: int) -> "Wire":
        return cls(2 * max_bytes + OVERHEAD_BYTES)

    def count(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise TooLarge


@asynccontextmanager
async def sent(asked: Asked, addresses: Sequence[str], wire: Wire) -> AsyncIterator[Response]:
    """Send the request over a connection of its own; the response's body is still to be read."""
    place, url = asked.place, asked.sent_url
    scheme, host = place.scheme.encode("ascii"), place.host.encode("ascii")
    connection = AsyncHTTPConnection(
        Origin(scheme, host, place.port),
        ssl_context=tls() if place.scheme == "https" else None,
        network_backend=_Pinned(addresses, wire),
    )
    request = connection.stream(
        asked.method,
        URL(scheme=scheme, host=host, port=place.port, target=url.raw_path),
        headers=asked.sent_headers,
        content=asked.body,
        extensions={"timeout": {"connect": CONNECT_SECONDS}},
    )
    async with connection, request as response:
        yield response


class _Pinned(PinnedNetwork):
    def __init__(self, addresses: Sequence[str], wire: Wire) -> None:
        super().__init__(addresses)
        self._wire = wire

    async def connect_tcp(self, *where: Any, **how: Any) -> AsyncNetworkStream:
        return _Counted(await super().connect_tcp(*where, **how), self._wire)


class _Counted(StreamAround):
    def __init__(self, stream: AsyncNetworkStream, wire: Wire) -> None:
        super().__init__(stream)
        self._wire = wire

    def _like(self, stream: AsyncNetworkStream) -> AsyncNetworkStream:
        return _Counted(stream, self._wire)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = await super().read(max_bytes, timeout)
        self._wire.count(len(data))
        return data


@asynccontextmanager
async def sending(policy: FetchPolicy, asked: Asked, wire: Wire, called: str) -> AsyncIterator[Response]:
    """Resolve, check, send. Errors speak of the place as `called`.

    PermissionError: the policy forbids the place. ValueError: no answer, or one that cannot be used.
    TimeoutError: nobody takes the connection.
    """
    addresses = await resolve(policy, asked.place, called)
    try:
        async with sent(asked, addresses, wire) as response:
            yield response
    except TooLarge:
        limit = in_words(policy.max_bytes)
        raise ValueError(f"the answer of {called} is larger than the limit of {limit}") from None
    except TimeoutException:
        raise TimeoutError(f"{called} took no connection within {CONNECT_SECONDS:g} s") from None
    except (NetworkError, ProtocolError) as error:
        raise ValueError(f"{called} could not be asked: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate is not valid for this name"
        cause = cause.__cause__ or cause.__context__
    return "the connection failed" if isinstance(error, ConnectError) else "the connection broke off"


# The server that answers names the charset, and Python has codecs (punycode) that take hours for a megabyte.
CHARSETS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "iso-8859-1",
    "latin-1": "iso-8859-1",
    "latin1": "iso-8859-1",
    "windows-1252": "windows-1252",
    "cp1252": "windows-1252",
    "utf-16": "utf-16",
}
# Few: while JSON is read nothing else of the server runs.
_READING_THREADS = ThreadPoolExecutor(2, thread_name_prefix="tool-answer")
# What a list or object of JSON counts for.
CONTAINER = 16
# Below this, how many there are does not matter.
LEAST_BYTES = 64 * 1024
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w-]+)", re.ASCII | re.IGNORECASE)


async def answer_of(response: Response, max_bytes: int, credential: Credential | None) -> dict[str, Any]:
    """`{"status", "headers", "text", "json"}`, in which nothing gives the credential away.

    TooLarge: the body has more than `max_bytes`, packed or unpacked. ValueError: it cannot be unpacked, or its JSON
    would need far more memory than that.
    """
    body = await _read(response, max_bytes)
    return await asyncio.get_running_loop().run_in_executor(
        _READING_THREADS, _answer, response, body, max_bytes, credential
    )


def _answer(response: Response, body: bytes, max_bytes: int, credential: Credential | None) -> dict[str, Any]:
    headers = shown(response.headers)
    text = _text(headers, _unpacked(headers, body, max_bytes))
    value = _json(headers, text, max_bytes)
    if credential is not None:
        headers, text, value = credential.mask.value(headers), credential.mask.text(text), _masked(value, credential)
    return {"status": response.status, "headers": headers, "text": text, "json": value}


async def _read(response: Response, max_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_stream():
        body += chunk
        if len(body) > max_bytes:
            raise TooLarge
    return bytes(body)


def _unpacked(headers: dict[str, str], body: bytes, max_bytes: int) -> bytes:
    """Unpack, never beyond the limit: a small answer can unfold into gigabytes."""
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", "") or not body:
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError("is compressed in a way that is not supported")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        whole = unpacker.decompress(body, max_bytes + 1)
    except zlib.error:
        raise ValueError("is not compressed as it says") from None
    if len(whole) > max_bytes:
        raise TooLarge
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("is not compressed as it says")
    del headers["content-encoding"]
    headers.pop("content-length", None)
    return whole


def _text(headers: dict[str, str], body: bytes) -> str:
    found = _CHARSET.search(headers.get("content-type", ""))
    charset = found[1].lower().replace("_", "-") if found else ""
    return body.decode(CHARSETS.get(charset, "utf-8"), "replace")


def _json(headers: dict[str, str], text: str, max_bytes: int) -> Any:
    if "json" not in headers.get("content-type", "").lower():
        return None
    # Counted before any is made: as text a list has two bytes, and in memory many.
    if CONTAINER * (text.count("[") + text.count("{")) > max(max_bytes, LEAST_BYTES):
        raise ValueError(
            f"has more lists and objects than the {max(max_bytes, LEAST_BYTES) // CONTAINER:,} that are read from"
            f" JSON of up to {in_words(max_bytes)}"
        )
    try:
        return jsons.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _masked(value: Any, credential: Credential) -> Any:
    try:
        return credential.mask.value(value)
    except RecursionError:
        return None
