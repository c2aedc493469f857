"""What each event on record counts for. Labels have few values, none of which anybody outside can choose."""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.db.models import BooleanField, Case, OuterRef, QuerySet, Subquery, When

from hitlchat.agent.loop import GUARDED
from hitlchat.gate import queue
from hitlchat.gate.models import AuditEvent, CallerKind
from hitlchat.gate.quorum import COUNTED
from hitlchat.gate.results import NOBODY_ASKED_STATUS
from hitlchat.gate.sources import is_registered
from hitlchat.gate.status import SETTLED, Status

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
        """What ended with this event; what no policy refused apart from what one did."""
        return NOBODY_ASKED_STATUS if self.nobody_asked else outcomes[self.name]


def count(events: QuerySet[AuditEvent]) -> Totals:
    """What `events` add to the totals."""
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
    """Where the question came from: people at work in the chat and the Studio, or programs."""
    return "chat" if kind in (CallerKind.CHAT, CallerKind.STUDIO) else "server"


def _seconds(row: Row) -> float | None:
    """How long a person took, if it was one."""
    if row.name not in ("call.approved", "call.declined") or row.asked_at is None:
        return None
    return max(0.0, (row.at - row.asked_at).total_seconds())


def _known(source: str) -> str:
    return source if is_registered(source) else "none"


def _kind(failure: Any) -> str:
    error = json.loads(failure) if isinstance(failure, str) else failure
    return str(error.get("kind")) if isinstance(error, dict) else ""
