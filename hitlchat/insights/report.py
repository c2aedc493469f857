"""The oversight report: evidence of how people oversaw the tools in a period (EU AI Act, Article 14), and which part of
the record holds it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Q
from django.utils import timezone

from hitlchat.gate.models import AuditEvent, Decision, Seal
from hitlchat.insights.figures import Figures, Period, count
from hitlchat.record import keys

# From this level on a tool that ran unasked is told of first.
RISKY: Final = 4


@dataclass(frozen=True)
class Looked:
    """Answers by what is known of how the card was read: `folded` had folded text, all of which was `opened`;
    `unseen` were given without a display that is known.
    """

    folded: int
    opened: int
    edited: int
    hurried: int
    unseen: int


@dataclass(frozen=True)
class Sealed:
    """The record of the period: its events, those of them in no batch yet, its first and last batch, and their key."""

    events: int
    unsealed: int
    first: Seal | None
    last: Seal | None
    key: str


@dataclass(frozen=True)
class Report:
    made_at: datetime
    figures: Figures
    looked: Looked
    means: dict[str, int]
    sealed: Sealed

    @property
    def risky_unasked(self) -> list[Any]:
        return [tool for tool in self.figures.tools if tool.unasked and tool.risk >= RISKY]

    @property
    def as_json(self) -> dict[str, Any]:
        """Return all of it for programs; times in seconds."""
        figures, sealed = self.figures, self.sealed
        total, answers = figures.total, figures.answers
        return {
            "madeAt": self.made_at.isoformat(),
            "since": figures.period.since.isoformat(),
            "questions": {
                **{name: getattr(total, name) for name in ("asked", "approved", "declined", "expired")},
                "others": total.others,
            },
            "answers": {
                "count": figures.answered,
                "medianSeconds": answers.median,
                "totalSeconds": answers.spent,
                **vars(self.looked),
                "means": self.means,
            },
            "people": [
                {"name": each.name, "approved": each.approved, "declined": each.declined, "edited": each.edited}
                | {"hurried": each.hurried, "totalSeconds": each.seconds}
                for each in figures.people
            ],
            "tools": [
                {"name": each.name, "riskLevel": each.risk, "asked": each.tally.asked, "approved": each.tally.approved}
                | {"declined": each.tally.declined, "expired": each.tally.expired, "ranUnasked": each.unasked}
                for each in figures.tools
            ],
            "unasked": {"calls": figures.unasked, "latestReasons": list(figures.whys)},
            "record": {
                "events": sealed.events,
                "unsealed": sealed.unsealed,
                "batches": [_batch(each) for each in (sealed.first, sealed.last) if each is not None],
                "key": sealed.key,
            },
        }


def report(period: Period) -> Report:
    since = period.since
    decisions = Decision.objects.filter(decided_at__gte=since).order_by()
    ways = {
        "folded": Q(opened__isnull=False),
        "opened": Q(opened=True),
        "edited": Q(edited_arguments__isnull=False),
        "hurried": Q(hurried=True),
        "unseen": Q(first_shown_at=None),
    }
    looked = decisions.aggregate(**{name: Count("pk", filter=which) for name, which in ways.items()})
    means = decisions.values_list("means").annotate(count=Count("*")).order_by("-count", "means")
    return Report(timezone.now(), count(period, None), Looked(**looked), dict(means), _sealed(since))


def _sealed(since: datetime) -> Sealed:
    events, seals, key = AuditEvent.objects.filter(at__gte=since), Seal.objects.order_by("number"), keys.current()
    last = seals.last()
    return Sealed(
        events=events.count(),
        unsealed=events.filter(pk__gt=last.last).count() if last is not None else events.count(),
        first=seals.filter(sealed_at__gte=since).first(),
        last=last if last is not None and last.sealed_at >= since else None,
        key=key.pk if key is not None else "",
    )


def _batch(seal: Seal) -> dict[str, Any]:
    return {"number": seal.number, "sealedAt": seal.sealed_at.isoformat(), "hash": seal.hash}
