"""The record of everything that happened, for administrators."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Literal
from uuid import UUID

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from ninja import Query, Router
from pydantic import AwareDatetime, BaseModel, Field

from hitlchat.api.auth import ApiRequest, administrator, only_after
from hitlchat.api.contract import Limit, Object, Shape, Text, Username, read
from hitlchat.base import canonical
from hitlchat.base.download import csv_end, csv_text, download
from hitlchat.gate import models as gate
from hitlchat.gate.history import changes
from hitlchat.gate.transition import note
from hitlchat.record.exporting import EXPORTED
from hitlchat.record.rows import batches_of, newest_id
from hitlchat.secrets.detection import Cover

router = Router(tags=["audit"], by_alias=True)
router.add_decorator(only_after(partial(administrator, to="read the audit record")))

AT_ONCE = 500


class AuditEvent(Shape):
    id: int
    name: str
    at: datetime
    call_id: UUID | None
    tool_name: str | None
    actor: Username | None
    means: str
    words: str = Field(description="What was changed, in one sentence; empty for events of calls.")
    data: Object
    batch: int | None = Field(description="The batch in which the event is sealed; null: not sealed yet.")


class AuditSeal(Shape):
    number: int
    first_event: int = read("first")
    last_event: int = read("last")
    count: int
    late_events: list[int] = read("late", "Events with lower ids than those in earlier batches.")
    hash: str
    previous: str
    key: str = read("key_id", "The fingerprint of the key that signed it.")
    signature: str
    sealed_at: datetime
    dropped_at: datetime | None = Field(description="When retention dropped the batch's events; null: still stored.")


class SealFilter(BaseModel):
    before: int | None = Field(None, ge=1, le=2**63 - 1, description="The number of the last seal you have.")
    limit: Limit = 100


class AuditFilter(BaseModel):
    name: Text | None = None
    call: UUID | None = None
    since: AwareDatetime | None = None
    before: int | None = Field(None, ge=1, le=2**63 - 1, description="The id of the last event you have.")
    limit: Limit = 100
    format: Literal["json", "csv"] = "json"


def event(row: gate.AuditEvent, batch: int | None) -> AuditEvent:
    tool_name = row.call.tool_name if row.call else None
    return AuditEvent.of(row, tool_name=tool_name, words=changes.words(row), batch=batch)


COLUMNS = list(AuditEvent.model_json_schema(mode="serialization")["properties"])


@router.get("", response=list[AuditEvent])
def read_audit(request: ApiRequest, wanted: Query[AuditFilter]) -> list[AuditEvent] | StreamingHttpResponse:
    """The latest events first, `before` the last of them for more; as CSV, all of them in the order they happened, and
    a last row `end-of-export` that says how many they are.
    """
    columns = {"name": wanted.name, "call_id": wanted.call, "at__gte": wanted.since, "id__lt": wanted.before}
    given = {name: value for name, value in columns.items() if value is not None}
    rows = gate.AuditEvent.objects.select_related("call", "actor").filter(**given)
    if wanted.format == "csv":
        # The file ends with what is there before the export itself goes on record.
        filters = wanted.model_dump(mode="json", exclude={"limit", "format"}, exclude_none=True)
        last = newest_id()
        note(None, EXPORTED, actor=request.auth.actor, data={"format": "csv", "filters": filters})
        return download(request, _lines(rows.filter(pk__lte=last)), name="audit.csv", kind="text/csv")
    found = list(rows.order_by("-id")[: wanted.limit])
    batches = batches_of(row.pk for row in found)
    return [event(row, batches.get(row.pk)) for row in found]


@router.get("/seals", response=list[AuditSeal])
def read_seals(request: ApiRequest, wanted: Query[SealFilter]) -> list[AuditSeal]:
    """The latest seals first: note a hash elsewhere, and `manage.py audit verify --expect` proves that it is there."""
    rows = gate.Seal.objects.select_related("drop").order_by("-number")
    page = (rows if wanted.before is None else rows.filter(number__lt=wanted.before))[: wanted.limit]
    return [AuditSeal.of(row, dropped_at=row.drop.dropped_at if hasattr(row, "drop") else None) for row in page]


def _lines(rows: QuerySet[gate.AuditEvent]) -> Iterator[str]:
    yield csv_text([COLUMNS])
    last = count = 0
    while page := list(rows.filter(pk__gt=last).order_by("id")[:AT_ONCE]):
        batches, lines = batches_of(row.pk for row in page), []
        for row in page:
            given = event(row, batches.get(row.pk)).model_dump(mode="json", by_alias=True)
            # Unlike an answer, a file goes on to others (SR-44). The keys at the top are our own.
            cover = Cover(row.data, row.call.arguments if row.call else None)
            given["data"] = canonical.dumps({key: cover.value(item) for key, item in given["data"].items()})
            lines.append([given[column] for column in COLUMNS])
        yield csv_text(lines)
        last, count = page[-1].pk, count + len(page)
    yield csv_end(count, COLUMNS)
