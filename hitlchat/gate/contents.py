"""Results that are content blocks, as MCP has them: pictures, sounds, files and links beside text and structured data.

The result of such a call is {"structured"?, "content": [block]}. What a block has in bytes is an attachment of the
call, which the block names by its SHA-256, so that the record covers it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from django.db import transaction

from hitlchat.base import canonical
from hitlchat.gate import sources
from hitlchat.gate.models import Attachment, ToolCall

Block = dict[str, Any]

# One that is of no known kind, or not as its kind has it; its text says so, with what came.
UNREADABLE: Final = "unreadable"
KINDS: Final = frozenset({"audio", "image", "resource", "resource_link", "text", UNREADABLE})
# Between texts and what is structured, where both are one text.
_BESIDE: Final = "\n\n"

PICTURES: Final = frozenset({"image/avif", "image/gif", "image/jpeg", "image/png", "image/webp"})
SOUNDS: Final = frozenset(
    {"audio/aac", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav", "audio/webm", "audio/x-wav"}
)
# What a page may show. Anything else could be a page itself.
SHOWN: Final = PICTURES | SOUNDS


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def value(blocks: list[Block], structured: Any) -> Any:
    """Return the result of a call that gave `blocks` and `structured`, which None is not.

    What is structured, else the text of the blocks; all of it where there is more than text in them, or the text says
    something else than what is structured.
    """
    is_more = any(block["type"] != "text" for block in blocks) or _has_blocks(structured)
    if is_more or (structured is not None and not _is_said_by(structured, _texts(blocks))):
        return {**({} if structured is None else {"structured": structured}), "content": blocks}
    if structured is not None:
        return structured
    return "\n".join(str(block["text"]) for block in blocks) if blocks else None


def blocks(call: ToolCall) -> list[Block] | None:
    """Return the content blocks of what `call` gave; None if it gave a value."""
    is_given = _has_blocks(call.result) and sources.is_registered(call.source)
    if not is_given or not getattr(sources.source(call.source), "gives_blocks", False):
        return None
    found: list[Block] = call.result["content"]
    return found


def structured(call: ToolCall) -> Any:
    """Return what `call` gave beside its content blocks, or the value that it gave."""
    return call.result if blocks(call) is None else call.result.get("structured")


def attached(call: ToolCall) -> list[Block]:
    return [block for block in blocks(call) or () if "sha256" in block]


def in_words(block: Block) -> str:
    """Say which block it is whose bytes are not there, and why."""
    why = block.get("omitted") or "they are not in the record"
    return f"{block.get('mimeType', 'unknown type')}, {block['bytes']:,} bytes, not kept: {why}"


def text(call: ToolCall) -> str:
    """Return what `call` gave, for people: a text as it is, else JSON; of content blocks what can be read."""
    found = blocks(call)
    return spelled(call.result) if found is None else in_one_text(found, call.result.get("structured"), indent=2)


def has_text_beside(call: ToolCall) -> bool:
    """Return whether the text and the structured value differ, so that neither can replace the other."""
    found = blocks(call) or []
    value = call.result.get("structured") if found else None
    return value is not None and not _is_said_by(value, _texts(found))


def in_one_text(blocks: list[Block], structured: Any, indent: int | None = None) -> str:
    """Return all that can be read of `blocks`, and of `structured` where that says more."""
    texts = _texts(blocks)
    joined = "\n".join(texts)
    if structured is None or (joined.strip() and _is_said_by(structured, texts)):
        return joined
    return _BESIDE.join(filter(str.strip, (joined, spelled(structured, indent))))


def spelled(value: Any, indent: int | None = 2) -> str:
    """Return a value for people: a text as it is, else JSON."""
    return value if isinstance(value, str) else canonical.pretty(value, indent=indent)


@contextmanager
def with_attachments(call: ToolCall, attachments: Mapping[str, bytes]) -> Iterator[None]:
    """Keep `attachments`, by their digests, together with what is written within."""
    if not attachments:
        yield
        return
    with transaction.atomic():
        Attachment.objects.bulk_create(
            Attachment(call=call, digest=digest, data=data) for digest, data in attachments.items()
        )
        yield


def data(call: ToolCall) -> dict[str, bytes]:
    """Return the bytes of the blocks of `call` by their digests, without what is not as it was when it came."""
    rows = Attachment.objects.filter(call=call, digest__in=[block["sha256"] for block in attached(call)])
    found = {row.digest: bytes(row.data) for row in rows}
    return {name: each for name, each in found.items() if digest(each) == name}


def _texts(blocks: list[Block]) -> list[str]:
    return [str(block["text"]) for block in blocks if "text" in block]


def _is_said_by(structured: Any, texts: list[str]) -> bool:
    """Return whether the texts say nothing else: they are the JSON of it, or of its only part, called `result`."""
    if not any(map(str.strip, texts)):
        return True
    inner = [structured["result"]] if isinstance(structured, dict) and structured.keys() == {"result"} else []
    for value in (structured, *inner):
        items = value if isinstance(value, list) and len(value) == len(texts) else [value]
        spellings = texts if len(items) == len(texts) else ["\n".join(texts)]
        if all(_spells(text, item) for text, item in zip(spellings, items, strict=True)):
            return True
    return "\n".join(texts) == spelled(structured)


def _spells(text: str, value: Any) -> bool:
    if text == value:
        return True
    try:
        return canonical.dumps(canonical.loads(text)) == canonical.dumps(value)
    except canonical.NotJson:
        return False


def _has_blocks(result: Any) -> bool:
    if not isinstance(result, dict) or result.keys() not in ({"content"}, {"content", "structured"}):
        return False
    content = result["content"]
    return isinstance(content, list) and all(isinstance(each, dict) and each.get("type") in KINDS for each in content)
