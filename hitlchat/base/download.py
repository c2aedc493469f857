"""Files that are made while they are sent: in pieces, so that their size costs no memory."""

import csv
import io
from collections.abc import Collection, Generator, Iterable, Iterator
from typing import Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.base.visible import escaped

FORMULAS: Final = frozenset("=+-@＝＋－＠")  # noqa: RUF001
# The last line of a whole file begins with it; no id does.
END: Final = "end-of-export"


def download(request: HttpRequest, pieces: Iterator[str], *, name: str, kind: str) -> StreamingHttpResponse:
    """`pieces`, each made in the thread of the database when it is its turn, as a file of this media type."""
    # Each kind of server streams one kind of iterator only, and would hold all of the other in memory.
    streamed = _Pieces(pieces) if isinstance(request, ASGIRequest) else map(canonical.whole, pieces)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(streamed, content_type=f"{kind}; charset=utf-8", headers=headers)


def stored(data: bytes, *, name: str, media_type: str, is_shown: bool) -> HttpResponse:
    """Return bytes that somebody else made: shown as their media type, or else to be saved, and never as a page."""
    response = HttpResponse(data, content_type=media_type if is_shown else "application/octet-stream")
    response.headers["Content-Disposition"] = str(content_disposition_header(not is_shown, escaped(name)))
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def csv_text(table: Iterable[Iterable[object]]) -> str:
    """Return a row as RFC 4180 has it."""
    text = io.StringIO()
    csv.writer(text).writerows([cell(each) for each in row] for row in table)
    return text.getvalue()


def csv_end(count: int, columns: Collection[str]) -> str:
    """The last row of a table with so many rows: without it the file was cut short."""
    return csv_text([[END, count, *[""] * (len(columns) - 2)]])


def cell(value: object) -> str:
    """Return a cell as text, with a quote before a text that programs for tables would take for a formula, also behind
    blanks.
    """
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) or text.lstrip()[:1] in FORMULAS else text


class _Pieces:
    """Yields the pieces of a generator, each made in the thread of the database, as UTF-8 can write it."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> "_Pieces":
        return self

    async def __anext__(self) -> str:
        if (piece := await in_db(next)(self._pieces, None)) is None:
            raise StopAsyncIteration
        return str(canonical.whole(piece))

    def close(self) -> None:
        """End a generator that nobody reads to its end: Django calls it in the same thread."""
        if isinstance(self._pieces, Generator):
            self._pieces.close()
