"""The strictness of a conversation: it may ask about more calls than the tools and rules do, never about fewer.

An agent's conversation asks at least as much as those above it. ruling.py changes it.
"""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_noop

from hitlchat.base.problems import Invalid
from hitlchat.base.statements import Where, compiled, condition
from hitlchat.gate.models import Asks, Strictness, ToolCall, delegation
from hitlchat.gate.policies import Ask, Unusable
from hitlchat.gate.status import Status

# Calls of tools up to this risk are those that `risky` leaves as they are.
MILD: Final = 1
# From the mildest; a word that is not known asks about everything.
ORDER: Final = tuple(Asks.values)
EVERY: Final = gettext_noop("Asked because this conversation asks about every call.")
RISKY: Final = gettext_noop("Asked because this conversation asks about every call above L1.")
UNKNOWN: Final = gettext_noop("Asked because this conversation's approval setting is unknown.")
UNREADABLE: Final = gettext_noop("Asked because this conversation's approval setting could not be read.")


class BadWord(Invalid):
    """No conversation can ask so."""

    field = "asks"

    def __init__(self) -> None:
        super().__init__(f"Expected one of {', '.join(Asks.values)}.")


def of(conversation_id: UUID | None) -> str:
    """Return the word that holds in the conversation; `tools` where there is none."""
    if conversation_id is None:
        return Asks.TOOLS.value
    return strictest(Asks.TOOLS.value, *_words(conversation_id))


def words(conversation_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the word that holds in each: the strictest of its own and of those above it."""
    binding = delegation.with_those_above(conversation_ids)
    wanted = {each for bound in binding.values() for each in bound}
    found = dict(Strictness.objects.filter(pk__in=wanted).values_list("pk", "asks"))
    return {each: strictest(*(found.get(one, Asks.TOOLS.value) for one in bound)) for each, bound in binding.items()}


def rank(word: str) -> int:
    """Return how strict a word is; one that is not known is stricter than all."""
    return ORDER.index(word) if word in ORDER else len(ORDER)


def strictest(*words: str) -> str:
    """Return the word under which all is asked about that any of these asks about."""
    return max(words, key=rank)


def says(word: str, risk: int) -> Ask | None:
    """Return why a call of this risk is asked about under `word`; None if the tools and rules alone decide."""
    match word:
        case Asks.TOOLS:
            return None
        case Asks.RISKY:
            return Ask(RISKY) if risk > MILD else None
        case Asks.EVERY:
            return Ask(EVERY)
        case _:
            return Unusable(UNKNOWN)


def about(conversation_id: UUID | None, risk: int) -> Ask | None:
    """Return why a call of this risk is asked about in the conversation, if that asks about it by itself."""
    return says(of(conversation_id), risk)


def about_call(call: ToolCall) -> Ask | None:
    """Return why a call that was to run unasked must be asked about after all. `call` is read with its tool."""
    return about(call.conversation_id, _risk(call)) if call.status == Status.ALLOWED else None


def lets_start(call: ToolCall) -> Where:
    """Return the condition, in the moment that a call is moved, that no conversation that binds it asks about it.

    What a person approved has been asked about. The word is read from another table, and so may be a moment old by the
    time that the call is written: whoever changes it writes a mark, `owner`, on each call that has not started.
    """
    if call.status != Status.ALLOWED or call.conversation_id is None:
        return Where()
    return _lets_mild_start(call.owner) if _risk(call) <= MILD else _lets_start(call.owner)


@compiled
def _words(conversation_id: UUID) -> QuerySet[Strictness, str]:
    return Strictness.objects.filter(Q(pk=conversation_id) | delegation.binding(conversation_id)).values_list(
        "asks", flat=True
    )


@condition
def _lets_start(owner: str) -> Q:
    return Q(owner=owner) & ~_asking_unless(Asks.TOOLS)


@condition
def _lets_mild_start(owner: str) -> Q:
    return Q(owner=owner) & ~_asking_unless(Asks.TOOLS, Asks.RISKY)


def _asking_unless(*lenient: Asks) -> Q:
    binding = Q(pk=OuterRef("conversation_id")) | delegation.binding(OuterRef(OuterRef("conversation_id")))
    return Q(Exists(Strictness.objects.filter(binding).exclude(asks__in=lenient)))


def _risk(call: ToolCall) -> int:
    """Return the higher one of the risk when it was judged and that of its tool now."""
    return max(call.risk_level, call.tool.risk_level if call.tool else 0)
