"""Giving calls away as a file: all that a filter finds, in pieces, and on record before the first byte leaves."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, Literal

from django.db.models import Q
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.base.download import END, csv_end, csv_text
from hitlchat.gate.actor import Actor
from hitlchat.gate.history import finding
from hitlchat.gate.history.finding import Wanted
from hitlchat.gate.history.row import COLUMNS, needed, row
from hitlchat.gate.models import ToolCall
from hitlchat.gate.transition import note

EXPORTED: Final = "history.exported"
Format = Literal["csv", "jsonl"]
FORMATS: Final[dict[Format, str]] = {"csv": "text/csv", "jsonl": "application/x-ndjson"}
# Their results may be large, and are all in memory at a time.
AT_ONCE: Final = 200


def export(among: tuple[Q, ...], wanted: Wanted, form: Format, actor: Actor) -> Iterator[str]:
    """The pieces of the file. What is raised here, before there are any, means that nothing was given away.

    The record has how many calls there were; the last line, how many are in the file. Calls that come in meanwhile are
    not in it; of those that are, some may have gone on to another outcome.
    """
    now = timezone.now()
    wanted = replace(wanted, until=min(wanted.until or now, now))
    rows = finding.count(among, wanted)
    note(None, EXPORTED, actor=actor, data={"filter": wanted.as_json, "format": form, "rows": rows})
    return _PIECES[form](_pages(among, wanted))


def _pages(among: tuple[Q, ...], wanted: Wanted) -> Iterator[list[dict[str, Any]]]:
    """The newest first."""
    last: ToolCall | None = None
    while found := finding.page(among, wanted, AT_ONCE, before=last, rows=needed(ToolCall.objects.all())):
        yield [row(call) for call in found]
        last = found[-1]


def _csv(pages: Iterable[list[dict[str, Any]]]) -> Iterator[str]:
    yield csv_text([COLUMNS])
    count = 0
    for page in pages:
        count += len(page)
        yield csv_text([_cell(each[name]) for name in COLUMNS] for each in page)
    yield csv_end(count, COLUMNS)


def _cell(value: Any) -> Any:
    """Whatever is no single value, as its JSON; yes and no as JSON has them."""
    return canonical.dumps(value) if isinstance(value, dict | list | bool) else value


def _lines(pages: Iterable[list[dict[str, Any]]]) -> Iterator[str]:
    count = 0
    for page in pages:
        count += len(page)
        yield "".join(f"{canonical.dumps(each)}\n" for each in page)
    yield f"{canonical.dumps({'id': END, 'rows': count})}\n"


_PIECES: Final[dict[Format, Callable[[Iterable[list[dict[str, Any]]]], Iterator[str]]]] = {
    "csv": _csv,
    "jsonl": _lines,
}
