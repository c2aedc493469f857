"""The tree of conversations: which call of an agent tool each came out of, and what of the ones above binds it.

A person sees one conversation, whatever agents work for it. So its grants and its own word on what it asks about hold
for all below it, its card and the record name the agents in between, and nothing runs unasked further down that would
ask at the top.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Q

from hitlchat.base.rows import Row
from hitlchat.base.statements import compiled
from hitlchat.gate.models.calls import ToolCall

Agents = list[dict[str, str]]


class Delegation(Row):
    """One step of the chain above a conversation that a call of an agent tool began.

    The conversation has one row for each agent above it, its own with distance 1: which call it was, and in which
    conversation (`above_id`; none, if a client called the agent). Rows outlive conversations, as calls do.
    """

    conversation_id = models.UUIDField()
    distance = models.PositiveSmallIntegerField()
    call = models.ForeignKey(ToolCall, on_delete=models.PROTECT, related_name="+", db_index=False)
    above_id = models.UUIDField(null=True)

    class Meta:
        ordering = ["conversation_id", "distance"]
        constraints = [
            models.UniqueConstraint(fields=["conversation_id", "distance"], name="one_agent_at_a_distance"),
            # However often its call is taken up, an agent begins once.
            models.UniqueConstraint(fields=["call"], condition=Q(distance=1), name="one_conversation_of_a_call"),
        ]
        indexes = [models.Index(fields=["above_id"], condition=Q(above_id__isnull=False), name="delegated_below")]


def begin(call: ToolCall, conversation_id: UUID) -> None:
    """Have a conversation that is just being made belong to `call`, within the transaction that starts the call.

    IntegrityError: another one does already.
    """
    above = [Delegation(conversation_id=conversation_id, distance=1, call=call, above_id=call.conversation_id)]
    above += [
        Delegation(conversation_id=conversation_id, distance=row.distance + 1, call=row.call, above_id=row.above_id)
        for row in steps(call.conversation_id)
    ]
    Delegation.objects.bulk_create(above)


def steps(conversation_id: UUID | None) -> list[Delegation]:
    """Return the steps above a conversation with their calls, the nearest first; none for a person's own."""
    return [] if conversation_id is None else list(_steps(conversation_id))


def agents(conversation_id: UUID | None) -> Agents:
    """Return the agents through which a conversation's calls come, the outermost first: tool and call of each."""
    if conversation_id is None:
        return []
    return [{"tool": name, "call": str(call_id)} for name, call_id in _agents(conversation_id)]


def agents_of(conversation_ids: Collection[UUID]) -> dict[UUID | None, Agents]:
    """Return the same of those conversations that have any."""
    found: dict[UUID | None, Agents] = defaultdict(list)
    rows = Delegation.objects.filter(conversation_id__in=conversation_ids).order_by("-distance")
    for conversation_id, name, call_id in rows.values_list("conversation_id", "call__tool_name", "call_id"):
        found[conversation_id].append({"tool": name, "call": str(call_id)})
    return dict(found)


def root(conversation_id: UUID) -> UUID:
    """Return the conversation at the top, which a person sees; itself, if none is above it."""
    return roots([conversation_id])[conversation_id]


def roots(conversation_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Return the conversation at the top of each."""
    return {each: (above or [each])[-1] for each, above in _above(conversation_ids).items()}


def with_those_above(conversation_ids: Collection[UUID]) -> dict[UUID, list[UUID]]:
    """Return each with all conversations above it: what these ask about, it asks about."""
    return {each: [each, *above] for each, above in _above(conversation_ids).items()}


def family(conversation_id: UUID) -> list[UUID]:
    """Return a conversation and all that agents have begun below it."""
    below = Delegation.objects.filter(above_id=conversation_id).order_by("conversation_id")
    return [conversation_id, *below.values_list("conversation_id", flat=True).distinct()]


def begun_by(call_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Return the conversations that these calls began."""
    return dict(Delegation.objects.filter(call_id__in=call_ids, distance=1).values_list("call_id", "conversation_id"))


def below(call_ids: Collection[UUID]) -> list[UUID]:
    """Return the conversations of the agents that these calls began, and of all agents below those."""
    rows = Delegation.objects.filter(call_id__in=call_ids).values_list("conversation_id", flat=True)
    return list(rows.distinct())


def binding(conversation_id: Any) -> Q:
    """Return the condition on rows by conversation that one binds this conversation; it may be an outer reference."""
    above = Delegation.objects.filter(conversation_id=conversation_id, above_id__isnull=False)
    return Q(pk__in=above.values("above_id"))


@compiled
def _steps(conversation_id: UUID) -> models.QuerySet[Delegation]:
    return Delegation.objects.filter(conversation_id=conversation_id).select_related("call").order_by("distance")


@compiled
def _agents(conversation_id: UUID) -> models.QuerySet[Delegation, tuple[str, UUID]]:
    rows = Delegation.objects.filter(conversation_id=conversation_id).order_by("-distance")
    return rows.values_list("call__tool_name", "call_id")


def _above(conversation_ids: Collection[UUID]) -> dict[UUID, list[UUID]]:
    """Return the conversations above each, the nearest first."""
    found: dict[UUID, list[UUID]] = {each: [] for each in conversation_ids}
    rows = Delegation.objects.filter(conversation_id__in=conversation_ids, above_id__isnull=False).order_by("distance")
    for conversation_id, above_id in rows.values_list("conversation_id", "above_id"):
        assert above_id is not None
        found[conversation_id].append(above_id)
    return found
