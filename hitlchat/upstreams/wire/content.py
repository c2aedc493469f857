"""A tool's result as plain JSON."""

import asyncio
from typing import Any

import mcp_types as types

from .outcomes import Answer
from .surroundings import Masking

# Characters and values that are looked through at once; more of them must not keep the others waiting.
FEW = 16 * 1024


async def answer(result: types.CallToolResult, mask: Masking) -> Answer:
    """Every text of it, and of everything else what it is and how large."""
    if _is_short(result):
        return _masked(result, mask)
    return await asyncio.to_thread(_masked, result, mask)


def _masked(result: types.CallToolResult, mask: Masking) -> Answer:
    return Answer(
        content=[mask.value(_plain(block)) for block in result.content],
        structured=mask.value(result.structured_content),
        is_error=result.is_error,
    )


def _is_short(result: types.CallToolResult) -> bool:
    left = FEW
    level: list[Any] = [result.structured_content, [_plain(block) for block in result.content[:FEW]]]
    while level and left > 0:
        left -= sum(len(each) if isinstance(each, str) else 1 for each in level)
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [item for each in inner for item in each]
    return left > 0


def _plain(block: types.ContentBlock) -> dict[str, Any]:
    match block:
        case types.TextContent():
            return {"type": "text", "text": block.text}
        case types.ImageContent() | types.AudioContent():
            return {"type": block.type, "mimeType": block.mime_type, "bytes": _size(block.data)}
        case types.ResourceLink():
            described = {"title": block.title, "description": block.description, "mimeType": block.mime_type}
            given = {key: value for key, value in described.items() if value is not None}
            return {"type": "resource_link", "uri": str(block.uri), "name": block.name, **given}
        case types.EmbeddedResource(resource=resource):
            found: dict[str, Any] = {"type": "resource", "uri": str(resource.uri)}
            if resource.mime_type is not None:
                found["mimeType"] = resource.mime_type
            if isinstance(resource, types.TextResourceContents):
                return found | {"text": resource.text}
            return found | {"bytes": _size(resource.blob)}


def _size(base64: str) -> int:
    """How many bytes it stands for."""
    return len(base64.rstrip("=")) * 3 // 4
