"""tools/list: what each token sees, and as what."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from hitlchat.gate.models import Tool, ToolCall
from hitlchat.mcp_server import listing
from hitlchat.upstreams.models import Exposure, ExposureMode
from tests.gate.asking import recording
from tests.mcp_server.clients import Raw, connected, text
from tests.mcp_server.conftest import TokenOf

pytestmark = pytest.mark.django_db(transaction=True)
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])

RICH: dict[str, Any] = {
    "type": "object",
    "properties": {"who": {"$ref": "#/$defs/Person"}, "when": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "required": ["who"],
    "additionalProperties": False,
    "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string", "minLength": 1}}}},
}


async def names(client: Client) -> list[str]:
    """Of all pages."""
    found: list[str] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += [tool.name for tool in page.tools]
        if (cursor := page.next_cursor) is None:
            return found


async def test_a_tool_is_described_with_its_schemas_its_risk_and_what_follows_from_it(
    url: str, token: str, db: None
) -> None:
    await in_thread(recording)(
        "greet", title="Greet", description="Say hello.", input_schema=RICH, output_schema={"type": "string"}
    )
    async with connected(url, token, "2026") as client:
        (tool,) = (await client.list_tools()).tools
    assert (tool.name, tool.title, tool.description) == ("greet", "Greet", "Say hello.")
    assert tool.input_schema == RICH
    assert tool.output_schema == {
        "type": "object",
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
    }
    assert tool.annotations is not None
    hints = (tool.annotations.read_only_hint, tool.annotations.destructive_hint, tool.annotations.open_world_hint)
    assert hints == (False, False, False)
    assert (tool.meta or {})["hitlchat/riskLevel"] == 2
    assert (tool.meta or {})["hitlchat/approval"] == "always"


LEVELS = {0: (True, False, False), 1: (True, False, False), 3: (False, False, True), 5: (False, True, True)}


async def test_hints_follow_from_the_risk_that_was_found_here(url: str, token: str, db: None) -> None:
    for level in LEVELS:
        await in_thread(recording)(f"level_{level}", risk_level=level)
        # Counts as one less, since it asks every time.
        await in_thread(recording)(f"asking_{level}", risk_level=max(level - 1, 0), risk_inherent=level)
    tools = (await Raw(url, token).request("tools/list"))["result"]["tools"]
    found = {tool["name"]: tool["annotations"] for tool in tools}
    hints = ("readOnlyHint", "destructiveHint", "openWorldHint")
    for name in ("level", "asking"):
        assert {level: tuple(found[f"{name}_{level}"][hint] for hint in hints) for level in LEVELS} == LEVELS


async def test_a_token_sees_the_tools_it_may_use_and_calls_no_other(
    url: str, token_of: TokenOf, bob: User, entered: list[ToolCall]
) -> None:
    for name, level in (("a", 1), ("b", 3), ("c", 5)):
        await in_thread(recording)(name, risk_level=level, mode="DISABLED")
    await in_thread(recording)("hidden", published=False)
    few = await in_thread(token_of)(bob, tools=["a", "c", "no longer there"])
    low = await in_thread(token_of)(bob, ceiling=3)
    everything = await in_thread(token_of)(bob)
    for token, seen in ((few, "ac"), (low, "ab"), (everything, "abc")):
        async with connected(url, token, "2026") as client:
            assert await names(client) == list(seen)
            for other in {"a", "b", "c", "hidden"} - set(seen):
                with pytest.raises(MCPError):
                    await client.call_tool(other, {"text": "hello"})
    assert entered == []


async def test_what_is_offered_follows_the_exposure_of_the_installation(url: str, token: str, db: None) -> None:
    await in_thread(recording)("own", source="studio")
    await in_thread(recording)("composed", source="upstream")
    both = {ExposureMode.BOTH: ["composed", "own"]}
    for mode, seen in (both | {ExposureMode.OWN: ["own"], ExposureMode.COMPOSED: ["composed"]}).items():
        await Exposure.objects.aupdate_or_create(defaults={"mode": mode})
        async with connected(url, token) as client:
            assert await names(client) == seen, mode


async def test_the_wish_of_an_upstream_server_for_arguments_in_headers_is_not_passed_on(
    url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    wish, data = {"x-mcp-header": "Text"}, {"x-mcp-header": "data"}
    properties: dict[str, Any] = {"text": {"type": "string"}, "x-mcp-header": {"type": "object", "default": data}}
    plain = {"type": "object", "properties": properties, "anyOf": [{"required": ["text"]}]}
    wishing = {
        **plain,
        "properties": properties | {"text": {"type": "string"} | wish},
        "anyOf": [*plain["anyOf"], wish],
    }
    await in_thread(recording)(input_schema=wishing, mode="DISABLED")
    async with connected(url, token, "2025") as client:
        (tool,) = (await client.list_tools()).tools
        result = await client.call_tool("refund", {"text": "hello"})
    assert tool.input_schema == plain | {"anyOf": [*plain["anyOf"], {}]}
    assert (result.is_error, len(entered)) == (False, 1)


@pytest.mark.servers("PostgreSQL takes, sorts and compares text in another way")
async def test_long_lists_come_in_pages_in_a_fixed_order(url: str, token: str, db: None) -> None:
    tools = [Tool(name=f"t{n:03}", source="recording", definition_hash="d", published=True) for n in range(250)]
    await Tool.objects.abulk_create(tools)
    async with connected(url, token, "2026") as client:
        assert len((await client.list_tools()).tools) == listing.PAGE
        assert await names(client) == [tool.name for tool in tools]
        for cursor in ("", "%%%", "x", "AAAA", "w6Q=", "eA" * 100):
            with pytest.raises(MCPError) as raised:
                await client.list_tools(cursor=cursor)
            assert raised.value.code == -32602


OUTPUTS: dict[str, tuple[Any, Any]] = {
    "text": ({"type": "string"}, {"result": "done"}),
    "anything": ({}, {"result": "done"}),
    "nothing": (None, None),
}


async def test_what_a_tool_returns_is_structured_as_its_schema_says(
    url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    for name, (schema, _) in OUTPUTS.items():
        await in_thread(recording)(name, mode="DISABLED", output_schema=schema)
    async with connected(url, token, "2025") as client:
        await client.list_tools()
        for name, (_, structured) in OUTPUTS.items():
            result = await client.call_tool(name, {"text": "hello"})
            assert (result.is_error, text(result), result.structured_content) == (False, "done", structured), name


WHOLE = "caf\N{REPLACEMENT CHARACTER}.txt"
HALVES: dict[str, tuple[Any, bool, Any]] = {
    "text": ({"type": "string"}, False, {"result": WHOLE}),
    "object": ({"type": "object"}, False, {WHOLE: [WHOLE]}),
    "fails": (None, True, None),
}


@pytest.mark.servers("PostgreSQL takes, sorts and compares text in another way")
async def test_half_a_character_in_a_result_is_told_as_one_that_is_missing(url: str, token: str, db: None) -> None:
    for name, (schema, _, _) in HALVES.items():
        await in_thread(recording)(name, mode="DISABLED", source="halving", output_schema=schema)
    async with connected(url, token, "2026") as client:
        await client.list_tools()
        for name, (_, is_error, structured) in HALVES.items():
            result = await client.call_tool(name, {"text": name})
            assert (result.is_error, result.structured_content) == (is_error, structured), name
            assert WHOLE in text(result), name


async def test_a_result_that_is_not_as_declared_is_told_as_text_and_not_to_be_repeated(
    url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    await in_thread(recording)(mode="DISABLED", output_schema={"type": "integer"})
    async with connected(url, token, "2026") as client:
        await client.list_tools()
        result = await client.call_tool("refund", {"text": "hello"})
    assert (result.is_error, result.structured_content, len(entered)) == (True, None, 1)
    assert "must not be repeated" in text(result)
    assert text(result).endswith("done")


async def test_an_error_on_our_side_is_told_without_insides(url: str, token: str, db: None) -> None:
    await in_thread(recording)(input_schema=5)
    async with connected(url, token, "2025") as client:
        with pytest.raises(MCPError) as raised:
            await client.list_tools()
    assert raised.value.code == -32603
    assert "mapping" not in str(raised.value)


async def test_results_of_every_kind_of_failure_are_told_without_insides(
    url: str, token: str, db: None, entered: list[ToolCall]
) -> None:
    told = {"raising": "An error in hitlchat", "failing": "no such order", "nowhere": "An error in hitlchat"}
    async with connected(url, token) as client:
        for source, words in told.items():
            await in_thread(recording)(source, source=source, mode="DISABLED")
            result = await client.call_tool(source, {"text": "hello"})
            assert result.is_error
            assert words in text(result)
            assert "secret of the source" not in text(result)
