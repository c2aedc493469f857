"""Tools to offer to the demo model, and a way to read its answers."""

import json
from typing import Any

from hitlchat.agent.demo_model import answer
from tools_studio.language.signature import read
from tools_studio.library.catalogue import TOOLS

TEXT = {"type": "string"}
INTEGER = {"type": "integer"}
DATE = {"type": "string", "format": "date"}
NUMBER = {"type": "number"}


def tool(
    name: str, description: str, required: dict[str, Any], optional: dict[str, Any] | None = None
) -> dict[str, Any]:
    schema = {"type": "object", "properties": required | (optional or {}), "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def shipped() -> list[dict[str, Any]]:
    signatures = {each.name: read(each.source) for each in TOOLS}
    return [
        {
            "type": "function",
            "function": {"name": name, "description": found.description, "parameters": found.input_schema},
        }
        for name, found in signatures.items()
    ]


SHIPPED = shipped()
FIRST = ("list_orders", "get_order", "cancel_order", "refund_order", "get_current_time", "convert_units")
MANY = [
    *(each for each in SHIPPED if each["function"]["name"] in FIRST),
    tool("send_email", "Send an email", {"to": {"type": "string", "format": "email"}, "subject": TEXT, "body": TEXT}),
    tool("weather__getForecast", "Forecast of the weather for a city", {"city": TEXT},
         {"days": INTEGER, "units": {"type": "string", "enum": ["metric", "imperial"]}}),
    tool("web_search", "Search the web", {"query": TEXT}, {"limit": INTEGER}),
    tool("add_numbers", "Add numbers", {"numbers": {"type": "array", "items": NUMBER}}),
    tool("echo", "Echo a message", {"message": TEXT}),
    tool("delete-file", "Delete a file", {"path": TEXT}, {"force": {"type": "boolean"}}),
    tool("create_issue", "Open an issue in a repository", {"repo": TEXT, "title": TEXT},
         {"labels": {"type": "array", "items": TEXT}}),
    tool("book_flight", "Book a flight",
         {"from_city": TEXT, "to_city": TEXT, "date": {"anyOf": [DATE, {"type": "null"}]}}),
    tool("set_price", "Change the price of a product", {"sku": TEXT, "price": NUMBER},
         {"currency": {"enum": ["EUR", "USD"]}}),
    tool("fetch_url", "Fetch a page", {"url": TEXT}),
    tool("exchange_currency", "Exchange money", {"amount": NUMBER, "from_currency": TEXT, "to_currency": TEXT}),
    tool("roll_dice", "Roll dice", {"count": INTEGER}, {"sides": INTEGER}),
    tool("close_account", "Close an account for good", {"account_id": INTEGER, "meta": {"type": "object"}}),
]  # fmt: skip

Calls = list[tuple[str, dict[str, Any]]]


def say(text: str, tools: list[dict[str, Any]], history: tuple[dict[str, Any], ...] = ()) -> tuple[str, Calls]:
    """The text and the calls of the answer to `text`."""
    return reply_to({"messages": [*history, {"role": "user", "content": text}], "tools": tools})


def reply_to(request: dict[str, Any]) -> tuple[str, Calls]:
    """The answer put together from its chunks."""
    text = ""
    found: dict[int, list[str]] = {}
    for chunk in answer(request):
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls", []):
                call = found.setdefault(part["index"], ["", ""])
                call[0] += part["function"].get("name", "")
                call[1] += part["function"]["arguments"]
    return text, [(name, json.loads(arguments)) for name, arguments in found.values()]
