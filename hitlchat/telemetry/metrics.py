"""The numbers in the words of Prometheus, counted from the record, each decision once.

Totals over the whole record: kept up to a mark, and counted from there.

Derived from the record alone, so that every decision counts once, wherever it was made, and every process at any time
tells the same. Events are committed in another order than their ids say: only such are folded into what is kept as are
old enough that none can appear before them any more. What is behind the mark is counted anew each time.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import BooleanField, Case, Count, F, Max, Min, OuterRef, QuerySet, Subquery, When
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.roles import may_administer
from hitlchat.agent.loop import GUARDED
from hitlchat.gate import queue
from hitlchat.gate.deciders import COUNTED
from hitlchat.gate.models import AuditEvent, CallerKind, ToolCall
from hitlchat.gate.results import NOBODY_ASKED_STATUS
from hitlchat.gate.sources import is_registered
from hitlchat.gate.status import SETTLED, Status
from hitlchat.record import sealing
from hitlchat.telemetry.models import Mark, Total

# Name, and the values of its labels.
Key = tuple[str, str]
Totals = dict[Key, float]

DECISIONS: Final = "mcp_hitl_decision_total"
ANSWERS: Final = "hitlchat_answers_total"
CALLS: Final = "hitlchat_calls_total"
BLOCKS: Final = "hitlchat_sandbox_blocks_total"
GUARDS: Final = "hitlchat_loop_guard_total"
SECONDS: Final = "hitlchat_decision_seconds"
SUM: Final = f"{SECONDS}_sum"

REFUSED: Final = f"call.{Status.REFUSED}"
ASKED: Final = f"call.{Status.WAITING}"
# A question ends in one of these, and what a rule refuses is decided without one.
OUTCOMES: Final = {
    f"call.{status}": status.value
    for status in (Status.APPROVED, Status.DECLINED, Status.EXPIRED, Status.WITHDRAWN, Status.REFUSED)
}
# What a person said; where several have to, `counted` is each yes but the last.
VERDICTS: Final = {"call.approved": "approve", COUNTED: "approve", "call.declined": "decline"}
ENDS: Final = {f"call.{status}": status.value for status in SETTLED}
BLOCKED: Final = frozenset({"limit", "denied", "crash"})
# From what takes no thought to what took a weekend.
BOUNDS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600, 3 * 24 * 3600)
NAMES: Final = frozenset({*OUTCOMES, *VERDICTS, *ENDS, *GUARDED})

COLUMNS: Final = (
    "name", "means", "at", "asked_at", "call__caller_kind", "call__source", "call__risk_level", "failure",
    "nobody_asked",
)  # fmt: skip


class Row(NamedTuple):
    """An event with what is needed of its call. `asked_at`: when that was asked about, if it was, the last time."""

    name: str
    means: str
    at: datetime
    asked_at: datetime | None
    kind: str
    source: str
    risk: int
    failure: Any
    nobody_asked: bool

    def told(self, outcomes: Mapping[str, str]) -> str:
        """Return what ended with this event; what no policy refused apart from what one did."""
        return NOBODY_ASKED_STATUS if self.nobody_asked else outcomes[self.name]


def count(events: QuerySet[AuditEvent]) -> Totals:
    """Return what `events` add to the totals."""
    asked = AuditEvent.objects.filter(call=OuterRef("call"), name=ASKED, pk__lt=OuterRef("pk")).order_by("-pk")
    rows = events.filter(name__in=NAMES).annotate(
        # In the same query, but looked for only where it says something.
        asked_at=Case(When(name__in=[*OUTCOMES], then=Subquery(asked.values("at")[:1]))),
        failure=Case(When(name="call.failed", then="call__error")),
        nobody_asked=Case(
            When(name=REFUSED, call__reason__in=queue.REASONS, then=True), default=False, output_field=BooleanField()
        ),
    )
    totals: Totals = defaultdict(float)
    for row in map(Row._make, rows.order_by().values_list(*COLUMNS).iterator(chunk_size=2000)):
        for key in _counts(row):
            totals[key] += 1
        if (taken := _seconds(row)) is not None:
            totals[SUM, OUTCOMES[row.name]] += taken
    return totals


def _counts(row: Row) -> Iterator[Key]:
    if row.name in GUARDED:
        yield GUARDS, GUARDED[row.name]
        return
    if row.name in OUTCOMES and (row.asked_at is not None or row.name == REFUSED):
        yield DECISIONS, f"{_side(row.kind)} {row.told(OUTCOMES)}"
    if (taken := _seconds(row)) is not None:
        yield SECONDS, f"{OUTCOMES[row.name]} {bisect_left(BOUNDS, taken)}"
    if row.name in VERDICTS:
        yield ANSWERS, f"{VERDICTS[row.name]} {row.means}"
    if row.name in ENDS:
        yield CALLS, f"{row.told(ENDS)} {_known(row.source)} L{row.risk}"
    if (why := _kind(row.failure)) in BLOCKED:
        yield BLOCKS, why


def _side(kind: str) -> str:
    """Return where the question came from: people at work in the chat and the Studio, or programs."""
    return "chat" if kind in (CallerKind.CHAT, CallerKind.STUDIO) else "server"


def _seconds(row: Row) -> float | None:
    """Return how long a person took, if it was one."""
    if row.name not in ("call.approved", "call.declined") or row.asked_at is None:
        return None
    return max(0.0, (row.at - row.asked_at).total_seconds())


def _known(source: str) -> str:
    return source if is_registered(source) else "none"


def _kind(failure: Any) -> str:
    error = json.loads(failure) if isinstance(failure, str) else failure
    return str(error.get("kind")) if isinstance(error, dict) else ""


# No transaction of ours stays open for longer.
LATE_COMMIT = timedelta(minutes=2)
# So many events behind the mark are counted faster than folded, unless they are as old as this: old ones may be dropped
# from the record some day, and what was counted stays.
FEW = 1000
OLD = timedelta(hours=1)


def read() -> Totals:
    """The totals as of now. Whoever reads them keeps them short, which changes nothing about what is read."""
    with transaction.atomic():
        mark = _locked()
        if (until := _settled_until()) - mark.event_id > FEW or _has_old(mark):
            _fold(mark, until)
        totals = count(AuditEvent.objects.filter(pk__gt=mark.event_id))
        for name, labels, value in Total.objects.values_list("name", "labels", "value"):
            totals[name, labels] += value
    return totals


def _locked() -> Mark:
    Mark.objects.get_or_create(pk=1)
    return Mark.objects.select_for_update().get(pk=1)


def _settled_until() -> int:
    """The last event that nothing can appear before any more; 0 if there is none."""
    old = AuditEvent.objects.filter(at__lt=timezone.now() - LATE_COMMIT)
    # The latest by time are among the latest by id.
    latest = old.order_by("-at").values("pk")[:1]
    found: int | None = AuditEvent.objects.filter(pk__in=latest).aggregate(latest=Max("pk"))["latest"]
    return found or 0


def _has_old(mark: Mark) -> bool:
    """Return whether the first event behind the mark is old."""
    first = AuditEvent.objects.filter(pk__gt=mark.event_id).order_by("pk").values_list("at", flat=True).first()
    return first is not None and first < timezone.now() - OLD


def _fold(mark: Mark, until: int) -> None:
    totals = count(AuditEvent.objects.filter(pk__gt=mark.event_id, pk__lte=until))
    rows = [Total(name=name, labels=labels) for name, labels in totals]
    Total.objects.bulk_create(rows, ignore_conflicts=True)
    for (name, labels), value in totals.items():
        Total.objects.filter(name=name, labels=labels).update(value=F("value") + value)
    mark.event_id = until
    mark.save(update_fields=["event_id"])


COUNTERS: Final = {
    DECISIONS: ("Questions by what they ended in, and calls that a rule refused.", ["side", "outcome"]),
    ANSWERS: ("What people said, by how they were known.", ["verdict", "means"]),
    CALLS: ("Calls by what became of them.", ["outcome", "source", "risk"]),
    BLOCKS: ("Tools that the sandbox stopped: at a limit, at what was not granted, by their process ending.", ["kind"]),
    GUARDS: ("Runs that were told to wrap up, or stopped since they went round in circles.", ["guard"]),
}


class Numbers(Collector):
    """Read from the database whenever they are collected: nothing is kept in this process."""

    def collect(self) -> Iterator[Metric]:
        found = read()
        for name, (words, labels) in COUNTERS.items():
            yield _counter(name, words, labels, found)
        yield _taken(found)
        yield from _waiting()
        yield _unsealed()


def text() -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    # Without being asked for its numbers now, which would be a second look at the database.
    registry.register(Numbers())
    return generate_latest(registry)


def _counter(name: str, words: str, labels: list[str], found: Totals) -> Metric:
    metric = CounterMetricFamily(name, words, labels=labels)
    for (of, values), value in sorted(found.items()):
        if of == name:
            metric.add_metric(values.split(" "), value)
    return metric


def _taken(found: Totals) -> Metric:
    metric = HistogramMetricFamily(SECONDS, "How long people took from the question to the answer.", labels=["outcome"])
    bounds = [*map(str, map(float, BOUNDS)), "+Inf"]
    for outcome in ("approved", "declined"):
        counts = accumulate(found.get((SECONDS, f"{outcome} {number}"), 0) for number in range(len(bounds)))
        metric.add_metric([outcome], list(zip(bounds, counts, strict=True)), found.get((SUM, outcome), 0))
    return metric


def _waiting() -> Iterator[Metric]:
    rows = ToolCall.objects.filter(status=Status.WAITING).order_by()
    now = rows.aggregate(many=Count("pk"), oldest=Min("created_at"))
    age = (timezone.now() - now["oldest"]).total_seconds() if now["oldest"] else 0.0
    yield GaugeMetricFamily("hitlchat_approvals_waiting", "Questions that wait for an answer.", now["many"])
    yield GaugeMetricFamily("hitlchat_approvals_oldest_seconds", "How long the oldest of them has waited.", age)


def _unsealed() -> Metric:
    words = "How old the oldest event is that is not sealed yet; 0 if all are."
    return GaugeMetricFamily("hitlchat_record_oldest_unsealed_seconds", words, sealing.unsealed_seconds())


NOT_FOR_YOU = (
    "For administrators: sign in as one, or send a personal token of one, or HITL_METRICS_TOKEN, as "
    "“Authorization: Bearer …”.\n"
)


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Answer `GET /metrics`, for administrators and holders of its token.

    Being on the same machine is no credential: so is a proxy that speaks for the whole world.
    """
    if not _may_read(request):
        response = HttpResponse(NOT_FOR_YOU, status=401, content_type="text/plain; charset=utf-8")
        response["WWW-Authenticate"] = "Bearer"
        return response
    return HttpResponse(text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _may_read(request: HttpRequest) -> bool:
    if "Authorization" not in request.headers:
        return isinstance(request.user, User) and may_administer(request.user)
    scheme, _, secret = request.headers["Authorization"].partition(" ")
    if scheme.lower() != "bearer":
        return False
    wanted = settings.HITL_METRICS_TOKEN
    if wanted and constant_time_compare(secret.strip(), wanted):
        return True
    token = Token.find(secret.strip())
    if token is None or token.kind == TokenKind.MCP or not may_administer(token.user):
        return False
    token.note_use()
    return True
