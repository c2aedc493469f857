"""Values as Markdown that shows them as they are: nothing in a value becomes a link, an image or markup."""

import json
import re
from typing import Any

LONGEST_CELL = 200
LONGEST_BLOCK = 4000
MOST_ROWS, MOST_COLUMNS = 20, 8
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&!#$])|(?<=\w)(:)(?=//)|(?<=\bwww)(\.)|(@)")


def text(value: object) -> str:
    """`value` on one line, with everything escaped that Markdown would read."""
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(said.split())
    hidden = len(flat) - LONGEST_CELL
    shown = _SPECIAL.sub(lambda match: "\\" + match[0], flat[:LONGEST_CELL])
    return f"{shown} … ({hidden} more characters)" if hidden > 0 else shown


def code(name: str) -> str:
    """A name as inline code."""
    flat = " ".join(name.split())
    ticks = "`" * (_longest_run(flat) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{space}{flat}{space}{ticks}"


def fence(content: str, language: str = "") -> str:
    """`content` as a code block that it cannot end itself."""
    ticks = "`" * max(3, _longest_run(content) + 1)
    hidden = len(content) - LONGEST_BLOCK
    cut = f"\n… ({hidden} more characters)" if hidden > 0 else ""
    return f"{ticks}{language}\n{content[:LONGEST_BLOCK]}{cut}\n{ticks}"


def block(value: Any) -> str:
    """A JSON value in the plainest form that shows all of it: a line, a list, a table, or a code block."""
    if (
        isinstance(value, dict)
        and value
        and all(_is_plain(each) for each in value.values())
        and len(value) <= MOST_ROWS
    ):
        return "\n".join(f"- {code(str(key))}: {text(each)}" for key, each in value.items())
    if isinstance(value, list) and 0 < len(value) <= MOST_ROWS:
        if all(_is_plain(each) for each in value):
            return "\n".join(f"- {text(each)}" for each in value)
        if _is_table(value):
            return _table(value)
    if isinstance(value, str):
        return text(value) if "\n" not in value.strip() and len(value) <= LONGEST_CELL else fence(value)
    return text(value) if _is_plain(value) else fence(json.dumps(value, indent=2, ensure_ascii=False), "json")


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_CELL
    return value is None or isinstance(value, bool | int | float) or value in ([], {})


def _is_table(rows: list[Any]) -> bool:
    if not all(isinstance(row, dict) and row and row.keys() == rows[0].keys() for row in rows):
        return False
    return len(rows[0]) <= MOST_COLUMNS and all(_is_plain(cell) for row in rows for cell in row.values())


def _table(rows: list[dict[str, Any]]) -> str:
    lines = [
        [text(key) for key in rows[0]],
        ["---"] * len(rows[0]),
        *([text(cell) for cell in row.values()] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _longest_run(content: str) -> int:
    return max(map(len, re.findall(r"`+", content)), default=0)
