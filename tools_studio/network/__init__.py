"""`fetch` and `webhook` for tools: a request within the tool's policy, its redirects as far as that allows, and the
answer read within its limit.
"""

import asyncio
import json as jsons
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
from httpx2 import InvalidURL

from hitlchat.outbound import guard
from hitlchat.outbound.addresses import Address, is_local, is_public, literal
from hitlchat.sandbox import HostFunction
from hitlchat.sandbox.limits import in_words
from tools_studio.capabilities import Fetch
from tools_studio.network.request import (
    Credential,
    FetchPolicy,
    Resolver,
    ToolRequest,
    body_of,
    credential_of,
    headers_of,
    method_of,
    no_values,
    parse,
    place_of,
    seconds_of,
    shown,
    url_of,
)

REDIRECTS = (301, 302, 303, 307, 308)
WEBHOOK_SECONDS = 10.0
# A webhook's answer is not read: only its status counts.
WEBHOOK_BYTES = 64 * 1024
CONNECT_SECONDS = 5.0
# Headers, and the framing of bodies that come in small pieces.
OVERHEAD_BYTES = 128 * 1024
# The server that answers names the charset, and Python has codecs (punycode) that take hours for a megabyte.
CHARSETS = frozenset(
    {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "latin1", "windows-1252", "cp1252", "utf-16"}
)
# Few: while JSON is read nothing else of the server runs.
_READING_THREADS = ThreadPoolExecutor(2, thread_name_prefix="tool-answer")
# What a list or object of JSON counts for.
CONTAINER = 16
# Below this, how many there are does not matter.
LEAST_BYTES = 64 * 1024
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w-]+)", re.ASCII | re.IGNORECASE)


class TooLarge(Exception):
    """The answer is larger than the limit."""


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


def grants(
    granted: Fetch | None,
    webhook_targets: Collection[str] = (),
    value: Resolver = no_values,
) -> dict[str, HostFunction]:
    """Return `fetch` and `webhook` as far as granted. `value` finds the variables that they name."""
    functions: dict[str, HostFunction] = {}
    if granted is not None:
        functions["fetch"] = partial(fetch, FetchPolicy(**vars(granted), secret=value))
    if webhook_targets:
        functions["webhook"] = partial(webhook, webhook_targets, value)
    return functions


async def fetch(
    policy: FetchPolicy,
    url: str,
    method: str = "GET",
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    auth: str | Mapping[str, str] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109
) -> dict[str, Any]:
    """Ask `url` and return `{"status", "headers", "text", "json"}`.

    Redirects that are not granted are returned as they are. `auth` names a secret that is added here, where the tool
    cannot see it. `timeout` is in seconds: 10 by default, and at most what is granted.

    Raises: PermissionError, it is not granted; ValueError, the request is wrong or the answer cannot be used;
    TimeoutError, no complete answer in time.
    """
    verb, target, sent = method_of(method), url_of(url, params), headers_of(headers)
    body = None if json is None else body_of(json)
    seconds = seconds_of(timeout, policy.timeout_seconds)
    policy.require_method(verb)
    request = ToolRequest(verb, target, sent, body, credential_of(policy, auth))
    request.require_room()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _follow(policy, request)
    except (ValueError, PermissionError, TimeoutError) as error:
        kind = next(kind for kind in (PermissionError, TimeoutError, ValueError) if isinstance(error, kind))
        is_late = kind is TimeoutError and limit.expired()
        text = f"{request.place.host} gave no complete answer within {seconds:g} s" if is_late else str(error)
        # Servers choose the hosts of their redirects, and so may write the credential there.
        raise kind(request.credential.mask.text(text) if request.credential else text) from None


async def _follow(policy: FetchPolicy, request: ToolRequest) -> dict[str, Any]:
    """Send one request after the other, each as if it were the first."""
    first, wire = request.place.host, Wire.within(policy.max_bytes)
    for left in range(policy.redirects, -1, -1):
        host = request.place.host
        async with _sending(policy, request, wire, host) as response:
            is_redirect = policy.redirects and response.status_code in REDIRECTS
            location = next((value for name, value in response.headers.raw if name.lower() == b"location"), None)
            if not is_redirect or location is None:
                try:
                    body = await guard.beginning(response, policy.max_bytes)
                    if len(body) > policy.max_bytes:
                        raise TooLarge
                    return await asyncio.get_running_loop().run_in_executor(
                        _READING_THREADS, _answer, response, body, policy.max_bytes, request.credential
                    )
                except ValueError as error:
                    raise ValueError(f"the answer of {host} {error}") from None
        if left:
            request = _redirected(policy, request, response.status_code, location)
    raise ValueError(f"{first} redirects more often than the {policy.redirects} times that this tool may follow")


def _redirected(policy: FetchPolicy, request: ToolRequest, status: int, location: bytes) -> ToolRequest:
    """Return the request that follows a redirect; whether its place is granted is checked before it is sent.

    Raises: ValueError, it leads nowhere; PermissionError, it would send on what belongs to the first origin.
    """
    here = request.place
    try:
        url = parse(str(request.url.join(location.decode()))).copy_with(fragment=None)
    except (ValueError, InvalidURL):
        raise ValueError(f"{here.host} redirects to an invalid url") from None
    there = place_of(url)
    if here.scheme == "https" and there.scheme == "http" and not policy.covers(there):
        raise PermissionError(f"{here.host} redirects to plain http, which is followed only to hosts listed as {there}")
    becomes_get = (status == 303 and request.method != "HEAD") or (status in (301, 302) and request.method == "POST")
    onward = (request.reading() if becomes_get else request).elsewhere(url)
    if there != here and onward.method not in ("GET", "HEAD"):
        raise PermissionError(
            f"{here.host} redirects a {onward.method} to another origin, {there}: only GET and HEAD are followed there"
        )
    policy.require_method(onward.method)
    return onward


async def webhook(targets: Collection[str], value: Resolver, target: str, data: Any) -> dict[str, int]:
    """POST `data` to the URL in the variable `target`, one of the declared `targets`, and return `{"status"}`.

    No error holds anything of the URL. Raises: PermissionError, the target is not declared, or leads where nobody
    may reach; ValueError, it has no proper URL, or did not take the data; TimeoutError, it did not answer in time.
    """
    try:
        body = body_of(data)
    except ValueError:
        raise ValueError("webhook: data must be a JSON value") from None
    if not isinstance(target, str) or target not in targets:
        named = ", ".join(sorted(targets)) or "none"
        raise PermissionError(f"webhook: {str(target)[:64]!r} is not among the targets of this tool ({named})")
    try:
        found = value(target)
    except (LookupError, ValueError) as error:
        raise ValueError(f"webhook: {error.args[0] if error.args else target}") from None
    try:
        url = parse(found).copy_with(fragment=None)
    except ValueError:
        raise ValueError(f"webhook {target}: its value is not a URL such as https://hooks.example.com/in") from None
    try:
        async with asyncio.timeout(WEBHOOK_SECONDS):
            status = await _deliver(ToolRequest("POST", url, {}, body), f"webhook {target}")
    except PermissionError:
        raise PermissionError(f"webhook {target} leads to an address that tools may not reach") from None
    except TimeoutError:
        raise TimeoutError(f"webhook {target} gave no answer within {WEBHOOK_SECONDS:g} s") from None
    if status >= 300:
        raise ValueError(f"webhook {target} answered with status {status}: the data was not accepted")
    return {"status": status}


async def _deliver(request: ToolRequest, called: str) -> int:
    """Return the status. The author listed the place by setting the variable, also a private one."""
    address = literal(request.place.host)
    if address is not None and not (is_public(address) or is_local(address)):
        raise PermissionError(called)
    policy = FetchPolicy("allowlist", (str(request.place),), methods=("POST",), max_bytes=WEBHOOK_BYTES)
    async with _sending(policy, request, Wire.within(policy.max_bytes), called) as response:
        return response.status_code


@asynccontextmanager
async def _sending(
    policy: FetchPolicy, request: ToolRequest, wire: Wire, called: str
) -> AsyncIterator[httpx2.Response]:
    """Send a request; the body of its response is still to be read. Errors name the place `called`.

    Raises: PermissionError, the place is not granted; ValueError, no answer, or one that cannot be used; TimeoutError,
    nobody accepts the connection.
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
        raise TimeoutError(f"{called} did not accept a connection within {CONNECT_SECONDS:g} s") from None
    except (httpx2.NetworkError, httpx2.ProtocolError) as error:
        raise ValueError(f"{called} could not be reached: {_reason(error)}") from None


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
    text = _unpacked(headers, body, max_bytes).decode(charset if charset in CHARSETS else "utf-8", "replace")
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
        raise ValueError("is not compressed in the way it declares") from None
    if len(whole) > max_bytes:
        raise TooLarge
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("is not compressed in the way it declares")
    del headers["content-encoding"]
    headers.pop("content-length", None)
    return whole


def _json(headers: dict[str, str], text: str, max_bytes: int) -> Any:
    if "json" not in headers.get("content-type", "").lower():
        return None
    # Counted before any is made: as text a list has two bytes, and in memory many.
    if CONTAINER * (text.count("[") + text.count("{")) > max(max_bytes, LEAST_BYTES):
        raise ValueError(
            f"has more than the {max(max_bytes, LEAST_BYTES) // CONTAINER:,} lists and objects that are "
            f"read from JSON of up to {in_words(max_bytes)}"
        )
    try:
        return jsons.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
