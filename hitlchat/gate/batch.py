"""Several calls, one answer: a batch of one tool, and identical calls, which wait together (SR-41).

Each has its own decision and its own record. The calls of a batch stand in one table, the odd one first: what differs
among them, and what it adds up to. It is made from their disclosures alone; what a cell cuts off, and what is in no
column, is on each call's own list below.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low
from typing import Any, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.base.visible import Seen, see
from hitlchat.gate import attention, decide, deciders, meant, pace, question, queue, stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.card import Card, as_shown, in_order
from hitlchat.gate.contents import spelled
from hitlchat.gate.counting import AlreadyCounted
from hitlchat.gate.deciders import NotEntitled, sees
from hitlchat.gate.models import Approval, Decision, Verdict
from hitlchat.gate.status import Status

# From this risk level on each call is looked at and answered by itself.
TOO_RISKY = 4
MOST_TOGETHER = 50
TOO_FAST = gettext_noop("Your last approvals came too fast: answer these calls individually. Nothing was decided.")

MOST_COLUMNS: Final = 6
LONGEST_CELL: Final = 60  # characters of a value in a cell
# Fewer have no usual value that another one could differ from.
FEWEST: Final = 3
# A number so many times the usual one is odd.
FAR: Final = 3
# Sums of larger ones would be read wrong.
LARGEST: Final = 10**15

_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,12})?\Z")

Shown = dict[str, Any]  # a disclosure
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
class Cell:
    """A value; None if the call gives none. `differs`: from that of most of the others."""

    text: Seen | None
    differs: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Line:
    """One call, by its place among those given. `differs`: in a value, be it in no column, from most of the others."""

    place: int
    cells: tuple[Cell, ...]
    differs: bool


@dataclass(frozen=True)
class Overview:
    """A table. `sums`: below each column, or nothing; `same`: names and values that all calls share; `more`: how many
    other arguments differ.
    """

    columns: tuple[Seen, ...]
    lines: tuple[Line, ...]
    sums: tuple[str, ...]
    same: tuple[tuple[Seen, Cell], ...]
    more: int

    @property
    def has_sums(self) -> bool:
        return any(self.sums)


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
        is_alone = card.asks or card.alerts or card.caution or card.matter or card.attempt > 1 or _asked_again(row)
        if card.care < TOO_RISKY and may and not is_alone:
            found.setdefault(_definition(row), []).append((row, card))
    made = []
    for some in (same[:MOST_TOGETHER] for same in found.values() if len(same) > 1):
        table = overview([row.disclosure for row, _ in some])
        made.append(Group(tuple(some[line.place][1] for line in table.lines), table))
    return made


def overview(calls: Sequence[Shown]) -> Overview:
    """Return the table of these calls, of which there are two at least."""
    names = list(dict.fromkeys(name for shown in calls for part in in_order(shown) for name in part))
    differing = {name for name in names if len({_key(shown, name) for shown in calls}) > 1}
    sums = {name: text for name in names if (text := _sum(calls, name))}
    columns = [name for name in names if name in differing or name in sums]
    columns.sort(key=lambda name: min(meant.weight(name, shown["arguments"].get(name)) for shown in calls))
    odd = {name: _odd(calls, name) for name in columns}
    oddities = Counter(place for places in odd.values() for place in places)
    chosen = columns[:MOST_COLUMNS]
    lines = [
        Line(place, tuple(_cell(shown, name, differs=place in odd[name]) for name in chosen), place in oddities)
        for place, shown in enumerate(calls)
    ]
    same = [name for name in names if name not in differing and name not in sums]
    return Overview(
        columns=tuple(map(see, chosen)),
        lines=tuple(sorted(lines, key=lambda line: oddities[line.place], reverse=True)),
        sums=tuple(sums.get(name, "") for name in chosen),
        same=tuple((see(name), _cell(calls[0], name)) for name in same),
        more=len(columns) - len(chosen),
    )


def on_move(*, call_id: UUID, status: Status, **_: Any) -> None:
    if status not in (Status.APPROVED, Status.DECLINED, Status.ANSWERED):
        return
    approval = _joined(call_id).one()
    if approval is None or not (others := queue.twins(approval)):
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
    if (shown := as_shown(row)) is None or shown.alerts or shown.caution:
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
            words = more if call.status == Status.WAITING else gettext_noop("Approved.")
        else:
            decide.decline(item.approval, actor, reason=reason, looked=looked)
            words = gettext_noop("Declined.")
    except decide.AlreadySettled as late:
        label = Status(late.call.status).label.lower()
        return Outcome(item.approval, prompt, f"It was already answered ({label}); your answer was not recorded.")
    except (decide.OtherDigest, decide.CautionUnread, decide.NoSuchApproval, NotEntitled, AlreadyCounted) as error:
        return Outcome(item.approval, prompt, str(error))
    return Outcome(item.approval, prompt, words, counted=True)


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


def _key(shown: Shown, name: str) -> str:
    """Return what tells a value from another one; that it is not given is a value, too."""
    return canonical.dumps(shown["arguments"][name]) if name in shown["arguments"] else ""


def _cell(shown: Shown, name: str, *, differs: bool = False) -> Cell:
    if name not in shown["arguments"]:
        return Cell(None, differs)
    text = spelled(shown["arguments"][name], indent=None)
    return Cell(see(text[:LONGEST_CELL]), differs, cut=len(text) > LONGEST_CELL)


def _odd(calls: Sequence[Shown], name: str) -> set[int]:
    """Return the places of the calls whose value differs from what is usual among these: from what most of them give,
    else, of addresses, from the host of most, or, of numbers, by far.
    """
    if len(calls) < FEWEST:
        return set()
    half = len(calls) / 2
    usual, many = Counter(keys := [_key(shown, name) for shown in calls]).most_common(1)[0]
    if many > half:
        return {place for place, key in enumerate(keys) if key != usual}
    usual, many = Counter(hosts := [_host(shown["arguments"].get(name)) for shown in calls]).most_common(1)[0]
    if usual and many > half:
        return {place for place, host in enumerate(hosts) if host != usual}
    numbers = _numbers(calls, name)
    usual_number = median_low(map(abs, numbers)) if numbers else 0
    return {
        place
        for place, number in enumerate(numbers)
        if abs(number) > FAR * usual_number > 0 or number < 0 < usual_number
    }


def _host(value: Any) -> str:
    """Return the host of a URL or of an e-mail address, and nothing of other values."""
    if not isinstance(value, str) or len(value) > meant.READ:
        return ""
    try:
        host = urlsplit(value).hostname
    except ValueError:
        host = None
    return host or (value.rpartition("@")[2].lower() if "@" in value else "")


def _sum(calls: Sequence[Shown], name: str) -> str:
    """Return what an amount adds up to, by currency if the schema tells it; nothing of what is no amount."""
    numbers = _numbers(calls, name) if _is_amount(calls[0], name) else []
    if not all(abs(number) < LARGEST for number in numbers):
        return ""
    sums: dict[str, Decimal] = {}
    for shown, number in zip(calls, numbers, strict=False):
        currency = shown.get("currencies", {}).get(name, "")
        sums[currency] = sums.get(currency, Decimal(0)) + number
    return " + ".join(f"{meant.grouped(total)} {currency}".rstrip() for currency, total in sums.items())


def _numbers(calls: Sequence[Shown], name: str) -> list[Decimal]:
    """Return the number that each call gives, as a text only where it is an amount; nothing if one gives none."""
    found = []
    for shown in calls:
        value = shown["arguments"].get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not (isinstance(value, str) and _DECIMAL.match(value) and _is_amount(shown, name)):
            return []
        found.append(Decimal(str(value)))
    return found


def _is_amount(shown: Shown, name: str) -> bool:
    currency = shown.get("currencies", {}).get(name, "")
    return bool(currency) or meant.weight(name, shown["arguments"].get(name)) == meant.AMOUNT
