"""A tool's request on its way out through the guard, and the answer read within its limit."""

import asyncio
import json as jsons
import re
import ssl
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from hitlchat.outbound import guard
from hitlchat.outbound.addresses import Address
from hitlchat.sandbox.limits import in_words
from tools_studio.network.policy import FetchPolicy
from tools_studio.network.request import Credential, ToolRequest, shown

CONNECT_SECONDS = 5.0
# Headers, and the framing of bodies that come in small pieces.
OVERHEAD_BYTES = 128 * 1024
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
async def sending(policy: FetchPolicy, request: ToolRequest, wire: Wire, called: str) -> AsyncIterator[httpx2.Response]:
    """Send a request; the body of its response is still to be read. Errors speak of the place as `called`.

    PermissionError: the policy forbids the place. ValueError: no answer, or one that cannot be used.
    TimeoutError: nobody takes the connection.
    """
    place = request.place
    policy.require(place)

    def refused(_host: str, address: Address | None) -> str:
        return "" if address is None or policy.may_reach(place, address) else str(address)

    try:
        transport = guard.Transport(refused, purpose="tool", on_read=wire.count)
        sent = httpx2.Request(
            request.method,
            request.sent_url,
            headers=request.sent_headers,
            content=request.body,
            extensions={"timeout": {"connect": CONNECT_SECONDS}},
        )
        async with guard.answered(sent, transport) as response:
            yield response
    except TooLarge:
        limit = in_words(policy.max_bytes)
        raise ValueError(f"the answer of {called} is larger than the limit of {limit}") from None
    except guard.Forbidden as address:
        raise PermissionError(f"{called} leads to {address}, an address that tools may not reach") from None
    except guard.NotReachable:
        raise ValueError(f"{called} was not found") from None
    except httpx2.TimeoutException:
        raise TimeoutError(f"{called} took no connection within {CONNECT_SECONDS:g} s") from None
    except (httpx2.NetworkError, httpx2.ProtocolError) as error:
        raise ValueError(f"{called} could not be asked: {_reason(error)}") from None


async def answer_of(response: httpx2.Response, max_bytes: int, credential: Credential | None) -> dict[str, Any]:
    """`{"status", "headers", "text", "json"}`, in which nothing gives the credential away.

    TooLarge: the body has more than `max_bytes`, packed or unpacked. ValueError: it cannot be unpacked, or its JSON
    would need far more memory than that.
    """
    body = await guard.beginning(response, max_bytes)
    if len(body) > max_bytes:
        raise TooLarge
    return await asyncio.get_running_loop().run_in_executor(
        _READING_THREADS, _answer, response, body, max_bytes, credential
    )


def _reason(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate is not valid for this name"
        cause = cause.__cause__ or cause.__context__
    return "the connection failed" if isinstance(error, httpx2.ConnectError) else "the connection broke off"


def _answer(response: httpx2.Response, body: bytes, max_bytes: int, credential: Credential | None) -> dict[str, Any]:
    headers = shown(response.headers.raw)
    named = _CHARSET.search(headers.get("content-type", ""))
    charset = named[1].lower().replace("_", "-") if named else ""
    text = _unpacked(headers, body, max_bytes).decode(CHARSETS.get(charset, "utf-8"), "replace")
    value = _json(headers, text, max_bytes)
    if credential is not None:
        headers, text = credential.mask.value(headers), credential.mask.text(text)
        try:
            value = credential.mask.value(value)
        except RecursionError:
            value = None
    return {"status": response.status_code, "headers": headers, "text": text, "json": value}


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
