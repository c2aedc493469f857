"""Several calls, one answer: a batch of one tool, and identical calls that wait together (SR-41, joining.py).

Each has its own decision and its own record.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import attention, decide, deciders, joining, pace, question, stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.card import Card, as_shown
from hitlchat.gate.deciders import AlreadyCounted, NotEntitled, sees
from hitlchat.gate.models import Approval, Decision, Verdict
from hitlchat.gate.overview import Overview, overview
from hitlchat.gate.status import Status

# From this risk level on each call is looked at and answered by itself.
TOO_RISKY = 4
MOST_TOGETHER = 50
TOO_FAST = gettext_noop("Your last approvals came too fast: answer these calls individually. Nothing was decided.")

Answer = Literal["approve", "decline"]


class NotTogether(Invalid):
    """The calls can't be answered at once, so none was; the message says why."""

    field = "items"


@dataclass(frozen=True)
class Item:
    """One approval, and the digest of what was shown of it."""

    approval: UUID
    digest: str


@dataclass(frozen=True)
class Outcome:
    """One of the answers' outcomes: `counted`, or the sentence that says why not. `prompt` is what was asked."""

    approval: UUID
    prompt: str
    said: str
    counted: bool = False


@dataclass(frozen=True)
class Group:
    """The cards of calls of one tool that may be answered together, in the order of their table."""

    cards: tuple[Card, ...]
    overview: Overview

    @property
    def key(self) -> str:
        """Return the name of this very set on a page."""
        return canonical.sha256([card.key for card in self.cards])[:16]

    @property
    def hidden(self) -> int:
        """Characters that are folded away in all of them."""
        return sum(card.hidden for card in self.cards)


def answer(
    items: Sequence[Item],
    verdict: Answer,
    actor: Actor,
    *,
    reason: str = "",
    opened: bool | None = None,
    on_page: bool = False,
) -> list[Outcome]:
    """Return each of `items` answered on its own, in order. `opened`: whether folded text was, as the page claims;
    `on_page`: where cards ask whoever is quick for a value.

    NotTogether, NoSuchApproval, NotEntitled: none was decided.
    """
    rows = _checked(items, actor)
    can_ask = on_page and verdict == "approve" and any(deciders.care(row) >= pace.FROM for row in rows.values())
    if can_ask and pace.is_quick(actor):
        raise NotTogether(TOO_FAST)
    looked = Looked(opened, together=attention.together(rows.values(), actor))
    return [_one(item, verdict, actor, rows[item.approval].prompt, reason=reason, looked=looked) for item in items]


def groups(rows: Iterable[Approval], cards: Iterable[Card]) -> list[Group]:
    """Return those of `cards`, which are those of `rows`, that may be answered together."""
    found: dict[str, list[tuple[Approval, Card]]] = {}
    for row, card in zip(rows, cards, strict=True):
        may = card.who is None or card.who.stance == "may"
        is_alone = card.asks or card.alerts or card.matter or card.attempt > 1 or _asked_again(row)
        if card.care < TOO_RISKY and may and not is_alone:
            found.setdefault(_definition(row), []).append((row, card))
    return [_group(some[:MOST_TOGETHER]) for some in found.values() if len(some) > 1]


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status not in (Status.APPROVED, Status.DECLINED, Status.ANSWERED):
        return
    approval = _joined(call_id).one()
    if approval is None or not (others := joining.twins(approval)):
        return
    # By its verdict: when people answer at once, times alone do not tell which answer brought it to this status.
    yes = Q(verdict=Verdict.APPROVE)
    decision = approval.decisions.filter(yes if status == Status.APPROVED else ~yes).order_by("decided_at").last()
    if decision is not None:
        for other in others:
            _answer(other, approval, decision)


@compiled
def _joined(call_id: UUID) -> QuerySet[Approval]:
    return Approval.objects.select_related("call").filter(call_id=call_id).exclude(same="")


def _definition(approval: Approval) -> str:
    """Return what calls must have in common to be answered together."""
    tool = approval.disclosure["tool"]
    return f"{tool['id']} {tool['definition']}"


def _group(some: list[tuple[Approval, Card]]) -> Group:
    table = overview([row.disclosure for row, _ in some])
    return Group(tuple(some[line.place][1] for line in table.lines), table)


def _checked(items: Sequence[Item], actor: Actor) -> dict[UUID, Approval]:
    ids = {item.approval for item in items}
    if not 2 <= len(items) <= MOST_TOGETHER or len(ids) != len(items):
        raise NotTogether(f"Between 2 and {MOST_TOGETHER} different calls can be answered together.")
    rows = list(Approval.objects.select_related("call__tool").filter(pk__in=ids))
    if len(rows) != len(ids) or not all(sees(actor, row) for row in rows):
        raise decide.NoSuchApproval(decide.NOT_YOURS)
    for row in rows:
        decide.require(actor, row)
    if len({_definition(row) for row in rows}) > 1:
        raise NotTogether(gettext_noop("Only calls to the same tool can be answered together. Nothing was decided."))
    if why := next(filter(None, map(_why_alone, rows)), None):
        raise NotTogether(why)
    return {row.pk: row for row in rows}


def _why_alone(row: Approval) -> str | None:
    """Return why the call is answered by itself, in a sentence."""
    call = row.call
    if deciders.care(row) >= TOO_RISKY:
        return translatable(f"Calls of risk L{TOO_RISKY} and above are answered one by one. Nothing was decided.")
    if question.is_one(call):
        return gettext_noop("Each question needs its own answer. Nothing was decided.")
    if _asked_again(row):
        return gettext_noop("A call that asks again is answered individually. Nothing was decided.")
    if row.disclosure.get("attempt"):
        return gettext_noop("A further attempt is answered individually. Nothing was decided.")
    if (shown := as_shown(row)) is None or shown.alerts:
        return gettext_noop("A call with a warning is answered individually. Nothing was decided.")
    return None


def _asked_again(row: Approval) -> bool:
    """Return whether the call changed since it was approved once: then it is answered by itself."""
    return row.call.round > 1 or row.disclosure.get("again") is not None


def _one(item: Item, verdict: Answer, actor: Actor, prompt: str, *, reason: str, looked: Looked) -> Outcome:
    try:
        if verdict == "approve":
            call = decide.approve(item.approval, actor, digest=item.digest, looked=looked).call
            more = gettext_noop("Your approval is recorded. More people must approve.")
            said = more if call.status == Status.WAITING else gettext_noop("Approved.")
        else:
            decide.decline(item.approval, actor, reason=reason, looked=looked)
            said = gettext_noop("Declined.")
    except decide.AlreadySettled as late:
        label = Status(late.call.status).label.lower()
        return Outcome(item.approval, prompt, f"It was already answered ({label}); your answer was not recorded.")
    except (decide.OtherDigest, decide.NoSuchApproval, NotEntitled, AlreadyCounted) as error:
        return Outcome(item.approval, prompt, str(error))
    return Outcome(item.approval, prompt, said, counted=True)


def _answer(other: Approval, approval: Approval, decision: Decision) -> None:
    actor = Actor(decision.person_id, decision.means, decision.client, decision.token_name)  # type: ignore[arg-type]
    if decision.verdict == Verdict.APPROVE:
        name = approval.call.model_call_id
        why = translatable(f"the same call was approved and runs once, as {name}; its outcome is there")
        if decision.edited_arguments is not None:
            why = translatable(
                f"the same call was approved with other arguments and runs once, as {name}; its outcome is there"
            )
        stopping.withdraw_question(other.call_id, other.call.round, actor=actor, why=why)
        return
    # Answered otherwise in the same moment, which stands; or not theirs, or not yet, who came in after some time.
    with suppress(decide.AlreadySettled, decide.OtherDigest, decide.NoSuchApproval, NotEntitled):
        looked = Looked(decision.opened, decision.first_shown_at)
        if decision.verdict == Verdict.ANSWER:
            decide.answer(other.pk, actor, approval.call.result, looked=looked)
            return
        suggests = decision.verdict == Verdict.SUGGEST
        decide.decline(other.pk, actor, reason=decision.reason, suggests=suggests, looked=looked)
