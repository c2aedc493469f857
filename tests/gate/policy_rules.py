"""Rules that the tests of policies are made of, as they stand in the settings."""

from collections.abc import Iterator
from typing import Any

ALL = {"tools": ["*"]}
ASKS = {"policy": "always_ask", **ALL}
ALLOWS = {"policy": "never_ask", **ALL}
REFUSES = {"policy": "deny_list", **ALL, "reason": "Not here."}
NAMES = {"policy": "tool_names", "tools": ["delete_order", "refund"]}
AMOUNT = {"policy": "amount_threshold", **ALL, "argument": "amount", "limit": 10}
FROM_MCP = {"policy": "caller_kind", **ALL, "kinds": ["mcp", "api"], "verdict": "refuse"}
FINANCE = {"policy": "user_group", **ALL, "groups": ["finance"], "people": "others", "verdict": "refuse"}


def any_of(*policies: Any) -> dict[str, Any]:
    return {"policy": "any_of", "policies": [*policies]}


def all_of(*policies: Any) -> dict[str, Any]:
    return {"policy": "all_of", "policies": [*policies]}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in `value`."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places(child, (*path, key))


def parent_of(entry: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        entry = entry[key]
    return entry
