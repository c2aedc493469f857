"""An answer as a tool gets it: read within its limit, unpacked, decoded."""

import asyncio
import json as jsons
import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from httpcore2 import Response

from hitlchat.sandbox.limits import in_words
from tools_studio.network.request import Credential, shown
from tools_studio.network.wire import TooLarge

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
_THREADS = ThreadPoolExecutor(2, thread_name_prefix="tool-answer")
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
    return await asyncio.get_running_loop().run_in_executor(_THREADS, _answer, response, body, max_bytes, credential)


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
    """Never beyond the limit: a small answer can unfold into gigabytes."""
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
