"""Results that are tables: a list of objects with the same fields, one object with short values, or both in one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hitlchat.base import canonical

MOST_ROWS: Final = 50
MOST_COLUMNS: Final = 12
MOST_FIELDS: Final = 30
LONGEST_CELL: Final = 300
MOST_INNER: Final = 3


@dataclass(frozen=True)
class Grid:
    """Text by rows. Without `columns` the first cell of each row is its name; `more` rows are in the raw result.
    `name`: the field whose list it is. `inner`: tables of lists in fields, which stand below.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: int = 0
    name: str = ""
    inner: Sequence["Grid"] = ()


def grid(value: Any) -> Grid | None:
    """Return the table that `value` is, or None: then it is text or JSON to read as it stands."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(found := next(iter(value.values())), list):
        value = found
    if isinstance(value, list):
        return _of_objects(value)
    return _of_fields(value) if isinstance(value, dict) else None


def _of_objects(value: list[Any]) -> Grid | None:
    if not value or not all(isinstance(each, dict) and each for each in value):
        return None
    columns = [*dict.fromkeys(name for each in value for name in each)]
    shown = [[_cell(each[name]) if name in each else "" for name in columns] for each in value[:MOST_ROWS]]
    rows = [[cell for cell in row if cell is not None] for row in shown]
    if len(columns) > MOST_COLUMNS or any(len(row) < len(columns) for row in rows):
        return None
    return Grid(columns, rows, more=len(value) - len(rows))


def _of_fields(value: dict[str, Any]) -> Grid | None:
    if not 1 < len(value) <= MOST_FIELDS:
        return None
    lists = {name: _of_objects(each) for name, each in value.items() if isinstance(each, list)}
    inner = tuple(replace(found, name=name) for name, found in lists.items() if found)
    rows = [[name, cell] for name, each in value.items() if (cell := _cell(each)) is not None]
    is_whole = len(rows) + len(inner) == len(value) and len(inner) <= MOST_INNER
    return Grid((), rows, inner=inner) if is_whole else None


def _cell(value: Any) -> str | None:
    """Return a short value as text; None for one that no cell can show whole."""
    text = value if isinstance(value, str) else "" if value is None else canonical.pretty(value)
    return None if isinstance(value, dict | list) or len(text) > LONGEST_CELL else text
