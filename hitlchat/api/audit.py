"""The record of everything that happened, for administrators."""

from collections.abc import Iterator

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from ninja import Query, Router

from hitlchat.api import schemas, shapes
from hitlchat.api.auth import ApiRequest, auditor
from hitlchat.gate import canonical
from hitlchat.gate.download import csv_text, download
from hitlchat.gate.models import AuditEvent

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
        return download(request, _lines(rows), name="audit.csv", kind="text/csv")
    return [shapes.event(row) for row in rows.order_by("-id")[: wanted.limit]]


def _wanted(wanted: schemas.AuditFilter) -> QuerySet[AuditEvent]:
    columns = {"name": wanted.name, "call_id": wanted.call, "at__gte": wanted.since, "id__lt": wanted.before}
    rows = AuditEvent.objects.select_related("call", "actor")
    return rows.filter(**{name: value for name, value in columns.items() if value is not None})


def _lines(rows: QuerySet[AuditEvent]) -> Iterator[str]:
    yield csv_text([COLUMNS])
    last = 0
    while page := list(rows.filter(pk__gt=last).order_by("id")[:AT_ONCE]):
        yield csv_text([_cells(row) for row in page])
        last = page[-1].pk


def _cells(row: AuditEvent) -> list[object]:
    given = shapes.event(row).model_dump(mode="json", by_alias=True)
    given["data"] = canonical.dumps(given["data"])
    return [given[column] for column in COLUMNS]
