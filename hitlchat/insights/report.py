"""The oversight report: evidence of how people oversaw the tools in a period (EU AI Act, Article 14), and which part of
the record holds it.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Q
from django.utils import timezone

from hitlchat.gate import planted, second
from hitlchat.gate.models import AuditEvent, Decision, Seal
from hitlchat.gate.planted import Totals
from hitlchat.gate.second import Weighed
from hitlchat.insights.figures import Figures, Period, count
from hitlchat.record import keys

# From this level on, tools that ran unasked are pointed out.
RISKY: Final = 4
# Answers by how the card was read: with folded text, all of which was opened; changed; hurried; without a display.
READ: Final = {
    "folded": Q(opened__isnull=False),
    "opened": Q(opened=True),
    "edited": Q(edited_arguments__isnull=False),
    "hurried": Q(hurried=True),
    "unseen": Q(first_shown_at=None),
}


@dataclass(frozen=True)
class Sealed:
    """The record of the period: its events, those of them in no batch yet, its first and last batch, and their key."""

    events: int
    unsealed: int
    batches: tuple[Seal, ...]
    key: str

    @property
    def as_json(self) -> dict[str, Any]:
        batches = [
            {"number": each.number, "sealedAt": each.sealed_at.isoformat(), "hash": each.hash} for each in self.batches
        ]
        return {"events": self.events, "unsealed": self.unsealed, "batches": batches, "key": self.key}


@dataclass(frozen=True)
class Report:
    """`looked`: how many answers there are of each kind of READ; `means`: how many by each way to know a person."""

    made_at: datetime
    figures: Figures
    looked: dict[str, int]
    means: dict[str, int]
    sealed: Sealed
    # What people answered once a second model had read the call, by tool.
    weighed: dict[str, Weighed]
    # Of the last three months, whatever the period; None: of too few people.
    checks: Totals | None

    @property
    def risky_unasked(self) -> list[Any]:
        return [tool for tool in self.figures.tools if tool.unasked and tool.risk >= RISKY]

    @property
    def as_json(self) -> dict[str, Any]:
        """Return all of it for programs; times in seconds."""
        figures = self.figures
        total, answers = figures.total, figures.answers
        return {
            "madeAt": self.made_at.isoformat(),
            "since": figures.period.since.isoformat(),
            "questions": {**asdict(total), "others": total.others},
            "answers": {
                "count": figures.answered,
                "medianSeconds": answers.median,
                "totalSeconds": answers.spent,
                **self.looked,
                "means": self.means,
            },
            "people": [
                {"name": each.name, "approved": each.approved, "declined": each.declined, "edited": each.edited}
                | {"hurried": each.hurried, "totalSeconds": each.seconds}
                for each in figures.people
            ],
            "tools": [
                {"name": each.name, "riskLevel": each.risk, **asdict(each.tally), "ranUnasked": each.unasked}
                | {"lookedBack": {"fine": each.fine, "shouldAsk": each.should_ask}}
                for each in figures.tools
            ],
            "secondOpinions": [
                {"tool": name, "cautioned": {"against": each.cautioned_against, "approved": each.cautioned_approved}}
                | {"withoutCaution": {"against": each.plain_against, "approved": each.plain_approved}}
                for name, each in self.weighed.items()
            ],
            "unasked": {"calls": figures.unasked, "latestReasons": list(figures.whys)},
            "lookedBack": {"fine": figures.looked_back - figures.should_ask, "shouldAsk": figures.should_ask},
            "attentionChecks": asdict(self.checks) if self.checks else None,
            "record": self.sealed.as_json,
        }


def report(period: Period) -> Report:
    since = period.since
    decisions = Decision.objects.filter(decided_at__gte=since).order_by()
    looked = decisions.aggregate(**{name: Count("pk", filter=which) for name, which in READ.items()})
    means = decisions.values_list("means").annotate(count=Count("*")).order_by("-count", "means")
    weighed, checks = second.counted(since), planted.totals()
    return Report(timezone.now(), count(period, None), looked, dict(means), _sealed(since), weighed, checks)


def _sealed(since: datetime) -> Sealed:
    events, seals, key = AuditEvent.objects.filter(at__gte=since), Seal.objects.order_by("number"), keys.current()
    last = seals.last()
    batches = (seals.filter(sealed_at__gte=since).first(), last if last and last.sealed_at >= since else None)
    return Sealed(
        events=events.count(),
        unsealed=events.filter(pk__gt=last.last).count() if last else events.count(),
        batches=tuple(each for each in batches if each),
        key=key.pk if key else "",
    )
