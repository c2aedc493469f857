"""The record of everything that happened, for administrators."""

import csv
import io
from collections.abc import AsyncIterator, Iterator

from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from ninja import Query, Router

from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest, auditor
from hitlchat.gate import canonical
from hitlchat.gate.crossing import in_db
from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.gate.transition import note
from hitlchat.record.exporting import EXPORTED
from hitlchat.record.hiding import Cover
from hitlchat.record.membership import batches_of
from hitlchat.record.rows import newest_id

router = Router(tags=["audit"], by_alias=True)

AT_ONCE = 500
COLUMNS = list(schemas.AuditEvent.model_json_schema(by_alias=True)["properties"])


@router.get("", response=list[schemas.AuditEvent])
def read_audit(
    request: ApiRequest, wanted: Query[schemas.AuditFilter]
) -> list[schemas.AuditEvent] | StreamingHttpResponse:
    """The latest events first, `before` the last of them for more; as CSV, all of them in the order they happened."""
    auditor(request)
    rows = _wanted(wanted)
    if wanted.format == "csv":
        return _download(request, _taken_out(request, wanted, rows))
    found = list(rows.order_by("-id")[: wanted.limit])
    batches = batches_of(row.pk for row in found)
    return [shapes.event(row, batches.get(row.pk)) for row in found]


@router.get("/seals", response=list[schemas.AuditSeal])
def read_seals(request: ApiRequest, wanted: Query[schemas.SealFilter]) -> list[schemas.AuditSeal]:
    """The latest seals first: note a hash elsewhere, and `manage.py audit verify --expect` proves that it is there."""
    auditor(request)
    rows = Seal.objects.select_related("drop").order_by("-number")
    rows = rows.filter(number__lt=wanted.before) if wanted.before is not None else rows
    return [shapes.seal(row) for row in rows[: wanted.limit]]


def _wanted(wanted: schemas.AuditFilter) -> QuerySet[AuditEvent]:
    columns = {"name": wanted.name, "call_id": wanted.call, "at__gte": wanted.since, "id__lt": wanted.before}
    rows = AuditEvent.objects.select_related("call", "actor")
    return rows.filter(**{name: value for name, value in columns.items() if value is not None})


def _taken_out(request: ApiRequest, wanted: schemas.AuditFilter, rows: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
    """What is there now, after putting on record that it is being exported."""
    asked = wanted.model_dump(mode="json", exclude={"limit", "format"}, exclude_none=True)
    last = newest_id()
    note(None, EXPORTED, actor=request.auth.actor, data={"format": "csv", "filters": asked})
    return rows.filter(pk__lte=last)


def _download(request: ApiRequest, rows: QuerySet[AuditEvent]) -> StreamingHttpResponse:
    lines = _lines(rows)
    # Each kind of server streams one kind of iterator only, and would hold all of the other in memory.
    streamed = _later(lines) if isinstance(request, ASGIRequest) else lines
    headers = {"Content-Disposition": 'attachment; filename="audit.csv"'}
    return StreamingHttpResponse(streamed, content_type="text/csv; charset=utf-8", headers=headers)


def _lines(rows: QuerySet[AuditEvent]) -> Iterator[str]:
    yield _csv([COLUMNS])
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("id")[:AT_ONCE]):
        batches = batches_of(row.pk for row in page)
        yield _csv([_cells(row, batches.get(row.pk)) for row in page])
        last = page[-1].pk


async def _later(lines: Iterator[str]) -> AsyncIterator[str]:
    while (chunk := await in_db(next)(lines, None)) is not None:
        yield chunk


def _cells(row: AuditEvent, batch: int | None) -> list[str]:
    given = shapes.event(row, batch).model_dump(mode="json", by_alias=True)
    # Unlike what is read here, a file goes on to others (SR-44). The keys at the top are our own.
    cover = Cover(row.data, row.call.arguments if row.call else None)
    given["data"] = canonical.dumps({key: cover.value(item) for key, item in given["data"].items()})
    return [_cell(given[column]) for column in COLUMNS]


def _cell(value: object) -> str:
    """As text. Programs for tables take what begins like a formula for one, so that gets a quote in front."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _csv(table: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(table)
    return text.getvalue()
