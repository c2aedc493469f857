"""The preview: what a call would do, asked of the tool's own code before a person is, bounded in time and size."""

import asyncio
import copy
import logging
from collections.abc import Coroutine
from typing import Any, Final

from hitlchat.base import canonical
from hitlchat.base.sentences import said_elsewhere, translatable
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import Tool
from hitlchat.gate.sources import Preview, PreviewingSource, source

logger = logging.getLogger(__name__)

SECONDS = 5.0
LONGEST_TEXT = 8000
LONGEST_ERROR = 500
LONGEST_CELL = 500
MOST_COLUMNS = 12
MOST_ROWS = 50
# Of all cells together: otherwise a table could be forty times as long as a text.
LONGEST_TABLE = 20_000

# A preview as it is kept in the disclosure: {text, table, error, cut}, where `cut` says in sentences what is left out;
# then `whole` is the SHA-256 of all of it, so that a change of what is left out is a change too.
Shown = dict[str, Any]

# What `_left_out` says.
LEFT_OUT: Final = said_elsewhere(
    "1 more row is left out.",
    "{count} more rows are left out.",
    "1 more column is left out.",
    "{count} more columns are left out.",
    "1 more character of the text is left out.",
    "{count} more characters of the text are left out.",
    "1 more character of the message is left out.",
    "{count} more characters of the message are left out.",
    "1 more character of long values is left out.",
    "{count} more characters of long values are left out.",
)


class TooLong(Exception):
    """The preview was not there in time."""


async def make(tool: Tool, arguments: dict[str, Any], caller: Caller) -> Shown | None:
    """The preview of a call, or None if the tool has none. Never raises: whatever goes wrong is a failed preview."""
    try:
        offering = source(tool.source)
        if not isinstance(offering, PreviewingSource):
            return None
        # A copy: what is asked about must not be changed by what looks at it.
        made = await _in_time(offering.preview(tool, copy.deepcopy(arguments), caller))
        return None if made is None else frozen(made)
    except TooLong:
        logger.warning("The preview of tool %s took longer than %g seconds", tool.name, SECONDS)
        return failed(translatable(f"The preview took longer than {SECONDS:g} seconds."))
    except Exception:
        logger.exception("The preview of tool %s failed outside the tool itself", tool.name)
        return failed("An error in hitlchat, not in the tool, kept it from being made.")


def failed(error: str) -> Shown:
    return frozen(Preview(error=error))


def frozen(preview: Preview) -> Shown:
    """`preview` within the limits, and what had to be left out for that; a failed one if it is none at all."""
    if not isinstance(preview, Preview) or not _is_sound(preview):
        return failed("What came back is neither a text nor a table.")
    cut: list[str] = []
    if preview.error is not None:
        text, table, error = None, None, _cut(preview.error, LONGEST_ERROR, "the message", cut)
    else:
        text = preview.text and _cut(preview.text, LONGEST_TEXT, "the text", cut)
        table, error = preview.table and _cut_table(preview.table, cut), None
    shown: Shown = {"text": text, "table": table, "error": error, "cut": cut}
    return {**shown, "whole": canonical.sha256([preview.text, preview.table, preview.error])} if cut else shown


async def _in_time(work: Coroutine[Any, Any, Preview | None]) -> Preview | None:
    task = asyncio.ensure_future(work)
    try:
        # Not asyncio.timeout: that waits for the end of what was cancelled, and so for what doesn't end.
        done, _ = await asyncio.wait([task], timeout=SECONDS)
    finally:
        task.cancel()
    if not done:
        raise TooLong
    if task.cancelled():
        raise RuntimeError("the preview gave itself up")
    return task.result()


def _is_sound(preview: Preview) -> bool:
    if preview.error is not None:
        return isinstance(preview.error, str)
    if preview.table is None:
        return isinstance(preview.text, str)
    return (preview.text is None or isinstance(preview.text, str)) and _is_table(preview.table)


def _is_table(table: Any) -> bool:
    if not isinstance(table, dict) or set(table) != {"columns", "rows"} or not isinstance(table["rows"], list):
        return False
    lines = [table["columns"], *table["rows"]]
    if not all(isinstance(line, list) and all(isinstance(cell, str) for cell in line) for line in lines):
        return False
    widths = {len(row) for row in table["rows"]} | ({len(table["columns"])} if table["columns"] else set())
    return len(widths) == 1 and widths != {0}


def _cut(text: str, longest: int, what: str, cut: list[str]) -> str:
    if len(text) > longest:
        cut.append(_left_out(len(text) - longest, "character", f" of {what}"))
    return text[:longest]


def _cut_table(table: dict[str, Any], cut: list[str]) -> dict[str, Any]:
    """Fewer rows, fewer columns, shorter cells, in this order."""
    rows: list[list[str]] = []
    room = LONGEST_TABLE
    for row in table["rows"][:MOST_ROWS]:
        shorter = [cell[:LONGEST_CELL] for cell in row[:MOST_COLUMNS]]
        room -= sum(map(len, shorter))
        if room < 0:
            break
        rows.append(shorter)
    columns = [column[:LONGEST_CELL] for column in table["columns"][:MOST_COLUMNS]]
    cut.extend(_cuts(table, rows))
    return {"columns": columns, "rows": rows}


def _cuts(table: dict[str, Any], rows: list[list[str]]) -> list[str]:
    kept = [table["columns"], *table["rows"][: len(rows)]]
    cells = [cell for line in kept for cell in line[:MOST_COLUMNS] if len(cell) > LONGEST_CELL]
    characters = sum(len(cell) - LONGEST_CELL for cell in cells)
    more_columns = max(map(len, kept), default=0) - MOST_COLUMNS
    more_rows = len(table["rows"]) - len(rows)
    found = (more_rows, "row", ""), (more_columns, "column", ""), (characters, "character", " of long values")
    return [_left_out(number, word, of) for number, word, of in found if number > 0]


def _left_out(number: int, word: str, of: str = "") -> str:
    return f"{number:,} more {word}{of} is left out." if number == 1 else f"{number:,} more {word}s{of} are left out."
