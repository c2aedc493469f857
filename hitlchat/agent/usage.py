"""Usage: how many tokens answers took, as model servers say, what they cost, and their limits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.agent import endpoints
from hitlchat.agent.answer import Tokens
from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Conversation, ModelEndpoint, ModelUse
from hitlchat.base.statements import MOST, compiled
from hitlchat.gate.models import delegation

MILLION: Final = 1_000_000
# Nobody but the model's server knows how many tokens a text is: for most it is fewer than this says.
BYTES_OF_A_TOKEN: Final = 4
CONVERSATION_LIMIT = gettext_noop(
    "This conversation has used {used} tokens, and the limit for a conversation is {most}. Nothing was sent to the "
    "model. Start a new conversation, or ask an administrator."
)
LIMIT = gettext_noop(
    "You have used {used} tokens today; the daily limit is {most}. Nothing was sent to the model. Try "
    "again tomorrow, or ask an administrator."
)
CONVERSATION_COST_LIMIT = gettext_noop(
    "This conversation has cost {used} {currency}, and the limit for a conversation is {most} {currency}. Nothing was "
    "sent to the model. Start a new conversation, or ask an administrator to raise the limit."
)
COST_LIMIT = gettext_noop(
    "Your conversations have cost {used} {currency} today; the daily limit is {most} {currency}. Nothing was sent to "
    "the model. Try again tomorrow, or ask an administrator to raise the limit."
)
SUMS: Final[dict[str, Any]] = {
    "input": Sum("input_tokens"),
    "output": Sum("output_tokens"),
    "cached": Sum("cached_tokens"),
    "reasoning": Sum("reasoning_tokens"),
    "millionths": Sum("cost"),
    "without": Count("pk", filter=Q(cost=None)),
}


@dataclass(frozen=True)
class Used:
    """Sums of tokens, and what they cost in the installation's currency; `cost` None: nothing had a price.

    `unpriced`: some of the answers had none, so that it cost more than it says.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    cost: float | None = None
    unpriced: bool = False

    @property
    def tokens(self) -> int:
        return self.input + self.output


def add(
    conversation: Conversation,
    where: Endpoint,
    tokens: Tokens,
    *,
    run_id: UUID | None = None,
    message_id: UUID | None = None,
) -> None:
    """Keep what one answer took. Without a message it was for the conversation's title, or about a call that waits."""
    row = ModelEndpoint.objects.filter(pk=where.stored).first() if where.stored else None
    # One that was removed meanwhile has no prices.
    cost, priced = None, row if where.stored else endpoints.environment()
    if priced is not None and priced.input_price is not None and priced.output_price is not None:
        # In millionths: prices are for a million tokens.
        cost = round(priced.input_price * tokens.input + priced.output_price * tokens.output)
    ModelUse.objects.create(
        person_id=conversation.owner_id,
        conversation_id=conversation.pk,
        run_id=run_id,
        message_id=message_id,
        endpoint=row,
        model=where.model[:200],
        input_tokens=tokens.input,
        output_tokens=tokens.output,
        cached_tokens=min(tokens.cached, tokens.input),
        reasoning_tokens=min(tokens.reasoning, tokens.output),
        cost=cost,
    )


def of_conversation(conversation_id: UUID) -> Used:
    """Return what all its answers took, those of hidden branches, of its title and of its agents included."""
    found = list(_of_family(conversation_id))
    costs = [row["millionths"] for row in found if row["millionths"] is not None]
    sums = {name: sum(row[name] or 0 for row in found) for name in SUMS}
    return _used(sums | {"millionths": sum(costs) if costs else None})


def of_run(run_id: UUID) -> Used:
    return _used(ModelUse.objects.filter(run_id=run_id).aggregate(**SUMS))


def of_messages(conversation_id: UUID, ids: Iterable[UUID]) -> dict[UUID, Used]:
    listed = list(ids)
    found = [row for at in range(0, len(listed), MOST) for row in _of_messages(conversation_id, listed[at : at + MOST])]
    return {row["message_id"]: _used(row) for row in found}


def last_input(conversation_id: UUID) -> int:
    """Return how many tokens the last request of the conversation had: how far the context is filled."""
    rows = ModelUse.objects.filter(conversation_id=conversation_id, message_id__isnull=False).order_by("-pk")
    return rows.values_list(F("input_tokens") + F("output_tokens"), flat=True).first() or 0


def of_people(since: datetime, person: User | None = None) -> list[tuple[str, Used]]:
    """Return what each person's answers took since then, most first; with a `person`, only theirs."""
    rows: QuerySet[ModelUse] = ModelUse.objects.filter(at__gte=since).order_by()
    if person is not None:
        rows = rows.filter(person=person)
    sums: Iterable[Any] = rows.values("person__username").annotate(**SUMS)
    found = [(row["person__username"], _used(row)) for row in sums]
    return sorted(found, key=lambda each: (-each[1].tokens, each[0]))


def over_limit(conversation: Conversation) -> str:
    """Return why no model may be asked in the conversation any more, or by its person today; empty if it may."""
    if settings.MODEL_CONVERSATION_TOKENS or settings.MODEL_CONVERSATION_COST:
        used = of_conversation(delegation.root(conversation.pk))
        if why := _over(CONVERSATION_LIMIT, used.tokens, settings.MODEL_CONVERSATION_TOKENS):
            return why
        if why := _over(CONVERSATION_COST_LIMIT, used.cost or 0, settings.MODEL_CONVERSATION_COST):
            return why
    if settings.MODEL_PERSON_TOKENS or settings.MODEL_PERSON_COST:
        begin = timezone.make_aware(datetime.combine(timezone.localdate(), time()))
        used = _used(ModelUse.objects.filter(person_id=conversation.owner_id, at__gte=begin).aggregate(**SUMS))
        why = _over(LIMIT, used.tokens, settings.MODEL_PERSON_TOKENS)
        return why or _over(COST_LIMIT, used.cost or 0, settings.MODEL_PERSON_COST)
    return ""


@compiled
def _of_family(conversation_id: UUID) -> QuerySet[ModelUse, Any]:
    """The sums of a conversation, and of each that agents have begun below it."""
    below = delegation.Delegation.objects.filter(above_id=conversation_id).order_by().values("conversation_id")
    own, theirs = Q(conversation_id=conversation_id), Q(conversation_id__in=below)
    # By themselves: of a condition with OR, PostgreSQL would look at every row.
    rows, more = (ModelUse.objects.order_by().filter(which).values("conversation_id") for which in (own, theirs))
    return rows.annotate(**SUMS).union(more.annotate(**SUMS), all=True)


@compiled
def _of_messages(conversation_id: UUID, message_ids: list[UUID]) -> QuerySet[ModelUse, Any]:
    rows = ModelUse.objects.filter(conversation_id=conversation_id, message_id__in=message_ids).order_by()
    return rows.values("message_id").annotate(**SUMS)


def _over(sentence: str, used: float, most: float) -> str:
    if not most or used < most:
        return ""
    return sentence.format(used=f"{used:,}", most=f"{most:,}", currency=settings.MODEL_CURRENCY)


def _used(sums: Mapping[str, Any]) -> Used:
    millionths = sums["millionths"]
    counts = {name: sums[name] or 0 for name in ("input", "output", "cached", "reasoning")}
    return Used(**counts, cost=None if millionths is None else int(millionths) / MILLION, unpriced=sums["without"] > 0)
