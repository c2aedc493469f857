"""Sources of tools, as far as the gate knows: something that can execute a call it has cleared.

It may be able to say beforehand what the call would do: its preview, which is asked of the tool's own code before a
person is, bounded in time and size.
"""

import asyncio
import copy
import logging
from collections.abc import Collection, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.base.sentences import said_elsewhere, translatable
from hitlchat.gate import schema
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import Tool, ToolCall

PREVIEW_SECONDS = 5.0
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

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ToolResult:
    """The result of a call. `error` is None on success, else {kind, message, line?}; `output` is what the tool printed;
    `attachments` are the bytes of content blocks by their SHA-256 (contents.py).
    """

    value: Any = None
    output: str = ""
    error: dict[str, Any] | None = field(default=None)
    attachments: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def failure(cls, kind: str, message: str, line: int | None = None, output: str = "") -> "ToolResult":
        return cls(output=output, error={"kind": kind, "message": message, "line": line})


@dataclass(frozen=True)
class Preview:
    """A preview of a call, as the tool's own code says: a text or a table; or why that code failed.

    `table` is {"columns": [str], "rows": [[str]]}; with no columns, each row's first cell names the row. How much of it
    is shown is the gate's business (`preview_of`), so nothing has to be cut before.
    """

    text: str | None = None
    table: dict[str, Any] | None = None
    error: str | None = None

    @classmethod
    def of(cls, value: Any) -> "Preview":
        """Return what preview code made: a text, an object (a row for each key), or a list of objects with the same
        keys (a column for each). Anything else is a failed preview that says so.
        """
        if isinstance(value, str):
            return cls(text=value)
        if isinstance(value, dict) and value:
            return cls._table([], [[name, cell] for name, cell in value.items()])
        if isinstance(value, list) and value and all(isinstance(row, dict) and row for row in value):
            if any(list(row) != list(value[0]) for row in value):
                return cls(error="It gave a list whose rows do not all have the same keys, in the same order.")
            return cls._table([*value[0]], [[*row.values()] for row in value])
        return cls(error="It gave neither a text nor a table (an object, or a list of objects with the same keys).")

    @classmethod
    def _table(cls, columns: list[Any], rows: list[list[Any]]) -> "Preview":
        try:
            return cls(table={"columns": [*map(_cell, columns)], "rows": [[*map(_cell, row)] for row in rows]})
        except (canonical.NotJson, TypeError, ValueError, RecursionError):
            return cls(error="It gave a table with a value that is not JSON.")


class OutcomeUnknown(Exception):
    """The tool may have run, and nobody is left who could say. The message says why, for a person."""


class Source(Protocol):
    async def execute(self, call: ToolCall) -> ToolResult:
        """Run the tool of `call` with its arguments, once. Only perform.py calls this, after the gate said yes.

        OutcomeUnknown: it was entered, and what became of it will never be told. A source that hears when a call is to
        stop (stopping.py) says so by an attribute `can_stop`, one whose results may be content blocks (contents.py) by
        `gives_blocks`.
        """


@runtime_checkable
class PreviewingSource(Protocol):
    """A source may offer this too. It runs before anyone is asked, so it must change nothing."""

    async def preview(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> Preview | None:
        """Return what a call of `tool` would do; None if that tool has no preview. Only `preview_of` calls this."""


@runtime_checkable
class ConfigurableSource(Protocol):
    """A source may offer this too: people set the settings of its tools, which are not in code that it serves."""

    def hold(self, tools: Collection[UUID]) -> None:
        """Lock, within the caller's transaction, what a change of these tools locks before the rows of tools."""

    def configure(self, tool: UUID, settings: Mapping[str, Any], actor: Actor) -> None:
        """Set these settings as the source's own pages do; a person confirmed what they loosen. Raises: Invalid"""


@runtime_checkable
class JudgingSource(Protocol):
    """A source may offer this too. It runs before anyone is asked, so it must change nothing."""

    async def holds(self, tool: Tool, arguments: dict[str, Any], caller: Caller) -> bool | None:
        """Return whether the condition of `tool` holds, if that is code of the source's; else None. Whatever it raises
        has a person asked. Only `condition_of` calls this.
        """


@runtime_checkable
class SelectiveSource(Protocol):
    """A source may offer this too, if it cannot take all arguments that fit the schema of a tool."""

    def unfit(self, tool: Tool, arguments: dict[str, Any]) -> schema.BadArguments | None:
        """Return why no call of `tool` can run with these; None if one can. It must change nothing."""


@runtime_checkable
class ComingAndGoingSource(Protocol):
    """A source may offer this too, if it publishes its tools by itself, and takes them out of the catalog again."""

    def why_gone(self, tool: UUID) -> str:
        """Return why the tool is out of the catalog, as the end of a sentence about a call; empty: a person's wish."""


@runtime_checkable
class OutsideSource(Protocol):
    """A source may offer this too, if results of its tools can be text of strangers: pages, mail, other servers."""

    def outside(self, tools: set[UUID]) -> set[UUID]:
        """Return those of `tools` that give such text."""


@runtime_checkable
class DelegatingSource(Protocol):
    """A source offers this instead of `execute`, if a call is work of its own that waits for people, as an agent's.

    Such a call is executing for as long as that work goes on, whatever becomes of the process: no process holds it. It
    ends in the transaction that ends the work (`perform.conclude`).
    """

    def delegate(self, call: ToolCall) -> None:
        """Begin the work, within the transaction that starts `call`. Only perform.py calls this, once for each call.

        CannotBegin: the call is withdrawn, with this reason.
        """

    def recall(self, call: ToolCall, actor: Actor) -> None:
        """End the work and all below it at the wish of `actor`, within the transaction that records the wish."""


class CannotBegin(Exception):
    """The work was not begun; the message says why, as the end of a sentence about the call."""


class Place(Protocol):
    """The right to run one call."""

    def used(self) -> AbstractContextManager[None]:
        """Run the call, and its preview, inside of this."""

    def leave(self) -> None:
        """Give it back; once is enough."""


class _Anywhere:
    def used(self) -> AbstractContextManager[None]:
        return nullcontext()

    def leave(self) -> None:
        return


ANYWHERE: Final[Place] = _Anywhere()


@runtime_checkable
class PlacingSource(Protocol):
    """A source may offer this too, if it can run only a few calls at a time."""

    def place_now(self, call: ToolCall) -> Place | None:
        """A place for `call`, if one is free; thread-safe, and at once."""

    async def next_place(self, call: ToolCall, seconds: float, since: float) -> Place | None:
        """The next one, if one becomes free in time. It waits since the moment `since` of the monotonic clock."""


class DefiningSource(Protocol):
    """A source may offer this too, if it keeps what its tools do: for whoever verifies the record."""

    def altered(self) -> Iterator[str]:
        """A sentence for each tool that is kept otherwise than the hash of its definition says."""


async def accepted(tool: Tool, given: str | dict[str, Any]) -> dict[str, Any]:
    """Return what a call of `tool` will run with: `given`, checked and with the defaults, before anyone is asked.

    Raises: BadArguments
    """
    arguments = await schema.accepted(tool.input_schema, given)
    if _selective(tool) is not None:
        await in_db(check)(tool, arguments)
    return arguments


def check(tool: Tool, arguments: dict[str, Any]) -> None:
    """Check that the source of `tool` can take `arguments`, which fit its schema.

    Raises: BadArguments
    """
    selective = _selective(tool)
    if selective is None:
        return
    try:
        unfit = selective.unfit(tool, arguments)
    except Exception:
        logger.exception("The arguments of a call to %s could not be checked", tool.name)
        unfit = schema.BadArguments("The arguments could not be checked. See the server's log for the reason.")
    if unfit is not None:
        raise unfit


@cache
def source(key: str) -> Source:
    """The source registered under `key` in TOOL_SOURCES; KeyError when there is none."""
    made: Source = import_string(settings.TOOL_SOURCES[key])()
    return made


def delegating(key: str) -> DelegatingSource | None:
    """Return the source registered under `key`, if it is one whose calls are work of their own."""
    made: object = source(key) if is_registered(key) else None
    return made if isinstance(made, DelegatingSource) else None


def configurable(key: str) -> ConfigurableSource | None:
    """Return the source if people set the settings of its tools."""
    made: object = source(key) if is_registered(key) else None
    return made if isinstance(made, ConfigurableSource) else None


def is_registered(key: str) -> bool:
    return key in settings.TOOL_SOURCES


def outside(tools: set[tuple[str, UUID | None]]) -> set[tuple[str, UUID | None]]:
    """Return those of `tools`, each with its source, whose results may be text of strangers; of a tool or source that
    is gone nobody can tell.
    """
    found = {(key, tool) for key, tool in tools if tool is None or not is_registered(key)}
    for key in {key for key, _ in tools - found}:
        made: object = source(key)
        if isinstance(made, OutsideSource):
            found |= {(key, tool) for tool in made.outside({tool for each, tool in tools if tool and each == key})}
    return found


def why_unpublished(tool: Tool) -> str:
    """Return why a tool is not published, if its source took it out of the catalog by itself; else empty."""
    made: object = source(tool.source) if is_registered(tool.source) else None
    return made.why_gone(tool.pk) if isinstance(made, ComingAndGoingSource) else ""


def hears_of_stopping(key: str) -> bool:
    """Return whether the source registered under `key` can stop a call that it executes."""
    return is_registered(key) and bool(getattr(source(key), "can_stop", False))


def altered() -> Iterator[str]:
    """Yield what each source that has tools and can tell says of them. One that cannot is not even made."""
    used = set(Tool.objects.values_list("source", flat=True).distinct())
    for key in used & settings.TOOL_SOURCES.keys():
        path = settings.TOOL_SOURCES[key]
        with suppress(ImportError):
            # Of what is not installed no tool runs either.
            if hasattr(import_string(path), "altered"):
                yield from cast("DefiningSource", source(key)).altered()


class TooLong(Exception):
    """The answer was not there in time."""


async def condition_of(tool: Tool, arguments: dict[str, Any], caller: Caller) -> bool | None:
    """Return whether the condition of a tool holds, if that is code of its source's; None if it is a text."""
    offering: object = source(tool.source) if is_registered(tool.source) else None
    if not isinstance(offering, JudgingSource):
        return None
    return await _in_time(offering.holds(tool, copy.deepcopy(arguments), caller))


async def preview_of(tool: Tool, arguments: dict[str, Any], caller: Caller) -> Shown | None:
    """The preview of a call, or None if the tool has none. Never raises: whatever goes wrong is a failed preview."""
    try:
        offering = source(tool.source)
        if not isinstance(offering, PreviewingSource):
            return None
        # A copy: what is asked about must not be changed by what looks at it.
        made = await _in_time(offering.preview(tool, copy.deepcopy(arguments), caller))
        return None if made is None else frozen_preview(made)
    except TooLong:
        seconds = PREVIEW_SECONDS
        logger.warning("The preview of tool %s took longer than %g seconds", tool.name, seconds)
        return failed_preview(translatable(f"The preview took longer than {seconds:g} seconds."))
    except Exception:
        logger.exception("The preview of tool %s failed outside the tool itself", tool.name)
        return failed_preview("An error in hitlchat, not in the tool, kept it from being made.")


def failed_preview(error: str) -> Shown:
    return frozen_preview(Preview(error=error))


def frozen_preview(preview: Preview) -> Shown:
    """`preview` within the limits, and what had to be left out for that; a failed one if it is none at all."""
    if not isinstance(preview, Preview) or not _is_sound_preview(preview):
        return failed_preview("What came back is neither a text nor a table.")
    cut: list[str] = []
    if preview.error is not None:
        text, table, error = None, None, _cut_text(preview.error, LONGEST_ERROR, "the message", cut)
    else:
        text = preview.text and _cut_text(preview.text, LONGEST_TEXT, "the text", cut)
        table, error = preview.table and _cut_table(preview.table, cut), None
    shown: Shown = {"text": text, "table": table, "error": error, "cut": cut}
    return {**shown, "whole": canonical.sha256([preview.text, preview.table, preview.error])} if cut else shown


def _cell(value: Any) -> str:
    if value is None:
        return ""
    canonical.dumps(value)
    return value if isinstance(value, str) else canonical.pretty(value)


def _selective(tool: Tool) -> SelectiveSource | None:
    """Return the source, if it offers that; one that cannot be had fails when it is entered."""
    try:
        made: object = source(tool.source) if is_registered(tool.source) else None
    except Exception:
        logger.exception("The source of tool %s is missing", tool.name)
        return None
    return made if isinstance(made, SelectiveSource) else None


async def _in_time(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    try:
        # Not asyncio.timeout: that waits for the end of what was cancelled, and so for what doesn't end.
        done, _ = await asyncio.wait([task], timeout=PREVIEW_SECONDS)
    finally:
        task.cancel()
    if not done:
        raise TooLong
    if task.cancelled():
        raise RuntimeError("the work was cancelled")
    return task.result()


def _is_sound_preview(preview: Preview) -> bool:
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


def _cut_text(text: str, longest: int, what: str, cut: list[str]) -> str:
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
    lines = [table["columns"], *table["rows"][: len(rows)]]
    cells = [cell for line in lines for cell in line[:MOST_COLUMNS] if len(cell) > LONGEST_CELL]
    characters = sum(len(cell) - LONGEST_CELL for cell in cells)
    more_columns = max(map(len, lines), default=0) - MOST_COLUMNS
    more_rows = len(table["rows"]) - len(rows)
    found = (more_rows, "row", ""), (more_columns, "column", ""), (characters, "character", " of long values")
    cut.extend(_left_out(number, word, of) for number, word, of in found if number > 0)
    return {"columns": columns, "rows": rows}


def _left_out(number: int, word: str, of: str = "") -> str:
    return f"{number:,} more {word}{of} is left out." if number == 1 else f"{number:,} more {word}s{of} are left out."
