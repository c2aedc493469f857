"""Several calls of one tool answered together: each is its own decision and its own record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from hitlchat.base import canonical
from hitlchat.gate import attention, decide, disclosure
from hitlchat.gate.actor import Actor
from hitlchat.gate.attention import Looked
from hitlchat.gate.card import Card
from hitlchat.gate.deciders import NotEntitled, sees
from hitlchat.gate.models import Approval
from hitlchat.gate.quorum import AlreadyCounted
from hitlchat.gate.status import Status

# From this risk level on each call is looked at and answered by itself.
TOO_RISKY = 4
MOST_TOGETHER = 50

Answer = Literal["approve", "decline"]


class NotTogether(ValueError):
    """These calls can't be answered at once, so none was; the message says why."""


@dataclass(frozen=True)
class Item:
    """One approval, and the digest of what was shown of it."""

    approval: UUID
    digest: str


@dataclass(frozen=True)
class Outcome:
    """What came of one of the answers: `counted`, or the sentence that says why not. `prompt` is what was asked."""

    approval: UUID
    prompt: str
    said: str
    counted: bool = False


@dataclass(frozen=True)
class Group:
    """The cards of calls of one tool that may be answered together."""

    cards: tuple[Card, ...]

    @property
    def key(self) -> str:
        """Names this very set on a page."""
        return canonical.sha256([card.key for card in self.cards])[:16]

    @property
    def hidden(self) -> int:
        """Characters that are folded away in all of them."""
        return sum(card.hidden for card in self.cards)


def answer(
    items: Sequence[Item], verdict: Answer, actor: Actor, *, reason: str = "", opened: bool | None = None
) -> list[Outcome]:
    """Each of `items` answered on its own, in order. `opened`: whether folded text was, as the page claims.

    NotTogether, NoSuchApproval, NotEntitled: none was decided.
    """
    rows = _checked(items, actor)
    looked = Looked(opened, together=attention.together(rows.values(), actor))
    return [_one(item, verdict, actor, rows[item.approval].prompt, reason=reason, looked=looked) for item in items]


def groups(rows: Iterable[Approval], cards: Iterable[Card]) -> list[Group]:
    """Those of `cards`, which are those of `rows`, that may be answered together."""
    found: dict[str, list[Card]] = {}
    for row, card in zip(rows, cards, strict=True):
        may = card.who is None or card.who.stance == "may"
        if card.risk < TOO_RISKY and may and not _asked_again(row):
            found.setdefault(_definition(row), []).append(card)
    return [Group(tuple(group[:MOST_TOGETHER])) for group in found.values() if len(group) > 1]


def _definition(approval: Approval) -> str:
    """What calls must have in common to be answered together."""
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
        raise NotTogether("Only calls of the same tool can be answered together. Nothing was decided.")
    if any(_risk(row) >= TOO_RISKY for row in rows):
        raise NotTogether(f"Calls of risk L{TOO_RISKY} and above are answered one by one. Nothing was decided.")
    if any(_asked_again(row) for row in rows):
        raise NotTogether("A call that is asked about again is answered by itself. Nothing was decided.")
    return {row.pk: row for row in rows}


def _asked_again(row: Approval) -> bool:
    """What changed since it was approved once is to be looked at by itself."""
    return row.call.round > 1 or row.disclosure.get("again") is not None


def _risk(row: Approval) -> int:
    """As it was shown, or as it is by now: the higher of both."""
    now = row.call.tool.risk_level if row.call.tool else 0
    return max(disclosure.said(row), row.call.risk_level, now)


def _one(item: Item, verdict: Answer, actor: Actor, prompt: str, *, reason: str, looked: Looked) -> Outcome:
    try:
        if verdict == "approve":
            if decide.approve(item.approval, actor, digest=item.digest, looked=looked).call.status == Status.WAITING:
                return Outcome(item.approval, prompt, "Your yes counts. It needs more people's.", counted=True)
        else:
            decide.decline(item.approval, actor, reason=reason, looked=looked)
    except decide.AlreadySettled as late:
        word = Status(late.call.status).label.lower()
        return Outcome(item.approval, prompt, f"It was already answered ({word}); your answer did not count.")
    except (decide.OtherDigest, decide.NoSuchApproval, NotEntitled, AlreadyCounted) as error:
        return Outcome(item.approval, prompt, str(error))
    return Outcome(item.approval, prompt, "Approved." if verdict == "approve" else "Declined.", counted=True)
