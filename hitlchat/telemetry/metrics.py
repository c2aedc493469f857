"""The numbers in the words of Prometheus."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final

from django.db.models import Count, Min
from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.record import sealing
from hitlchat.telemetry import totals
from hitlchat.telemetry.counting import ANSWERS, BLOCKS, BOUNDS, CALLS, DECISIONS, GUARDS, SECONDS, SUM, Totals

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

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
        found = totals.read()
        for name, (words, labels) in COUNTERS.items():
            yield _counter(name, words, labels, found)
        yield _taken(found)
        yield from _waiting()
        yield _unsealed()


def text() -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Undescribed())
    return generate_latest(registry)


class _Undescribed(Numbers):
    """Registered without being asked for its numbers, which would be a second look at the database."""

    def describe(self) -> Iterable[Metric]:
        return []


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
