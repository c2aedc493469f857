"""Changing who decides about a tool, and how much a conversation asks: checked, recorded, and at once.

Calls that were asked about under other rules of a tool are withdrawn. A call that has not started is asked about if its
conversation asks about it now.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from itertools import product
from operator import or_
from typing import Any, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_noop

from hitlchat.accounts import roles
from hitlchat.base.database import durable
from hitlchat.base.problems import Forbidden, Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate import loosening, oversight, perform, question, stated, stopping
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.models import Asks, DecidedBy, Oversight, Strictness, Tool, ToolCall, delegation
from hitlchat.gate.models.tools import MOST_PEOPLE
from hitlchat.gate.oversight import BadWord, Rules, rank
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note

CHANGED = "tool.rules_changed"
ASKS_CHANGED: Final = "conversation.asks_changed"
DEFAULT_ASKS_CHANGED: Final = "conversation.default_asks_changed"
FORGOTTEN: Final = "conversation.forgotten"
LESS: Final = gettext_noop("Calls that need approval only in this conversation can run unseen.")
ONE_PERSON = "Only the person the tool is called for decides. Let approvers or a group decide first."
NOBODY_EACH: Final = gettext_noop(
    "Under these rules, no call could be approved: each step needs an active person of its own."
)
GROUP_GONE: Final = gettext_noop("The rules name a deleted group.")


class BadRules(Invalid):
    """The rules cannot hold; `errors` has a sentence for each field of Rules that is in the way."""


class OnlyAdministrators(Forbidden):
    """Only administrators, as people, say who decides: no program changes what it is held by (SR-27)."""

    sentence = gettext_noop(
        "Only an administrator, signed in or with an approver token, can set who decides calls to a tool."
    )


class OnlyPeople(Forbidden):
    """No program has a conversation ask less: it would be held by that itself (SR-27)."""

    sentence = gettext_noop("Only you, signed in or with an approver token, can make a conversation ask less.")


class Stale(Exception):
    """The rules are others than were seen."""

    def __init__(self) -> None:
        super().__init__("Not saved: someone else changed these rules in the meantime. Review them again.")


def change(tool: Tool, rules: Rules, actor: Actor, *, seen: str | None = None, confirmed: bool = False) -> Rules:
    """Change the rules of `tool` from now on, and return those before. `seen`: the digest of those that were looked at.

    `confirmed`: a person said that fewer or other people may decide. OnlyAdministrators, BadRules, Stale, NotConfirmed;
    Tool.DoesNotExist: it was deleted meanwhile.
    """
    require_administrator(actor)
    check(tool, rules)
    with durable():
        # Of two changes at a time the second sees the first.
        tool = Tool.objects.select_for_update().get(pk=tool.pk)
        before = oversight.of(tool)
        if seen is not None and seen != before.digest:
            raise Stale
        if rules != before:
            weaker = loosening.weaker_rules(before, rules)
            loosening.require(tool.name, weaker, confirmed=confirmed)
            if rules == Rules():
                Oversight.objects.filter(tool=tool).delete()
            else:
                # Its fields are columns.
                columns = {**vars(rules), "digest": rules.digest}
                Oversight.objects.update_or_create(tool=tool, defaults=columns)
            stopping.withdraw_asked_otherwise(tool.pk, actor=actor)
            _note(tool, before, rules, actor, weaker)
    return before


def require_administrator(actor: Actor) -> None:
    """Raises: OnlyAdministrators."""
    user = actor.person
    if user is None or not roles.may_administer(user):
        raise OnlyAdministrators


def delete_group(group: Group, actor: Actor, *, confirmed: bool = False) -> None:
    """Delete a group, and void what was asked of its people. NotConfirmed: the rules of a tool name it."""
    before = [(tool, oversight.of(tool)) for tool in naming(group.pk)]
    if before:
        loosening.require(before[0][0].name, (GROUP_GONE,), confirmed=confirmed)
    group.delete()
    for tool, rules in before:
        _note(tool, rules, oversight.of(tool), actor, (GROUP_GONE,))
        stopping.withdraw_asked_otherwise(tool.pk, actor=actor)


def named(given: Mapping[str, Any]) -> Rules:
    """Return the rules with these fields, which have groups by name. Raises: BadRules, no group has the name"""
    names = {field: given[field] for field in ("group", "escalate_to", "second", "third") if given[field] is not None}
    groups = {field: roles.named_groups().filter(name=name).first() for field, name in names.items()}
    if gone := [field for field, group in groups.items() if group is None]:
        raise BadRules({gone[0]: "There is no group with this name."})
    columns = {**given, **groups, "decided_by": DecidedBy(given["decided_by"])}
    return Rules(**columns | oversight.chain(columns["second"], columns["third"]))


def asked_before(tool: Tool) -> int:
    """Return how many calls were asked about and have not started: a change makes them void."""
    return tool.calls.filter(approval__isnull=False, status__in=stopping.NOT_STARTED).count()


def naming(group_id: int) -> list[Tool]:
    ways = (Q(**{f"oversight__{name}": group_id}) for name in ("group", "second", "third", "escalate_to"))
    return list(Tool.objects.filter(reduce(or_, ways)))


def check(tool: Tool, rules: Rules) -> None:
    """Raises: BadRules."""
    if question.is_one(tool):
        raise BadRules({"decided_by": "This tool asks the conversation's owner, and only they can answer."})
    if problems := _shape(rules) | _order(rules) | _escalation(tool, rules) or _too_few(rules):
        raise BadRules(problems)


def able(rules: Rules) -> QuerySet[User]:
    """Return everyone who could decide by these rules at some time, besides the person it is called for."""
    found = Q(pk__in=[])
    if rules.escalate_to is not None:
        found |= Q(groups=rules.escalate_to)
    if rules.decided_by == DecidedBy.APPROVERS:
        found |= Q(pk__in=roles.deciding(User.objects.all()).values("pk"))
    found |= Q(groups__in=[group for group in rules.steps if group is not None])
    return User.objects.filter(found, is_active=True).order_by("username").distinct()


def begin_strictness(conversation_id: UUID, word: str, actor: Actor) -> None:
    """Have a conversation that is just being made ask so, within the transaction that makes it. Raises: BadWord."""
    _require_word(word)
    if word != Asks.TOOLS:
        Strictness.objects.create(conversation_id=conversation_id, asks=word)
        _note_strictness(conversation_id, Asks.TOOLS, word, actor)


def change_strictness(conversation_id: UUID, word: str, actor: Actor) -> None:
    """Have a conversation ask so from now on, with all below it. Raises: BadWord, OnlyPeople.

    When this returns, no call that it asks about starts unasked any more: what was to run so is asked about instead.
    """
    _require_word(word)
    with durable():
        Strictness.objects.get_or_create(pk=conversation_id, defaults={"asks": Asks.TOOLS})
        # Of two changes at a time the second sees the first.
        row = Strictness.objects.select_for_update().get(pk=conversation_id)
        before, row.asks = row.asks, word
        if rank(word) < rank(before) and not actor.is_person:
            raise OnlyPeople
        if word != before:
            row.save(update_fields=["asks"])
            _note_strictness(conversation_id, before, word, actor)
    # Every start under way that read the word of before ends first, or fails; then the rest is asked about. Each start
    # holds its call until it is committed. One that comes to its call only later, though it read the word before, finds
    # another mark there than it read (oversight.lets_start).
    left = ToolCall.objects.filter(conversation_id__in=delegation.family(conversation_id), status=Status.ALLOWED)
    left.update(owner=uuid4().hex)
    for call_id in list(left.values_list("pk", flat=True)):
        perform.begin(call_id)


def forget_strictness(conversation_id: UUID) -> None:
    """Forget the word of a conversation that is gone, once none of its calls can start any more."""
    with transaction.atomic():
        gone, _ = Strictness.objects.filter(pk=conversation_id).delete()
        if gone:
            note(None, FORGOTTEN, actor=SYSTEM, data=stated.states("conversation", conversation_id))


def note_default_strictness(person: User, before: str, after: str, actor: Actor) -> None:
    """Put on record what new conversations of this person ask about by themselves from now on.

    Raises: BadWord, OnlyPeople.
    """
    _require_word(after)
    if rank(after) < rank(before) and not actor.is_person:
        raise OnlyPeople
    if after != before:
        note(None, DEFAULT_ASKS_CHANGED, actor=actor, data={"person": person.get_username(), **_asks(before, after)})


def _require_word(word: str) -> None:
    if word not in Asks.values:
        raise BadWord


def _note_strictness(conversation_id: UUID, before: str, after: str, actor: Actor) -> None:
    data = {"conversation": str(conversation_id), **_asks(before, after)}
    note(None, ASKS_CHANGED, actor=actor, data=data | stated.states("conversation", conversation_id))


def _asks(before: str, after: str) -> dict[str, Any]:
    weaker = {"weaker": [LESS]} if rank(after) < rank(before) else {}
    return {"before": {"asks": before}, "after": {"asks": after}} | weaker


def _note(tool: Tool, before: Rules, after: Rules, actor: Actor, weaker: tuple[str, ...]) -> None:
    data: dict[str, Any] = {"tool": tool.name, "before": before.as_json, "after": after.as_json}
    data |= stated.states("rules", tool.pk)
    note(None, CHANGED, actor=actor, data=data | ({"weaker": list(weaker)} if weaker else {}))


def _shape(rules: Rules) -> dict[str, str]:
    found: dict[str, str] = {}
    a_group_decides = rules.decided_by == DecidedBy.GROUP
    if a_group_decides and rules.group is None:
        found["group"] = "Expected the group whose members decide."
    elif rules.group is not None and not a_group_decides:
        found["group"] = "Expected no group, since no group decides."
    if not 1 <= rules.quorum <= MOST_PEOPLE:
        found["quorum"] = translatable(f"Expected a number of people from 1 to {MOST_PEOPLE}.")
    elif rules.decided_by == DecidedBy.REQUESTER and rules.quorum > 1:
        found["quorum"] = ONE_PERSON
    if rules.decided_by == DecidedBy.REQUESTER and rules.not_the_requester:
        found["not_the_requester"] = ONE_PERSON
    return found


def _order(rules: Rules) -> dict[str, str]:
    """Return the problem of a chain, which every rule has that names a second or third group."""
    if not rules.in_order:
        return {}
    if rules.decided_by != DecidedBy.GROUP:
        return {"second": gettext_noop("Expected no second group, since no group decides.")}
    if None in rules.steps[1:]:
        return {"second": gettext_noop("Expected the group that approves second.")}
    if len({*rules.steps}) < len(rules.steps):
        return {"second": gettext_noop("Expected another group for each step.")}
    return {}


def _escalation(tool: Tool, rules: Rules) -> dict[str, str]:
    after, waits = rules.escalate_after_seconds, tool.deadline_seconds or settings.HITL_TIMEOUT_SECONDS
    if rules.escalate_to is None:
        return {} if after is None else {"escalate_to": "Expected the group that may also decide after that time."}
    if after is None or not 1 <= after < waits:
        most = waits - 1
        words = translatable(
            f"Expected a number of seconds from 1 to {most}: a question about this tool is open for {waits} seconds."
        )
        return {"escalate_after_seconds": words}
    return {}


def _too_few(rules: Rules) -> dict[str, str]:
    """Return the problem of rules by which nobody could ever approve a call."""
    if rules.in_order:
        return {} if _has_a_person_each(rules) else {"second": NOBODY_EACH}
    count = able(rules).count()
    if count >= rules.quorum or rules.decided_by == DecidedBy.REQUESTER:
        return {}
    needed = rules.quorum
    if count == 0:
        words = translatable(f"Under these rules, nobody could decide. Required approvals: {needed}.")
    elif count == 1:
        words = translatable(f"Under these rules, only 1 active person could decide. Required approvals: {needed}.")
    else:
        words = translatable(
            f"Under these rules, only {count} active people could decide. Required approvals: {needed}."
        )
    return {"quorum": words}


def _has_a_person_each(rules: Rules) -> bool:
    """Return whether each step of a chain has somebody, and nobody is needed twice."""
    each = (able(replace(rules, in_order=False, group=group))[: rules.quorum] for group in rules.steps)
    # Of more people than there are steps one is always left.
    return any(len({*people}) == rules.quorum for people in product(*each))
