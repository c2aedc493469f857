import re
from typing import Any

STEP = r"\.?([A-Za-z_][\w-]*)|\[(-?[0-9]+)\]|\[\"([^\"]*)\"\]|(?:\.|\[)(\*)\]?|(\.\.)([A-Za-z_][\w-]*)"


def steps(path: str) -> list[list[str]]:
    """The steps of a path: each a kind (name, index, all, anywhere) and its value."""
    found: list[list[str]] = []
    rest = path.strip().removeprefix("$")
    while rest:
        match = re.match(STEP, rest)
        if match is None:
            raise ValueError(f"cannot read the path from {rest[:40]!r} on; expected something like orders[0].customer")
        name, index, quoted, every, anywhere, wanted = match.groups()
        if anywhere:
            found.append(["anywhere", wanted])
        elif every:
            found.append(["all", ""])
        else:
            found.append(["index", index] if index else ["name", name or quoted or ""])
        rest = rest[match.end() :]
    return found


def inside(value: Any, name: str) -> list[Any]:
    """Every value called `name`, however deep it is."""
    if isinstance(value, dict):
        own = [value[name]] if name in value else []
        return own + [found for item in value.values() for found in inside(item, name)]
    if isinstance(value, list):
        return [found for item in value for found in inside(item, name)]
    return []


def step(value: Any, kind: str, what: str) -> list[Any]:
    if kind == "anywhere":
        return inside(value, what)
    if kind == "all":
        return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if kind == "name":
        return [value[what]] if isinstance(value, dict) and what in value else []
    place = int(what)
    return [value[place]] if isinstance(value, list) and -len(value) <= place < len(value) else []


def run(data: dict[str, Any] | list[Any], path: str) -> dict[str, Any]:
    """Take values out of JSON by a path such as orders[0].customer, orders[*].total or ..email.

    Args:
        data: the JSON to look into
        path: names after dots, [0] or [-1] for a place in a list, [*] for all, ..name for that name anywhere
    """
    values: list[Any] = [data]
    for kind, what in steps(path):
        values = [found for value in values for found in step(value, kind, what)]
    return {"count": len(values), "values": values}
