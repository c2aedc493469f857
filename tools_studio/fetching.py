"""`fetch` for tools: one request to a host that the tool's author named."""

import asyncio
import functools
import json as jsons
import re
import ssl
import zlib
from collections.abc import Mapping
from typing import Any

from httpx2 import (
    URL,
    AsyncClient,
    ConnectError,
    HTTPError,
    InvalidURL,
    Request,
    Response,
    TimeoutException,
    create_ssl_context,
)

from .destinations import FetchPolicy, parse, resolve

__all__ = ["FetchPolicy", "fetch"]

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
RESPONSE_BYTES = 1024 * 1024
MAX_SECONDS = 30.0
AGENT = "hitlchat-tool"
PHASES = ("connect", "read", "write", "pool")

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
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
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# those that belong to the connection, or say where it goes and how long it is
_OURS = re.compile(r"host|connection|keep-alive|te|trailers?|transfer-encoding|upgrade|expect|content-length|proxy-.*")


async def fetch(
    policy: FetchPolicy,
    url: str,
    method: str = "GET",
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    timeout: float = 10.0,  # noqa: ASYNC109
) -> dict[str, Any]:
    """Ask `url` and return `{"status", "headers", "text", "json"}`; redirects come back as they are.

    PermissionError: the policy forbids it. ValueError: the request is wrong or the answer cannot be used.
    TimeoutError: no whole answer in time.
    """
    target = _with_params(parse(url), params)
    request = functools.partial(_request, _method(method), target, _headers(headers), _body(json))
    seconds = _seconds(timeout)
    try:
        async with asyncio.timeout(seconds):
            addresses = await resolve(policy, target)
            return await _ask(addresses, request, target.host)
    except (TimeoutError, TimeoutException):
        raise TimeoutError(f"{target.host} gave no whole answer within {seconds:g} s") from None
    except HTTPError as error:
        raise ValueError(f"{target.host} could not be asked: {_reason(error)}") from None


async def _ask(addresses: list[str], request: "functools.partial[Request]", host: str) -> dict[str, Any]:
    client = AsyncClient(verify=_tls(), trust_env=False, follow_redirects=False, timeout=MAX_SECONDS)
    async with client:
        for address in addresses[:-1]:
            try:
                return await _answer(client, request(address), host)
            except ConnectError:
                continue
        return await _answer(client, request(addresses[-1]), host)


async def _answer(client: AsyncClient, request: Request, host: str) -> dict[str, Any]:
    response = await client.send(request, stream=True)
    try:
        body = _decoded(response, await _read(response, host), host)
    finally:
        await response.aclose()
    text = _text(response, body)
    return {
        "status": response.status_code,
        "headers": dict(response.headers),
        "text": text,
        "json": _json(response, text),
    }


async def _read(response: Response, host: str) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > RESPONSE_BYTES:
            raise _too_large(host)
    return bytes(body)


def _too_large(host: str) -> ValueError:
    return ValueError(f"the answer of {host} is larger than the limit of 1 MiB")


def _decoded(response: Response, body: bytes, host: str) -> bytes:
    """Uncompressed, never beyond the limit: a small answer can unfold into gigabytes."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", "") or not body:
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"the answer of {host} is compressed in a way that is not supported")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        whole = unpacker.decompress(body, RESPONSE_BYTES + 1)
    except zlib.error:
        raise ValueError(f"the answer of {host} is not compressed as it says") from None
    if len(whole) > RESPONSE_BYTES:
        raise _too_large(host)
    return whole


def _text(response: Response, body: bytes) -> str:
    charset = (response.charset_encoding or "").strip().lower().replace("_", "-")
    return body.decode(CHARSETS.get(charset, "utf-8"), "replace")


def _json(response: Response, text: str) -> Any:
    if "json" not in response.headers.get("content-type", ""):
        return None
    try:
        return jsons.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _request(method: str, url: URL, headers: dict[str, str], body: bytes | None, address: str) -> Request:
    """To the address that was checked, in the name of the host: nobody resolves a second time."""
    ours = {"accept-encoding": "identity", "user-agent": AGENT}
    ours |= {} if body is None else {"content-type": "application/json"}
    return Request(
        method,
        url.copy_with(host=address),
        headers={**ours, **headers, "host": url.netloc.decode("ascii")},
        content=body,
        extensions={"sni_hostname": url.host, "timeout": dict.fromkeys(PHASES, MAX_SECONDS)},
    )


def _method(method: object) -> str:
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise ValueError(f"the method must be one of {', '.join(METHODS)}")
    return method.upper()


def _with_params(url: URL, params: Mapping[str, Any] | None) -> URL:
    if params is None:
        return url
    if not isinstance(params, Mapping):
        raise ValueError("params must be an object of names and values")  # noqa: TRY004
    try:
        return url.copy_merge_params(dict(params))
    except (TypeError, InvalidURL):
        raise ValueError("params must hold texts, numbers, or lists of them") from None


def _headers(headers: Mapping[str, Any] | None) -> dict[str, str]:
    if headers is not None and not isinstance(headers, Mapping):
        raise ValueError("headers must be an object of names and texts")
    for name, value in (headers or {}).items():
        if not isinstance(value, str) or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"the header {name[:40]!r} has a name or value that HTTP cannot carry")
        if _OURS.fullmatch(name.lower()):
            raise ValueError(f"the header {name!r} cannot be set by a tool")
    return {name.lower(): value for name, value in (headers or {}).items()}


def _body(json: Any) -> bytes | None:
    if json is None:
        return None
    try:
        return jsons.dumps(json, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        raise ValueError("json must be a JSON value") from None


def _seconds(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= MAX_SECONDS:
        raise ValueError(f"the timeout must be a number of seconds up to {MAX_SECONDS:g}")
    return float(timeout)


def _reason(error: HTTPError) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "its TLS certificate is not valid for this name"
        cause = cause.__cause__ or cause.__context__
    return "the connection failed" if isinstance(error, ConnectError) else "the connection broke off"


@functools.cache
def _tls() -> ssl.SSLContext:
    return create_ssl_context()  # with SSL_CERT_FILE, where the operator keeps an authority of their own
