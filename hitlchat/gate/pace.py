"""Pace: whoever says yes faster than cards can be read is asked, on the next that calls for care, for one value."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import F, IntegerField, QuerySet
from django.db.models.functions import Cast
from django.utils import timezone

from hitlchat.base.statements import compiled
from hitlchat.base.visible import Seen, see
from hitlchat.gate import meant
from hitlchat.gate.actor import Actor
from hitlchat.gate.contents import spelled
from hitlchat.gate.models import Decision

# From this level on, by the inherent risk.
FROM: Final = 3
# Answers before that say nothing of the pace now. It also bounds what is read, however long the history is.
LATELY: Final = timedelta(minutes=30)
# As many as HITL_QUICK_YESES may be.
MOST_YESES: Final = 10
# What is longer is no more certain to be read, and a burden to type.
LONGEST_TYPED: Final = 40
# What a person recognizes a call by comes before what is soon guessed.
_ORDER: Final = (meant.RECIPIENT, meant.AMOUNT, meant.ADDRESS, meant.FLAG, meant.OTHER)


@dataclass(frozen=True)
class Matter:
    """The one value that a yes has to repeat, after so many quick `yeses`. `name`: its argument's; None: it is the name
    of the tool. A flag is chosen, anything else typed.
    """

    text: str
    yeses: int
    name: Seen | None = None
    is_flag: bool = False

    def is_given(self, typed: str) -> bool:
        return typed.strip() == self.text


def is_quick(person: Actor) -> bool:
    """Return whether the last answers of this person were yeses, each faster than the card can be read."""
    wanted = settings.HITL_QUICK_YESES
    if not wanted or person.user_id is None:
        return False
    last = list(_last(person.user_id, timezone.now() - LATELY))[:wanted]
    return len(last) == wanted and all(last)


def matter(shown: dict[str, Any]) -> Matter:
    """Return what a yes to the question of a disclosure has to repeat: the first value that can be typed."""
    given = {name: value for name, value in shown["arguments"].items() if name not in shown.get("notGiven", [])}
    names = sorted(given, key=lambda name: _ORDER.index(meant.weight(name, given[name])))
    for name in names:
        if _can_be_typed(given[name]):
            text, is_flag = spelled(given[name]).strip(), isinstance(given[name], bool)
            return Matter(text, settings.HITL_QUICK_YESES, see(name), is_flag)
    return Matter(shown["tool"]["name"], settings.HITL_QUICK_YESES)


def _can_be_typed(value: Any) -> bool:
    if not isinstance(value, str | int | float):
        return False
    text = spelled(value).strip()
    return 0 < len(text) <= LONGEST_TYPED and "\n" not in text and not see(text).warnings


@compiled
def _last(user_id: int, since: datetime) -> QuerySet[Decision, bool]:
    """Return of the last answers whether each was a quick yes: no other is said to be hurried."""
    # By the index on the time: that on the person would be read from end to end.
    rows = Decision.objects.annotate(who=Cast(F("person_id"), IntegerField())).filter(who=user_id)
    return rows.filter(decided_at__gt=since).order_by("-decided_at").values_list("hurried", flat=True)[:MOST_YESES]
