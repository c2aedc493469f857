"""A tool's result as plain JSON, and the bytes that belong to it."""

import asyncio
import base64
import binascii
import hashlib
from typing import Any

import mcp_types as types

from hitlchat.upstreams.wire.outcomes import Answer
from hitlchat.upstreams.wire.surroundings import Masking

# Characters and values that are looked through at once; more of them must not keep the others waiting.
FEW = 16 * 1024


async def answer(result: types.CallToolResult, mask: Masking) -> Answer:
    """Everything of it, without secrets."""
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
    """What the block says of its bytes: their digest, or why they are not kept."""
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
