import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from jsonschema import validate

from hitlchat.gate.schema import with_defaults
from hitlchat.sandbox import Report, check, run
from tools_studio.capabilities import ALL_NAMES, parse
from tools_studio.library.catalogue import TOOLS, ShippedTool
from tools_studio.signature import coerce, read

BY_NAME = {tool.name: tool for tool in TOOLS}
every_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
Call = Callable[..., Report]


def grants(store: dict[str, Any]) -> dict[str, Callable[..., Awaitable[Any]]]:
    """What the host offers, over a plain dict and a clock that stands still."""

    async def get(key: str, default: Any = None) -> Any:
        return store.get(key, default)

    async def put(key: str, value: Any) -> None:
        store[key] = value

    async def delete(key: str) -> None:
        store.pop(key, None)

    async def keys(prefix: str = "") -> list[str]:
        return [key for key in store if key.startswith(prefix)]

    async def now(timezone: str = "UTC") -> datetime:
        return datetime(2026, 1, 31, 23, 30, tzinfo=UTC).astimezone(ZoneInfo(timezone))

    return {"store.get": get, "store.set": put, "store.delete": delete, "store.keys": keys, "now": now}


@pytest.fixture
def call() -> Call:
    """Runs a shipped tool by name, all of them over one store and each with no more than it declares."""
    store: dict[str, Any] = {}

    def runner(name: str, **arguments: Any) -> Report:
        tool = BY_NAME[name]
        schema = read(tool.source).input_schema
        filled = with_defaults(schema, arguments)
        validate(filled, schema)
        granted = {key: grants(store)[key] for key in parse(tool.capabilities).names()}
        return asyncio.run(run(tool.source, coerce(schema, filled), grants=granted, known=ALL_NAMES))

    return runner


def fault(report: Report) -> str:
    assert report.fault is not None
    return report.fault.message


@every_tool
def test_a_shipped_tool_is_complete_and_its_example_runs(tool: ShippedTool, call: Call) -> None:
    signature = read(tool.source)
    assert signature.title_line
    assert all("description" in prop for name, prop in signature.input_schema["properties"].items())
    assert parse(tool.capabilities).as_json() == tool.capabilities
    report = call(tool.name, **tool.example)
    assert report.ok, report.fault
    assert signature.output_schema is not None
    validate(report.result, signature.output_schema)


@every_tool
def test_the_editor_has_nothing_to_say_about_a_shipped_tool(tool: ShippedTool) -> None:
    stubs = parse(tool.capabilities).stubs()
    assert asyncio.run(check(tool.source, stubs=stubs, known=ALL_NAMES)) == []


@every_tool
def test_a_prompt_template_names_only_real_arguments(tool: ShippedTool) -> None:
    names = read(tool.source).input_schema["properties"]
    tool.prompt_template.replace("{args.", "{").format(**dict.fromkeys(names, "x"))


def test_only_what_changes_an_order_asks() -> None:
    assert {tool.name for tool in TOOLS if tool.hitl_mode == "REQUIRED"} == {"cancel_order", "refund_order"}


def test_the_tools_of_the_order_desk_seed_the_same_orders() -> None:
    blocks = {tool.source.split("# number")[1].split("def run")[0].split("def find")[0].strip() for tool in TOOLS[:4]}
    assert len(blocks) == 1


def test_the_order_desk_opens_with_five_orders(call: Call) -> None:
    assert [order["order_id"] for order in call("list_orders").result] == ["4711", "4712", "4713", "4714", "4715"]
    assert [order["order_id"] for order in call("list_orders", status="shipped").result] == ["4713"]
    assert fault(call("get_order", order_id="1")) == "ValueError: there is no order 1"


def test_a_refund_shows_in_the_order_and_leaves_less_to_refund(call: Call) -> None:
    assert call("refund_order", order_id="4711", amount="100.00", reason="broken").result["refunded"] == "100.00"
    assert call("get_order", order_id="4711").result["refund_reason"] == "broken"
    assert fault(call("refund_order", order_id="4711", amount="43.01")) == "ValueError: only 43.00 can be refunded"
    assert call("refund_order", order_id="4711", amount="43").result["refunded"] == "143.00"


@pytest.mark.parametrize(
    "amount, words", [("500.00", "only 143.00"), ("-1.00", "above zero"), ("0.001", "whole cents")]
)
def test_a_refund_is_within_what_was_paid(call: Call, amount: str, words: str) -> None:
    assert words in fault(call("refund_order", order_id="4711", amount=amount))
    assert Decimal(call("get_order", order_id="4711").result["refunded"]) == 0


@pytest.mark.parametrize("order_id, words", [("4713", "already shipped"), ("4715", "already cancelled")])
def test_what_is_shipped_or_cancelled_stays_as_it_is(call: Call, order_id: str, words: str) -> None:
    assert words in fault(call("cancel_order", order_id=order_id))


def test_a_paid_order_is_cancelled_once(call: Call) -> None:
    assert call("cancel_order", order_id="4712", reason="twice").result["status"] == "cancelled"
    assert "already cancelled" in fault(call("cancel_order", order_id="4712"))


def test_the_time_is_that_of_the_zone(call: Call) -> None:
    assert call("get_current_time", timezone="Europe/Berlin").result == {
        "timezone": "Europe/Berlin", "date": "2026-02-01", "time": "00:30:00", "weekday": "Sunday",
    }  # fmt: skip


@pytest.mark.parametrize(
    "value, start, goal, result",
    [
        (10, "km", "miles", 6.213712),
        (1, "Inches", "cm", 2.54),
        (212, "F", "celsius", 100),
        (1, "kg", "pounds", 2.204623),
    ],
)
def test_units_are_known_by_short_and_long_names(
    call: Call, value: float, start: str, goal: str, result: float
) -> None:
    assert call("convert_units", value=value, from_unit=start, to_unit=goal).result == {"value": result, "unit": goal}


@pytest.mark.parametrize("start, goal", [("km", "kg"), ("", "k"), ("parsec", "m")])
def test_units_that_do_not_fit_are_refused(call: Call, start: str, goal: str) -> None:
    assert "cannot convert" in fault(call("convert_units", value=1, from_unit=start, to_unit=goal))
