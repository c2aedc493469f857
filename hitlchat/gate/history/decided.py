"""Calls by who answered and how, found well whether few or most of all calls are such."""

from typing import Any, Final

from django.db.models import Exists, OuterRef, Q

from hitlchat.gate.models import Decision

# Up to so many are named by their ids; of more than that, one in so many calls is found by looking at the newest ones.
FEW: Final = 1000


def decided(**which: Any) -> Q:
    """Of calls: those with an answer like that (`which`, as fields of decisions). Asks how many there are."""
    answers = Decision.objects.filter(**which).order_by()
    calls = list(answers.values_list("approval__call", flat=True)[: FEW + 1])
    return Q(pk__in=calls) if len(calls) <= FEW else is_decided(**which)


def is_decided(**which: Any) -> Q:
    """The same for calls that are few already."""
    return Q(Exists(Decision.objects.filter(approval__call=OuterRef("pk"), **which)))
