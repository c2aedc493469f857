"""The preview of a call as its card shows it: a text or a table, folded when it is long."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hitlchat.gate.boxes import Row, box
from hitlchat.gate.visible import Seen, see

ROWS_SHOWN = 8


@dataclass(frozen=True)
class Part:
    """A stretch of text or a table's cell; `changed` if it differs between before and now."""

    text: Seen
    changed: bool = False


Line = tuple[Part, ...]


@dataclass(frozen=True)
class Table:
    """With no `columns`, each row's first cell is its name."""

    columns: tuple[Seen, ...]
    rows: tuple[Line, ...]
    more_rows: tuple[Line, ...] = ()

    @property
    def hidden(self) -> int:
        return sum(len(cell.text.plain) for row in self.more_rows for cell in row)

    @property
    def warnings(self) -> tuple[str, ...]:
        cells = (cell.text for row in (*self.rows, *self.more_rows) for cell in row)
        return tuple(dict.fromkeys(warning for seen in (*self.columns, *cells) for warning in seen.warnings))


@dataclass(frozen=True)
class Effect:
    """A text in a box, or in `parts` as far as it differs; or a table, with a text as its heading; or what went wrong.
    The `notes` are hitlchat's own words."""

    text: Row | None = None
    parts: tuple[Part, ...] = ()
    table: Table | None = None
    error: Row | None = None
    notes: tuple[str, ...] = ()

    @property
    def hidden(self) -> int:
        return sum(part.hidden for part in (self.text, self.table, self.error) if part)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Of parts and table; a box has its own."""
        found = [warning for part in self.parts for warning in part.text.warnings]
        return tuple(dict.fromkeys([*found, *(self.table.warnings if self.table else ())]))


def effect(shown: dict[str, Any]) -> Effect:
    """A stored preview. KeyError when it lacks a part."""
    cut = tuple(shown["cut"])
    if shown["error"] is not None:
        return Effect(error=box(shown["error"]), notes=cut)
    if shown["table"] is not None:
        return Effect(text=box(shown["text"]) if shown["text"] else None, table=_table(shown["table"]), notes=cut)
    return Effect(text=box(shown["text"]), notes=cut)


def folded(columns: Sequence[str], rows: Sequence[Line]) -> Table:
    at = len(rows) if is_short(rows) else ROWS_SHOWN
    return Table(tuple(map(see, columns)), tuple(rows[:at]), tuple(rows[at:]))


def is_short(rows: Sequence[object]) -> bool:
    # One or two more are not worth a fold.
    return len(rows) <= ROWS_SHOWN + 2


def _table(table: dict[str, Any]) -> Table:
    return folded(table["columns"], [tuple(Part(see(cell)) for cell in row) for row in table["rows"]])
