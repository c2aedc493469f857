"""`GET /metrics`: the numbers of Prometheus, counted from the record.

Derived from the record alone, so that every decision counts once, wherever it was made, and every process gives the
same numbers. Totals are stored up to a mark, and events after it are counted at each reading. Transactions commit in
another order than their ids say: only events so old that none can appear before them any more are added to the stored
totals.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from itertools import accumulate
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Case, Count, Exists, Min, OuterRef, Q, QuerySet, Subquery, When
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.roles import may_administer
from hitlchat.agent.loop import GUARDED
from hitlchat.gate import queue
from hitlchat.gate.counting import COUNTED
from hitlchat.gate.models import AuditEvent, CallerKind, ToolCall
from hitlchat.gate.results import NOBODY_ASKED_STATUS
from hitlchat.gate.sources import is_registered
from hitlchat.gate.status import SETTLED, Status
from hitlchat.record import sealing
from hitlchat.telemetry.models import Mark, Total

# Name, and the values of its labels.
Key = tuple[str, str]
Totals = defaultdict[Key, float]

DECISIONS: Final = "mcp_hitl_decision_total"
ANSWERS: Final = "hitlchat_answers_total"
CALLS: Final = "hitlchat_calls_total"
BLOCKS: Final = "hitlchat_sandbox_blocks_total"
GUARDS: Final = "hitlchat_loop_guard_total"
SECONDS: Final = "hitlchat_decision_seconds"
SUM: Final = f"{SECONDS}_sum"

COUNTERS: Final = {
    DECISIONS: ("Questions by outcome, and calls refused by a rule.", ["side", "outcome"]),
    ANSWERS: ("Answers by how the person was authenticated.", ["verdict", "means"]),
    CALLS: ("Calls by outcome.", ["outcome", "source", "risk"]),
    BLOCKS: (
        "Tool runs stopped by the sandbox: at a limit, for a missing capability, or because the process ended.",
        ["kind"],
    ),
    GUARDS: ("Runs told to wrap up, or stopped because they went in circles.", ["guard"]),
}
REFUSED: Final = f"call.{Status.REFUSED}"
ASKED: Final = f"call.{Status.WAITING}"
FAILED: Final = f"call.{Status.FAILED}"
# A question ends in one of these; a call that a rule refuses is decided without a question.
OUTCOMES: Final = {
    f"call.{status}": status.value
    for status in (Status.APPROVED, Status.DECLINED, Status.ANSWERED, Status.EXPIRED, Status.WITHDRAWN, Status.REFUSED)
}
# Answers of people; where several have to say yes, `counted` is each yes but the last.
VERDICTS: Final = {
    "call.approved": "approve",
    COUNTED: "approve",
    "call.declined": "decline",
    "call.answered": "answer",
}
ENDS: Final = {f"call.{status}": status.value for status in SETTLED}
BLOCKED: Final = frozenset({"limit", "denied", "crash"})
# The chat and the Studio, where people are at work; all other callers are programs.
CHAT: Final = (CallerKind.CHAT, CallerKind.STUDIO)
# From an answer without a thought to one after a weekend.
BOUNDS: Final = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600, 3 * 24 * 3600)
# No transaction of ours stays open for longer.
LATE_COMMIT: Final = timedelta(minutes=2)
# So many events are counted faster than stored, unless one is as old as this: old ones may be dropped from the record
# some day, and their numbers stay.
FEW: Final = 1000
OLD: Final = timedelta(hours=1)
NOT_FOR_YOU: Final = (
    "For administrators: sign in as one, or send a personal token of one, or HITL_METRICS_TOKEN, as "
    "“Authorization: Bearer …”.\n"
)


def read() -> Totals:
    """Return the totals as of now, and store those of old events."""
    with transaction.atomic():
        mark, _ = Mark.objects.select_for_update().get_or_create(pk=1)
        totals: Totals = defaultdict(float)
        for name, labels, value in Total.objects.values_list("name", "labels", "value"):
            totals[name, labels] = value
        later = AuditEvent.objects.filter(pk__gt=mark.event_id)
        settled = AuditEvent.objects.filter(at__lt=timezone.now() - LATE_COMMIT).order_by("-at")
        # The latest by time is among the latest by id.
        until = settled.values_list("pk", flat=True).first() or 0
        first = later.order_by("pk").values_list("at", flat=True).first()
        is_old = first is not None and first < timezone.now() - OLD
        if until > mark.event_id and (is_old or until - mark.event_id > FEW):
            _add(totals, later.filter(pk__lte=until))
            rows = [Total(name=name, labels=labels, value=value) for (name, labels), value in totals.items()]
            unique = ["name", "labels"]
            Total.objects.bulk_create(rows, update_conflicts=True, unique_fields=unique, update_fields=["value"])
            mark.event_id = until
            mark.save(update_fields=["event_id"])
        _add(totals, AuditEvent.objects.filter(pk__gt=mark.event_id))
    return totals


def text() -> bytes:
    return generate_latest(Numbers())


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


class Numbers(Collector):
    """Read from the database whenever they are collected: this process stores none."""

    def collect(self) -> Iterator[Metric]:
        totals = read()
        for name, (words, labels) in COUNTERS.items():
            counter = CounterMetricFamily(name, words, labels=labels)
            for (of, values), value in sorted(totals.items()):
                if of == name:
                    counter.add_metric(values.split(" "), value)
            yield counter
        words = "Time from the question to the answer."
        histogram = HistogramMetricFamily(SECONDS, words, labels=["outcome"])
        bounds = [*map(str, map(float, BOUNDS)), "+Inf"]
        for outcome in ("approved", "declined", "answered"):
            counts = accumulate(totals[SECONDS, f"{outcome} {number}"] for number in range(len(bounds)))
            histogram.add_metric([outcome], list(zip(bounds, counts, strict=True)), totals[SUM, outcome])
        yield histogram
        waiting = ToolCall.objects.filter(status=Status.WAITING).order_by()
        now = waiting.aggregate(many=Count("pk"), oldest=Min("created_at"))
        age = (timezone.now() - now["oldest"]).total_seconds() if now["oldest"] else 0.0
        yield GaugeMetricFamily("hitlchat_approvals_waiting", "Open questions.", now["many"])
        yield GaugeMetricFamily(
            "hitlchat_approvals_oldest_seconds", "Time that the oldest open question has waited.", age
        )
        words = "Age of the oldest unsealed event; 0 if all are sealed."
        yield GaugeMetricFamily("hitlchat_record_oldest_unsealed_seconds", words, sealing.unsealed_seconds())


def _add(totals: Totals, events: QuerySet[AuditEvent]) -> None:
    questions = AuditEvent.objects.filter(call=OuterRef("call"), name=ASKED, pk__lt=OuterRef("pk")).order_by("-pk")
    groups = (
        events.filter(name__in={*OUTCOMES, *VERDICTS, *ENDS, *GUARDED})
        .order_by()
        .annotate(was_asked=Case(When(name__in=OUTCOMES, then=Exists(questions)), default=False))
        # A call that nobody could be asked about is told from one that a policy refused.
        .annotate(unasked=Case(When(name=REFUSED, call__reason__in=queue.REASONS, then=True), default=False))
        .values_list("name", "means", "was_asked", "unasked", "call__caller_kind", "call__source", "call__risk_level")
        .annotate(number=Count("pk"))
    )
    for name, means, was_asked, unasked, kind, source, risk, number in groups:
        if name in OUTCOMES and (was_asked or name == REFUSED):
            outcome = NOBODY_ASKED_STATUS if unasked else OUTCOMES[name]
            totals[DECISIONS, f"{'chat' if kind in CHAT else 'server'} {outcome}"] += number
        if name in VERDICTS:
            totals[ANSWERS, f"{VERDICTS[name]} {means}"] += number
        if name in ENDS:
            outcome = NOBODY_ASKED_STATUS if unasked else ENDS[name]
            totals[CALLS, f"{outcome} {source if is_registered(source) else 'none'} L{risk}"] += number
        if name in GUARDED:
            totals[GUARDS, GUARDED[name]] += number
    _add_times_and_blocks(totals, events, questions)


def _add_times_and_blocks(totals: Totals, events: QuerySet[AuditEvent], questions: QuerySet[AuditEvent]) -> None:
    rows = events.filter(name__in=("call.approved", "call.declined", "call.answered", FAILED)).order_by()
    # Each in the same statement, but looked for only where it is needed.
    asked_at = Case(When(~Q(name=FAILED), then=Subquery(questions.values("at")[:1])))
    error = Case(When(name=FAILED, then="call__error"))
    for name, at, begun, failure in rows.values_list("name", "at", asked_at, error).iterator(chunk_size=2000):
        kind = failure.get("kind") if isinstance(failure, dict) else None
        if kind in BLOCKED:
            totals[BLOCKS, kind] += 1
        if begun is not None:
            seconds = max(0.0, (at - begun).total_seconds())
            totals[SECONDS, f"{OUTCOMES[name]} {bisect_left(BOUNDS, seconds)}"] += 1
            totals[SUM, OUTCOMES[name]] += seconds


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
