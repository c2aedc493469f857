"""Results of upstream calls: how one can end, and as JSON. Only `NeverRan` may be repeated without asking."""

import asyncio
import base64
import binascii
import hashlib
import math
import re
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types

from hitlchat.upstreams.client.spec import Limits, Masking


@dataclass(frozen=True)
class Answer:
    """The tool ran and answered. `content`: plain JSON objects, each with its `type`; those of images, sounds and other
    bytes name them by their SHA-256, under which they are `attachments`. `structured`: any JSON value, or None.
    `is_error`: the tool says that it failed.
    """

    content: list[dict[str, Any]] = field(default_factory=list)
    structured: Any = None
    is_error: bool = False
    attachments: dict[str, bytes] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All texts of the content, one below the other."""
        return "\n".join(str(block["text"]) for block in self.content if "text" in block)


@dataclass(frozen=True)
class Rejected:
    """The server answered with a protocol error instead of a result."""

    code: int
    message: str


@dataclass(frozen=True)
class NeverRan:
    """The server provably never got the request, or turned it away unread. `http_status`: what it said, if it did."""

    reason: str
    http_status: int | None = None
    retry: bool = False
    """The connection was at fault, and has been given up: over a new one the call may well succeed."""


@dataclass(frozen=True)
class Unreadable:
    """An answer came, so the tool has ended, but what it said cannot be used: too large, too deep, not the protocol."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """The request was sent, and no answer came: the tool may or may not have run."""

    reason: str


Outcome = Answer | Rejected | NeverRan | Unreadable | Unknown
Trouble = NeverRan | Unreadable | Unknown


LONGEST_NUMBER = 400  # digits; more than any double has


def openings(data: bytes) -> int:
    """Return about how many lists and objects there are to parse, which costs far more than the bytes."""
    return data.count(b"[") + data.count(b"{")


# Half of a pair of surrogates, perhaps: most such escapes are halves of a whole pair.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_LONE_ESCAPE = len(rb"\ud800")


def whole_characters(text: bytes) -> bytes:
    """Return a JSON text with U+FFFD for every half of a character, which no parser takes and nothing can keep."""
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode(errors="replace").encode()
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(lambda found: rb"\ufffd" if len(found[0]) == _LONE_ESCAPE else found[0], text)


def complaint(value: Any, limits: Limits) -> str:
    """Return what is wrong with it, as the end of a sentence that begins with its name; empty if nothing is.

    Takes no more steps than `limits.nodes`, and no recursion.
    """
    left = limits.nodes
    level: list[Any] = [value]
    for _ in range(limits.depth + 1):
        left -= len(level)
        if left < 0:
            return f"has more than {limits.nodes:,} parts"
        if any(_is_no_number(each) for each in level):
            return "has a number that JSON cannot express"
        inner = [each for each in level if isinstance(each, dict | list)]
        if not inner:
            return ""
        if sum(map(len, inner)) > left:
            return f"has more than {limits.nodes:,} parts"
        level = [item for each in inner for item in (each.values() if isinstance(each, dict) else each)]
    return f"is nested more than {limits.depth} levels deep"


def _is_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and value.bit_length() > 3.33 * LONGEST_NUMBER


# Characters and values that are looked through at once; more of them must not keep the others waiting.
FEW = 16 * 1024


async def answer(result: types.CallToolResult, mask: Masking) -> Answer:
    """Return the whole answer without secrets."""
    if _is_short(result):
        return _masked(result, mask)
    return await asyncio.to_thread(_masked, result, mask)


def _masked(result: types.CallToolResult, mask: Masking) -> Answer:
    attachments: dict[str, bytes] = {}
    content = []
    for block in result.content:
        kept = mask.value(_plain(block))
        if (packed := _packed(block)) is not None:
            kept |= _attached(packed, mask, attachments)
        content.append(kept)
    return Answer(content, mask.value(result.structured_content), bool(result.is_error), attachments)


def _is_short(result: types.CallToolResult) -> bool:
    left = FEW
    few = result.content[:FEW]
    level: list[Any] = [result.structured_content, [[_plain(block), _packed(block)] for block in few]]
    while level and left > 0:
        left -= sum(len(each) if isinstance(each, str) else 1 for each in level)
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [item for each in inner for item in each]
    return left > 0


def _plain(block: types.ContentBlock) -> dict[str, Any]:
    """All of a block but its bytes."""
    notes = block.annotations.model_dump(by_alias=True, mode="json", exclude_none=True) if block.annotations else {}
    return _of_its_kind(block) | ({"annotations": notes} if notes else {})


def _of_its_kind(block: types.ContentBlock) -> dict[str, Any]:
    match block:
        case types.TextContent():
            return {"type": "text", "text": block.text}
        case types.ImageContent() | types.AudioContent():
            return {"type": block.type, "mimeType": block.mime_type}
        case types.ResourceLink():
            described = {"title": block.title, "description": block.description, "mimeType": block.mime_type}
            given = {key: value for key, value in described.items() if value is not None}
            return {"type": "resource_link", "uri": str(block.uri), "name": block.name, **given}
        case types.EmbeddedResource(resource=resource):
            found: dict[str, Any] = {"type": "resource", "uri": str(resource.uri)}
            if resource.mime_type is not None:
                found["mimeType"] = resource.mime_type
            return found | ({"text": resource.text} if isinstance(resource, types.TextResourceContents) else {})


def _packed(block: types.ContentBlock) -> str | None:
    """The bytes of a block, in Base64."""
    match block:
        case types.ImageContent() | types.AudioContent():
            return block.data
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return resource.blob
        case _:
            return None


def _attached(packed: str, mask: Masking, attachments: dict[str, bytes]) -> dict[str, Any]:
    """Return what the block says of its bytes: their digest, or why they are not kept."""
    try:
        data = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        return {"bytes": 0, "omitted": "they are not Base64"}
    text = data.decode("utf-8", "surrogateescape")
    if mask.text(text) != text:
        return {"bytes": len(data), "omitted": "they hold a secret of the connection"}
    digest = hashlib.sha256(data).hexdigest()
    attachments[digest] = data
    return {"bytes": len(data), "sha256": digest}
