"""Values and previews of effects as facts: each under its label, with its warnings and what is folded away."""

from collections.abc import Iterable, Iterator, Sequence

from hitlchat.approvals.console.text import Fact, Line, lines_of, named, quoted, said
from hitlchat.base.visible import Piece
from hitlchat.gate.effect import Effect, Part, Row, Table

UNFOLD = "--full shows them"
# Around what differs between a preview and the one before it.
MARK = Piece("**")


def value(row: Row, label: str, *, full: bool) -> Iterator[Fact]:
    """`row` under `label`; what one should be warned of stands after it, as on the page."""
    if row.empty:
        yield said(label, "(empty text)")
    else:
        lines = lines_of(row.value)
        yield Fact(label, joined(lines, lines_of(row.rest)) if full and row.rest else lines, "value")
    yield from warned(label, row.warnings)
    if row.rest and not full:
        yield said("Hidden", f"{label}: {row.folded}; {UNFOLD}.")


def warned(label: str, warnings: Iterable[str]) -> Iterator[Fact]:
    yield from (said("Warning", f"{label}: {warning}") for warning in warnings)


def effect(shown: Effect, label: str, *, full: bool) -> Iterator[Fact]:
    if shown.error:
        yield said(label, "The preview failed:")
        yield from value(shown.error, label, full=full)
    if shown.text:
        yield from value(shown.text, label, full=full)
    if shown.parts:
        yield Fact(label, _parts(shown.parts), "value")
    if shown.table:
        yield from _table(shown.table, label, full=full)
    yield from warned(label, shown.warnings)
    yield from (said(label, note) for note in shown.notes)


def joined(lines: Sequence[Line], more: Sequence[Line]) -> tuple[Line, ...]:
    """`more`, which goes on where the last of `lines` ends."""
    return (*lines[:-1], (*lines[-1], *more[0]), *more[1:])


def _parts(parts: Iterable[Part]) -> tuple[Line, ...]:
    found: tuple[Line, ...] = ((),)
    for part in parts:
        found = joined(found, _marked(part))
    return found


def _marked(part: Part) -> tuple[Line, ...]:
    lines = lines_of(part.text)
    return joined(joined(((MARK,),), lines), ((MARK,),)) if part.changed else lines


def _table(table: Table, label: str, *, full: bool) -> Iterator[Fact]:
    """A line for each row; each cell in quotes, under the name of its column."""
    names = [named(column) for column in table.columns]
    rows = (*table.rows, *table.more_rows) if full else table.rows
    yield Fact(label, tuple(_row(names, row) for row in rows), "value")
    if table.more_rows and not full:
        yield said("Hidden", f"{label}: {len(table.more_rows):,} more rows with {table.hidden:,} characters; {UNFOLD}.")


def _row(names: Sequence[str], cells: Sequence[Part]) -> Line:
    line: Line = ()
    for number, cell in enumerate(cells):
        lead = f"{', ' if number else ''}{names[number]}: " if names else " = " if number else ""
        mark = (MARK,) if cell.changed else ()
        line = (*line, Piece(lead), *mark, *quoted(cell.text), *mark)
    return line
