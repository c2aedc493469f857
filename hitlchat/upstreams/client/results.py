"""Results of upstream calls: how one can end, and as JSON. Only `NeverRan` may be repeated without asking."""

import asyncio
import base64
import binascii
import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp_types.methods import validate_server_result
from pydantic import TypeAdapter, ValidationError

from hitlchat.base import canonical
from hitlchat.secrets.masking import Mask
from hitlchat.upstreams.client.spec import Limits

LONGEST_NUMBER = 400  # digits; more than any double has
# Results with more characters and values than this are masked in a thread, so that nobody else has to wait.
FEW = 16 * 1024
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)
# How many characters are kept of a block that cannot be read.
LONGEST_UNREADABLE = 2000
# Optional members of a block.
_EXTRAS = ("annotations", "_meta", "icons")
_SHOWN = {"type", "text", "mime_type", "uri", "name", "title", "description", "annotations"}
_NOTHING: dict[str, Any] = {"type": "text", "text": ""}
# A surrogate, possibly a lone one: most belong to a pair.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_LONE_ESCAPE = len(rb"\ud800")


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
        return "\n".join(str(block["text"]) for block in self.content if "text" in block)


@dataclass(frozen=True)
class Rejected:
    code: int
    message: str


@dataclass(frozen=True)
class NeverRan:
    """The server provably never got the request, or refused it unread. `http_status`: of its response, if any."""

    reason: str
    http_status: int | None = None
    retry: bool = False
    """The connection was at fault and has been given up: over a new one the call may succeed."""


@dataclass(frozen=True)
class Unreadable:
    """An answer came, so the tool has ended, but it cannot be used: too large, too deep, or not the protocol."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """The request was sent, and no answer came: the tool may or may not have run."""

    reason: str


Outcome = Answer | Rejected | NeverRan | Unreadable | Unknown
Trouble = NeverRan | Unreadable | Unknown


def openings(data: bytes) -> int:
    """Return roughly how many lists and objects there are, which cost far more to parse than their bytes."""
    return data.count(b"[") + data.count(b"{")


def whole_characters(text: bytes) -> bytes:
    """Return a JSON text with U+FFFD for every lone surrogate, which parsers refuse and nothing can store."""
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode(errors="replace").encode()
    if _HALF.search(text) is None:
        return text
    return _ESCAPE.sub(lambda found: rb"\ufffd" if len(found[0]) == _LONE_ESCAPE else found[0], text)


def complaint(value: Any, limits: Limits) -> str:
    """Return what is wrong, as the end of a sentence; empty if nothing is. Takes at most `limits.nodes` steps."""
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


class Tidied:
    """The readable parts of the answers to one call. The others are replaced, and described by their places."""

    def __init__(self, version: str, limits: Limits) -> None:
        self._version, self._limits = version, limits
        self._unreadable: dict[int, dict[str, Any]] = {}
        self._structured: Any = None

    def tidy(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a raw result without the parts that would make all of it unreadable."""
        self._unreadable, self._structured = {}, None
        content = result.get("content")
        if not isinstance(content, list) and result.get("structuredContent") is None:
            # No result, or one without any readable part.
            return result
        raw = content if isinstance(content, list) else [] if content is None else [content]
        blocks = [self._tidied(place, block) for place, block in enumerate(raw)]
        result = {**result, "content": blocks}
        if not isinstance(result.get("_meta"), dict):
            result.pop("_meta", None)
        if result.get("isError") is None:
            result.pop("isError", None)
        return self._without_structured(result)

    def _tidied(self, place: int, block: Any) -> Any:
        if (why := complaint(block, self._limits)) == "":
            for left_out in ((), _EXTRAS):
                whole = {k: v for k, v in block.items() if k not in left_out} if isinstance(block, dict) else block
                if (why := self._fault(whole)) == "":
                    return whole
        kind = str(block.get("type", "none")) if isinstance(block, dict) else type(block).__name__
        self._unreadable[place] = {"kind": kind, "why": why, "block": block}
        return _NOTHING

    def _fault(self, block: Any) -> str:
        try:
            validate_server_result("tools/call", self._version, {"content": [block], "resultType": "complete"})
            _BLOCK.validate_python(block, by_name=False)
        except ValidationError:
            return "has an unknown type, or does not match its type"
        except KeyError:
            pass
        return ""

    def _without_structured(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result without structured content that this revision does not have, or that cannot be stored."""
        structured = result.get("structuredContent")
        why = complaint(structured, self._limits)
        if why and len(result["content"]) > len(self._unreadable):
            self._unreadable[len(result["content"])] = {"kind": "structuredContent", "why": why, "block": None}
            result["content"] = [*result["content"], _NOTHING]
        elif why or structured is None or isinstance(structured, dict):
            return result
        else:
            self._structured = structured
        return {key: value for key, value in result.items() if key != "structuredContent"}

    async def answer(self, result: types.CallToolResult, mask: Mask) -> Answer:
        """Return the whole answer without secrets; unreadable parts are described in words, at their places."""
        blocks: list[Any] = [[_plain(block), _packed(block)] for block in result.content[:FEW]]
        parts = [result.structured_content, blocks, self._structured, [*self._unreadable.values()]]
        if canonical.is_short(parts, FEW):
            return self._masked(result, mask)
        return await asyncio.to_thread(self._masked, result, mask)

    def _masked(self, result: types.CallToolResult, mask: Mask) -> Answer:
        attachments: dict[str, bytes] = {}
        content: list[dict[str, Any]] = []
        for place, block in enumerate(result.content):
            if (odd := self._unreadable.get(place)) is not None:
                content.append(_in_words(odd, mask))
                continue
            plain = mask.value(_plain(block))
            if (packed := _packed(block)) is not None:
                plain |= _attached(packed, mask, attachments)
            content.append(plain)
        structured = result.structured_content if self._structured is None else self._structured
        return Answer(content, mask.value(structured), bool(result.is_error), attachments)


def _in_words(odd: dict[str, Any], mask: Mask) -> dict[str, Any]:
    kind, block = mask.text(odd["kind"])[:100], odd["block"]
    head = f"[{kind}: a part of the result that cannot be read, since it {odd['why']}]"
    try:
        came = "" if block is None else mask.text(json.dumps(block, ensure_ascii=False))[:LONGEST_UNREADABLE]
    except (TypeError, ValueError, RecursionError):
        came = ""
    return {"type": "unreadable", "kind": kind, "text": f"{head} {came}".strip()}


def _plain(block: types.ContentBlock) -> dict[str, Any]:
    """Return the members of a block that pages show, without its bytes."""
    plain = block.model_dump(by_alias=True, mode="json", exclude_none=True, include=_SHOWN)
    if isinstance(block, types.EmbeddedResource):
        plain |= block.resource.model_dump(by_alias=True, mode="json", exclude_none=True, include=_SHOWN)
    if not plain.get("annotations"):
        plain.pop("annotations", None)
    return plain


def _packed(block: types.ContentBlock) -> str | None:
    match block:
        case types.ImageContent() | types.AudioContent():
            return block.data
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return resource.blob
        case _:
            return None


def _attached(packed: str, mask: Mask, attachments: dict[str, bytes]) -> dict[str, Any]:
    """Return the members that describe the bytes of a block: their digest, or why they are left out."""
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
