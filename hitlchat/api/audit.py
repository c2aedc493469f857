"""The record of everything that happened, for administrators."""

from collections.abc import Iterator

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from ninja import Query, Router

from hitlchat.api import audit_schemas, shapes
from hitlchat.api.auth import ApiRequest, auditor
from hitlchat.base import canonical
from hitlchat.base.download import csv_end, csv_text, download
from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.gate.transition import note
from hitlchat.record.exporting import EXPORTED
from hitlchat.record.rows import batches_of, newest_id
from hitlchat.secrets.detection import Cover

router = Router(tags=["audit"], by_alias=True)

AT_ONCE = 500
COLUMNS = list(audit_schemas.AuditEvent.model_json_schema(by_alias=True)["properties"])


@router.get("", response=list[audit_schemas.AuditEvent])
def read_audit(
    request: ApiRequest, wanted: Query[audit_schemas.AuditFilter]
) -> list[audit_schemas.AuditEvent] | StreamingHttpResponse:
    """The latest events first, `before` the last of them for more; as CSV, all of them in the order they happened, and
    a last row `end-of-export` that says how many they are.
    """
    auditor(request)
    rows = _wanted(wanted)
    if wanted.format == "csv":
        return download(request, _lines(_taken_out(request, wanted, rows)), name="audit.csv", kind="text/csv")
    found = list(rows.order_by("-id")[: wanted.limit])
    batches = batches_of(row.pk for row in found)
    return [shapes.event(row, batches.get(row.pk)) for row in found]


@router.get("/seals", response=list[audit_schemas.AuditSeal])
def read_seals(request: ApiRequest, wanted: Query[audit_schemas.SealFilter]) -> list[audit_schemas.AuditSeal]:
    """The latest seals first: note a hash elsewhere, and `manage.py audit verify --expect` proves that it is there."""
    auditor(request)
    rows = Seal.objects.select_related("drop").order_by("-number")
    rows = rows.filter(number__lt=wanted.before) if wanted.before is not None else rows
    return [shapes.seal(row) for row in rows[: wanted.limit]]


def _wanted(wanted: audit_schemas.AuditFilter) -> QuerySet[AuditEvent]:
    columns = {"name": wanted.name, "call_id": wanted.call, "at__gte": wanted.since, "id__lt": wanted.before}
    rows = AuditEvent.objects.select_related("call", "actor")
    return rows.filter(**{name: value for name, value in columns.items() if value is not None})


def _taken_out(
    request: ApiRequest, wanted: audit_schemas.AuditFilter, rows: QuerySet[AuditEvent]
) -> QuerySet[AuditEvent]:
    """Return what is there now, after putting on record that it is being exported."""
    asked = wanted.model_dump(mode="json", exclude={"limit", "format"}, exclude_none=True)
    last = newest_id()
    note(None, EXPORTED, actor=request.auth.actor, data={"format": "csv", "filters": asked})
    return rows.filter(pk__lte=last)


def _lines(rows: QuerySet[AuditEvent]) -> Iterator[str]:
    yield csv_text([COLUMNS])
    last = count = 0
    while page := list(rows.filter(pk__gt=last).order_by("id")[:AT_ONCE]):
        batches = batches_of(row.pk for row in page)
        yield csv_text([_cells(row, batches.get(row.pk)) for row in page])
        last, count = page[-1].pk, count + len(page)
    yield csv_end(count, COLUMNS)


def _cells(row: AuditEvent, batch: int | None) -> list[object]:
    given = shapes.event(row, batch).model_dump(mode="json", by_alias=True)
    # Unlike what is read here, a file goes on to others (SR-44). The keys at the top are our own.
    cover = Cover(row.data, row.call.arguments if row.call else None)
    given["data"] = canonical.dumps({key: cover.value(item) for key, item in given["data"].items()})
    return [given[column] for column in COLUMNS]
