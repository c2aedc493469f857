"""Results and schemas as MCP wants them: always objects, so that any other result stands in one, as `result`."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import mcp_types as types
from django.conf import settings
from mcp.shared.inbound import X_MCP_HEADER_KEY
from pydantic import TypeAdapter

from hitlchat.gate import contents, results
from hitlchat.gate.models import Tool, ToolCall

_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)

DEFINITIONS = ("$defs", "definitions")
# Of what stands in them, the keys are names, or it is no schema at all.
NAMED = (*DEFINITIONS, "properties", "patternProperties", "dependentSchemas")
DATA = ("const", "enum", "default", "examples")


def input_schema(tool: Tool) -> dict[str, Any]:
    """Without the wish of an upstream server to see arguments in HTTP headers too: what is between its clients and it
    is not between ours and us, and who asks for headers must check them."""
    return {"type": "object", **_without_headers(tool.input_schema)}


def output_schema(tool: Tool) -> dict[str, Any] | None:
    """What `structured` of its results fits; None if the tool does not say, or it cannot be said of an object."""
    schema: dict[str, Any] | None = tool.output_schema
    if not isinstance(schema, dict):
        return None
    if _is_object(schema):
        return schema
    inner = {key: value for key, value in schema.items() if key not in (*DEFINITIONS, "$schema", "$id")}
    outer = {key: schema[key] for key in DEFINITIONS if key in schema}
    # A part of the schema keeps its address in its definitions, and at no other place.
    if any(not reference.startswith(tuple(f"#/{key}/" for key in DEFINITIONS)) for reference in _references(schema)):
        return None
    return {**outer, "type": "object", "properties": {"result": inner}, "required": ["result"]}


def structured(call: ToolCall) -> dict[str, Any] | None:
    """The result of a call that succeeded, as an object; None if it is none and nobody was told that it would be."""
    schema = call.tool.output_schema if call.tool is not None else None
    value = contents.structured(call)
    if isinstance(schema, dict) and not _is_object(schema):
        return {"result": value}
    return value if isinstance(value, dict) else None


def most_text() -> results.Bound:
    """Of one text in a result: as much as the result of a tool may have at all."""
    return results.Bound(int(settings.TOOL_RESULT_KIB) * 1024, "TOOL_RESULT_KIB")


def block(kept: contents.Block, data: Mapping[str, bytes]) -> types.ContentBlock:
    """The block as it came, or in words where its bytes are not there."""
    whole = dict(kept)
    is_resource = kept["type"] == "resource"
    if "text" in kept:
        whole["text"] = most_text().cut(str(kept["text"]))
    if "bytes" in kept:
        if (found := data.get(kept.get("sha256", ""))) is None:
            return types.TextContent(type="text", text=f"[{contents.in_words(kept)}]")
        whole["blob" if is_resource else "data"] = base64.b64encode(found).decode()
    if is_resource:
        whole = {"type": "resource", "resource": whole, "annotations": kept.get("annotations")}
    return _BLOCK.validate_python(whole)


def _without_headers(part: Any, *, is_named: bool = False) -> Any:
    if isinstance(part, list):
        return [_without_headers(item) for item in part]
    if not isinstance(part, dict):
        return part
    if is_named:
        return {name: _without_headers(item) for name, item in part.items()}
    kept = {key: item for key, item in part.items() if key != X_MCP_HEADER_KEY}
    return {key: item if key in DATA else _without_headers(item, is_named=key in NAMED) for key, item in kept.items()}


def _is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object"


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(part, list):
        for item in part:
            yield from _references(item)
