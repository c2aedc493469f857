"""Oversight: who decides about a tool's calls, and whether their conversation asks about them by itself.

Who decides is frozen when a question is asked. A conversation may ask about more calls than the tools and rules do,
never about fewer; an agent's asks at least as much as those above it. ruling.py changes both.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_noop

from hitlchat.base import canonical, database
from hitlchat.base.problems import Invalid
from hitlchat.base.statements import Where, compiled, condition
from hitlchat.gate import question
from hitlchat.gate.models import Asks, DecidedBy, Oversight, Strictness, Tool, ToolCall, delegation
from hitlchat.gate.policies import Ask, Unusable
from hitlchat.gate.status import Status

HIGHEST_RISK = 5
CHANGED = gettext_noop("who decides about this tool was changed after it was asked")

Frozen = dict[str, Any]
# What `freeze` puts on a call.
FROZEN: Final = (
    *("decided_by", "decider_group", "quorum", "not_the_requester"),
    *("escalates_to", "escalates_at", "oversight_digest"),
)

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


@dataclass(frozen=True)
class Rules:
    """The rules of one tool. By default the person it is called for decides, with one yes."""

    decided_by: DecidedBy = DecidedBy.REQUESTER
    group: Group | None = None
    quorum: int = 1
    not_the_requester: bool = False
    escalate_to: Group | None = None
    escalate_after_seconds: int | None = None
    # A chain: the group, then the second, then the third if there is one, each with one yes; see `chain`.
    in_order: bool = False
    second: Group | None = None
    third: Group | None = None

    @property
    def steps(self) -> tuple[Group | None, ...]:
        """Return the groups in their order; None: one that was deleted, or that no group decides."""
        return (self.group, self.second, self.third)[: self.quorum if self.in_order else 1]

    @property
    def as_json(self) -> dict[str, Any]:
        """Return the rules for the record; the digest is made of it."""
        order = {"inOrder": True, "second": _named(self.second), "third": _named(self.third)} if self.in_order else {}
        return {
            "decidedBy": self.decided_by.value,
            "group": _named(self.group),
            "quorum": self.quorum,
            "notTheRequester": self.not_the_requester,
            "escalateTo": _named(self.escalate_to),
            "escalateAfterSeconds": self.escalate_after_seconds,
            **order,
        }

    @property
    def digest(self) -> str:
        """Empty where the requester decides. By the groups' numbers: another name is no other rule."""
        if self == Rules():
            return ""
        groups = {"group": _number(self.group), "escalateTo": _number(self.escalate_to)}
        order = {"second": _number(self.second), "third": _number(self.third)} if self.in_order else {}
        return canonical.sha256(self.as_json | groups | order)


def of(tool: Tool) -> Rules:
    return _rules(_row(tool))


def chain(second: Group | None, third: Group | None) -> dict[str, Any]:
    """Return what these groups after the first make of rules; nothing, where there are none."""
    if second is None and third is None:
        return {}
    return {"in_order": True, "quorum": 3 if third else 2, "second": second, "third": third}


def in_turn(shown: Frozen) -> list[int | None]:
    """Return the groups of a chain by number, in their order; empty where there is none."""
    names = ("group", "second", "third")[: shown["quorum"]] if shown.get("inOrder") else ()
    return [shown[name] and shown[name]["id"] for name in names]


def whose_turn(shown: Frozen, call: ToolCall) -> dict[str, Any] | None:
    """Return the group of a chain that is asked now, as it was disclosed; None where there is no chain."""
    groups = [shown[name] for name in ("group", "second", "third") if shown.get("inOrder") and shown[name]]
    return next((group for group in groups if group["id"] == call.decider_group), None)


def freeze(call: ToolCall, tool: Tool) -> Frozen:
    """Write the present rules onto a call that is about to be asked about, and return them for its disclosure."""
    row = _row(tool)
    rules = _rules(row)
    call.decided_by, call.decider_group = rules.decided_by, _number(rules.group)
    call.quorum, call.not_the_requester = rules.quorum, rules.not_the_requester
    call.escalates_to, call.escalates_at = _number(rules.escalate_to), _from_now(rules.escalate_after_seconds)
    call.oversight_digest = row.digest if row else ""
    return {
        **rules.as_json,
        "escalatesAt": _iso(call.escalates_at),
        "freshSignInMinutes": settings.HITL_FRESH_SIGN_IN_MINUTES if tool.care >= HIGHEST_RISK else None,
        "digest": call.oversight_digest,
    }


def care(shown: Mapping[str, Any]) -> int:
    """Return the level that what a yes needs goes by, as of when it was asked. `shown`: the disclosure."""
    # Older ones have no inherent risk.
    risk = int(shown.get("risk", HIGHEST_RISK))
    return max(risk, int(shown.get("inherentRisk", risk)))


def again(before: Frozen, call: ToolCall) -> Frozen:
    """Return the same rules for asking once more; the time before others may decide starts again."""
    call.escalates_at = _from_now(before["escalateAfterSeconds"])
    return {**before, "escalatesAt": _iso(call.escalates_at)}


def is_as_shown(shown: Frozen, call: ToolCall) -> bool:
    """Return whether the call's row has what its disclosure says; of a chain, the group whose turn it is."""
    group, later = (shown[name] and shown[name]["id"] for name in ("group", "escalateTo"))
    disclosed = [shown["decidedBy"], shown["quorum"], shown["notTheRequester"], later, shown["escalatesAt"]]
    row = [call.decided_by, call.quorum, call.not_the_requester, call.escalates_to, _iso(call.escalates_at)]
    is_same = [*disclosed, shown["digest"]] == [*row, call.oversight_digest]
    return is_same and call.decider_group in (in_turn(shown) or [group])


def stands() -> Q:
    """Return the condition, in the moment that a call is moved, that it was asked under its tool's present rules."""
    rows = Oversight.objects.filter(tool_id=OuterRef("tool_id"))
    # Of a chain, whose turn it is changes; that one of its groups was deleted, the digest does not tell.
    whole = Q(in_order=True, group__isnull=False, second__isnull=False) & (Q(quorum=2) | Q(third__isnull=False))
    same = rows.annotate(one=Coalesce("group_id", Value(0)), other=Coalesce("escalate_to_id", Value(0))).filter(
        Q(in_order=False, one=Coalesce(OuterRef("decider_group"), Value(0))) | whole,
        digest=OuterRef("oversight_digest"),
        other=Coalesce(OuterRef("escalates_to"), Value(0)),
    )
    return (Q(oversight_digest="") & ~Exists(rows)) | Exists(same)


def has_changed(call: ToolCall) -> bool:
    """Return whether the rules have changed since the call was asked about."""
    return not _standing(call.pk).exists()


def asked_otherwise(tool_id: Any) -> Q:
    """Select calls of this tool that were asked about under rules that have changed since."""
    return Q(tool_id=tool_id, approval__isnull=False) & ~stands()


def strictness_of(conversation_id: UUID | None) -> str:
    """Return the word that holds in the conversation; `tools` where there is none."""
    if conversation_id is None:
        return Asks.TOOLS.value
    return strictest(Asks.TOOLS.value, *_words(conversation_id))


def strictness_of_each(conversation_ids: Collection[UUID]) -> dict[UUID, str]:
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


def asks_under(word: str, risk: int) -> Ask | None:
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


def asks_about(conversation_id: UUID | None, risk: int) -> Ask | None:
    """Return why a call of this risk is asked about in the conversation, if that asks about it by itself."""
    return asks_under(strictness_of(conversation_id), risk)


def asks_about_call(call: ToolCall) -> Ask | None:
    """Return why a call that was to run unasked must be asked about after all. `call` is read with its tool."""
    return asks_about(call.conversation_id, _risk(call)) if call.status == Status.ALLOWED else None


def lets_start(call: ToolCall) -> Where:
    """Return the condition, in the moment that a call is moved, that no conversation that binds it asks about it.

    What a person approved has been asked about. The word is read from another table, and so may be a moment old by the
    time that the call is written: whoever changes it writes a mark, `owner`, on each call that has not started.
    """
    if call.status != Status.ALLOWED or call.conversation_id is None:
        return Where()
    return _lets_mild_start(call.owner) if _risk(call) <= MILD else _lets_start(call.owner)


def _row(tool: Tool) -> Oversight | None:
    if question.is_one(tool):
        # Nobody else can answer in the name of the person who is asked.
        return None
    return _of_tool(tool.pk).one()


@compiled
def _of_tool(tool_id: UUID) -> QuerySet[Oversight]:
    return Oversight.objects.select_related("group", "escalate_to", "second", "third").filter(tool_id=tool_id)


@compiled
def _standing(call_id: UUID) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(stands(), pk=call_id)


def _rules(row: Oversight | None) -> Rules:
    if row is None:
        return Rules()
    columns = {each.name: getattr(row, each.name) for each in fields(Rules)}
    return Rules(**columns | {"decided_by": DecidedBy(row.decided_by)})


def _named(group: Group | None) -> dict[str, Any] | None:
    return {"id": group.pk, "name": group.name} if group else None


def _number(group: Group | None) -> int | None:
    return group.pk if group else None


def _from_now(seconds: int | None) -> datetime | None:
    return database.now() + timedelta(seconds=seconds) if seconds is not None else None


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


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
