"""Prompts, resources, completion and levels of logs, which hitlchat has none of; and what is not text."""

from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tests.mcp_server.conformance import rounds

Context = ServerRequestContext[Any]

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE: Final = types.ImageContent(type="image", data=PIXEL, mime_type="image/png")
AUDIO: Final = types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")

TEXT, BINARY, WATCHED = "test://static-text", "test://static-binary", "test://watched-resource"
TEMPLATE: Final = "test://template/{id}/data"
ARGUMENTS: Final = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def embedded(uri: str) -> types.EmbeddedResource:
    said = types.TextResourceContents(uri=uri, mime_type="text/plain", text="Embedded resource content for testing.")
    return types.EmbeddedResource(type="resource", resource=said)


def add_to(server: Server[Any]) -> None:
    handlers: tuple[tuple[str, Any, Any], ...] = (
        ("prompts/list", types.PaginatedRequestParams, list_prompts),
        ("prompts/get", types.GetPromptRequestParams, get_prompt),
        ("resources/list", types.PaginatedRequestParams, list_resources),
        ("resources/templates/list", types.PaginatedRequestParams, list_templates),
        ("resources/read", types.ReadResourceRequestParams, read),
        ("resources/subscribe", types.SubscribeRequestParams, take_note),
        ("resources/unsubscribe", types.UnsubscribeRequestParams, take_note),
        ("logging/setLevel", types.SetLevelRequestParams, take_note),
        ("completion/complete", types.CompleteRequestParams, complete),
    )
    for method, params, handler in handlers:
        server.add_request_handler(method, params, handler)


async def list_prompts(_ctx: Context, _params: types.PaginatedRequestParams) -> types.ListPromptsResult:
    prompts = [
        types.Prompt(
            name=name,
            description=f"What the suite calls {name}.",
            arguments=[types.PromptArgument(name=each, required=True) for each in arguments],
        )
        for name, arguments in ARGUMENTS.items()
    ]
    return types.ListPromptsResult(prompts=prompts)


async def get_prompt(
    _ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _saying("This is a simple prompt for testing.")
        case "test_prompt_with_arguments":
            return _saying(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")
        case "test_prompt_with_embedded_resource":
            return _saying("Please process the embedded resource above.", embedded(given["resourceUri"]))
        case "test_prompt_with_image":
            return _saying("Please analyze the image above.", IMAGE)
        case "test_input_required_result_prompt":
            return rounds.PROMPT.next(params) or _saying(rounds.answers(params))
    raise MCPError(types.INVALID_PARAMS, "There is no such prompt.")


def _saying(text: str, *before: types.ContentBlock) -> types.GetPromptResult:
    blocks = [*before, types.TextContent(type="text", text=text)]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in blocks])


async def list_resources(_ctx: Context, _params: types.PaginatedRequestParams) -> types.ListResourcesResult:
    kinds = {TEXT: "text/plain", BINARY: "image/png", WATCHED: "text/plain"}
    resources = [
        types.Resource(uri=uri, name=uri.rpartition("/")[2], description="Of the suite.", mime_type=kind)
        for uri, kind in kinds.items()
    ]
    return types.ListResourcesResult(resources=resources)


async def list_templates(_ctx: Context, _params: types.PaginatedRequestParams) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template=TEMPLATE, name="template", mime_type="application/json")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read(_ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == BINARY:
        blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
        return types.ReadResourceResult(contents=[blob])
    if uri not in (TEXT, WATCHED, TEMPLATE.replace("{id}", "123")):
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    said = "This is the content of the static text resource." if uri == TEXT else f'{{"id": "123", "of": "{uri}"}}'
    kind = "text/plain" if uri == TEXT else "application/json"
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=said)])


async def take_note(_ctx: Context, _params: types.RequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def complete(_ctx: Context, _params: types.CompleteRequestParams) -> types.CompleteResult:
    return types.CompleteResult(completion=types.Completion(values=[], total=0, has_more=False))
