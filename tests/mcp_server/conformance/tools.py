"""The suite's tools that cannot be tools of the catalog: their results hold more than text, or they ask for more than
a yes. They are handled beside it, by the same server, over the same transport.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import PromptsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from tests.mcp_server.conformance import contents, rounds
from tests.mcp_server.conformance.rounds import STRING, form, sampling

Context = ServerRequestContext[Any]
Result = types.CallToolResult | types.InputRequiredResult
Tool = Callable[[Context, types.CallToolRequestParams], Awaitable[Result]]

DEFAULTS: Final[dict[str, Any]] = {
    "name": STRING | {"default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": STRING | {"enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
TITLED: Final = [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]
ENUMS: Final[dict[str, Any]] = {
    "untitledSingle": STRING | {"enum": ["option1", "option2", "option3"]},
    "titledSingle": STRING | {"oneOf": TITLED},
    "legacyEnum": STRING | {"enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": STRING | {"enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
WITH_HEADER: Final = "test_custom_header"
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "test_sampling": {"type": "object", "properties": {"prompt": STRING}, "required": ["prompt"]},
    WITH_HEADER: {"type": "object", "properties": {"region": STRING | {"x-mcp-header": "Region"}}},
}


def text(said: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)])


def showing(*blocks: types.ContentBlock) -> Tool:
    async def show(_ctx: Context, _params: types.CallToolRequestParams) -> Result:
        return types.CallToolResult(content=[*blocks])

    return show


def asking(question: types.ElicitRequest) -> Tool:
    """A form of a client of 2025."""

    async def ask(ctx: Context, _params: types.CallToolRequestParams) -> Result:
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        answer = await ctx.session.send_request(question, types.ElicitResult, 30, related)
        return text(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")

    return ask


def in_rounds(asked: rounds.Rounds) -> Tool:
    async def go_on(_ctx: Context, params: types.CallToolRequestParams) -> Result:
        return asked.next(params) or text(rounds.answers(params))

    return go_on


async def sample(ctx: Context, params: types.CallToolRequestParams) -> Result:
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    question = sampling((params.arguments or {})["prompt"])
    answer = await ctx.session.send_request(question, types.CreateMessageResult, 30, related)
    return text(f"LLM response: {answer.model_dump_json()}")


async def log(ctx: Context, _params: types.CallToolRequestParams) -> Result:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        told = types.LoggingMessageNotificationParams(level="info", data=said)
        await ctx.session.send_notification(types.LoggingMessageNotification(params=told), ctx.request_id)
        await asyncio.sleep(0.05)
    return text("done")


async def reconnect(ctx: Context, _params: types.CallToolRequestParams) -> Result:
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    return text("Reconnection test completed")


async def need_sampling(ctx: Context, _params: types.CallToolRequestParams) -> Result:
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        lacks: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "It needs sampling.", lacks)
    return text("done")


async def ask_what_it_can(ctx: Context, _params: types.CallToolRequestParams) -> Result:
    able = ctx.session.client_capabilities or types.ClientCapabilities()
    asks: rounds.Asks = {}
    asks |= rounds.CAPITAL if able.sampling is not None else {}
    asks |= rounds.NAME if able.elicitation is not None else {}
    return types.InputRequiredResult(input_requests=asks)


async def change_prompts(ctx: Context, _params: types.CallToolRequestParams) -> Result:
    await ctx.lifespan_context.publish(PromptsListChanged())
    return text("done")


TOOLS: Final[dict[str, Tool]] = {
    "test_image_content": showing(contents.IMAGE),
    "test_audio_content": showing(contents.AUDIO),
    "test_embedded_resource": showing(contents.embedded("test://embedded-resource")),
    "test_multiple_content_types": showing(
        types.TextContent(type="text", text="Multiple content types test:"),
        contents.IMAGE,
        contents.embedded("test://mixed-content-resource"),
    ),
    "test_tool_with_logging": log,
    "test_sampling": sample,
    "test_elicitation_sep1034_defaults": asking(form("Who are you?", **DEFAULTS)),
    "test_elicitation_sep1330_enums": asking(form("Which of them?", **ENUMS)),
    "test_reconnection": reconnect,
    "test_missing_capability": need_sampling,
    "test_trigger_prompt_change": change_prompts,
    "test_input_required_result_capabilities": ask_what_it_can,
    WITH_HEADER: showing(types.TextContent(type="text", text="done")),
    **{f"test_input_required_result_{name}": in_rounds(asked) for name, asked in rounds.TOOLS.items()},
}


def described() -> list[types.Tool]:
    plain = {"type": "object", "properties": {}}
    return [
        types.Tool(name=name, description=f"What the suite calls {name}.", input_schema=SCHEMAS.get(name, plain))
        for name in sorted(TOOLS)
    ]
