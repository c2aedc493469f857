"""Waiting calls, and one approval with its card or with what became of it: drawn for a terminal, or as JSON."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from io import StringIO
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from hitlchat.approvals.console.facts import Fact, fact, facts, left, one_line, ours, printable
from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.gate import attention, batch, card, deciders, disclosure, results, who
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import RISK_LABELS, Card
from hitlchat.gate.decide import NoSuchApproval
from hitlchat.gate.models import Approval, CallerKind, Decision, Verdict
from hitlchat.gate.status import Status

COLUMNS: Final = ("Approval", "Tool", "Asked by", "Risk", "Time left")
NOTHING: Final = "Nothing waits for an answer."
NOWHERE: Final = "There is no approval with this id."
LARGE: Final = ("disclosure", "call__arguments", "call__result", "call__error", "call__output")
NARROW: Final = 20
# From so many columns on, an id stands whole in its line, to be copied.
ROOMY: Final = 64
FURTHER: Final = Text("    ")
BAR: Final = Text("  │ ", style="cyan")
STYLES: Final = {"Warning": "bold yellow", "Question": "bold", "Hidden": "italic", "Digest": "dim", "Approval": "dim"}
ENDS: Final = {
    Status.WAITING: "pending",
    Status.DECLINED: "declined",
    Status.EXPIRED: "expired",
    Status.WITHDRAWN: "withdrawn",
}


class NobodyNamed(LookupError):
    """Nobody with this name may sign in."""


@dataclass(frozen=True)
class Style:
    """A way to print: `plain`, one fact a line, or with boxes; in `colours` where that is a terminal."""

    plain: bool = False
    colours: bool = False

    def text(self, what: Iterable[Fact]) -> str:
        if self.plain:
            return printable("\n".join(line for fact in what for line in fact.plain))
        return in_boxes(what, colours=self.colours)

    def table(self, rows: Sequence[Approval], limit: int) -> str:
        """Return a list of calls that wait, with a word if there are more of them than `limit`."""
        if not rows:
            return NOTHING
        more = f"\nMore wait than these {limit}: raise --limit, or narrow it down." if len(rows) > limit else ""
        lines = [_cells(row) for row in rows[:limit]]
        if self.plain:
            return printable("\n".join("\t".join(line) for line in lines)) + more
        first, *others = COLUMNS
        is_roomy = shutil.get_terminal_size().columns >= ROOMY
        table = Table(Column(first, no_wrap=is_roomy), *others, box=None, pad_edge=False, header_style="bold")
        for line in lines:
            table.add_row(*(Text(printable(cell), overflow="fold") for cell in line))
        return _printed(table, colours=self.colours) + more


def in_boxes(facts: Iterable[Fact], *, colours: bool, width: int | None = None) -> str:
    """Draw facts in boxes. No text is read as markup: each is put together from pieces."""
    return _printed(Group(*map(_drawn, facts)), colours=colours, width=width)


def person(name: str) -> User:
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise NobodyNamed(f"There is nobody named {name!r} who may sign in.")
    return found


def approval(approval_id: UUID) -> Approval:
    """Return one approval with its call, tool and caller. Raises: NoSuchApproval"""
    found = Approval.objects.select_related("call__tool", "call__caller").filter(pk=approval_id).first()
    if found is None:
        raise NoSuchApproval(NOWHERE)
    return found


def waiting(who: User | None = None, *, tool: str = "", risk: int = 0) -> QuerySet[Approval]:
    """Return the approvals that wait.

    These are everyone's, or what `who` may answer; of `tool` only, and of this `risk` or higher. In the order in which
    their time runs out; of everyone on the index of the calls that wait, however many there are.
    """
    rows = deciders.waiting_for(who.pk) if who else Approval.objects.filter(call__status=Status.WAITING)
    rows = rows.filter(call__tool_name=tool) if tool else rows
    rows = rows.filter(call__risk_level__gte=risk) if risk else rows
    return rows.select_related("call__caller").defer(*LARGE).order_by("call__deadline", "pk")


def card_of(found: Approval, viewer: Actor | None = None) -> Card:
    """Return the card of a question that waits, as the page has it."""
    return replace(card.card(found, viewer), times=batch.times([found])[found.pk])


def presented(found: Approval, card: Card, *, viewer: Actor | None, full: bool) -> list[Fact]:
    """Return the card of a question that waits, about to be before its person: nothing else here shows one."""
    if viewer is not None:
        attention.shown(found, viewer)
    return facts(card, found, full=full)


def shown(found: Approval, *, viewer: Actor | None = None, full: bool = False) -> list[Fact]:
    """Return the facts for whoever looks, who may be nobody in particular."""
    if found.call.status == Status.WAITING:
        return presented(found, card_of(found, viewer), viewer=viewer, full=full)
    was = card.as_shown(found)
    if was is None:
        return [*_outcome(found), ours("As shown", "an older record, which lacks a part of the card")]
    lead = ours("As shown", "the card, as it was when it was asked")
    return [*_outcome(found), lead, *facts(was, found, full=full)]


def sentence(found: Approval) -> str:
    """Return what became of the question in one line, without changed arguments."""
    return " ".join(line.plain for each in _outcome(found) if not each.is_value for line in each.lines)


def dumped(value: Any) -> str:
    """Return JSON on one line."""
    return printable(json.dumps(value, default=_plain_json).replace("\x7f", "\\u007f"))


def line(row: Approval) -> dict[str, Any]:
    """Return one under the names of the REST API, without what takes long to read."""
    assert row.call.deadline is not None
    return {
        "id": str(row.pk),
        "callId": str(row.call_id),
        "toolName": row.call.tool_name,
        "source": row.call.source,
        "requestedAt": row.created_at.isoformat(),
        "deadline": row.call.deadline.isoformat(),
        "riskLevel": disclosure.shown_risk(row),
        "caller": row.call.caller_kind,
        "requester": row.call.caller.get_username(),
        "status": ENDS.get(Status(row.call.status), "approved"),
        "quorum": row.call.quorum,
        "callStatus": row.call.status,
    }


def _plain_json(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _cells(row: Approval) -> tuple[str, ...]:
    call = row.call
    assert call.deadline is not None
    who = f"{CallerKind(call.caller_kind).label} for {one_line(call.caller.get_username())}"
    level = disclosure.shown_risk(row)
    return str(row.pk), one_line(call.tool_name), who, f"L{level} {RISK_LABELS[level]}", left(call.deadline)


def _outcome(found: Approval) -> Iterator[Fact]:
    """Yield what became of the question, in all the words that there are for it."""
    call = found.call
    answers = list(found.decisions.select_related("person"))
    yield ours("Outcome", f"{Status(call.status).label}.")
    yield from map(_answer, answers)
    edited = [each.edited_arguments for each in answers if each.edited_arguments is not None]
    if edited:
        yield fact("Ran with", see(canonical.pretty(edited[-1], indent=2)), is_value=True)
    if call.status == Status.WITHDRAWN and call.reason:
        yield fact("Why", see(call.reason))
    if call.error:
        yield fact("What happened", see(results.sentence(call.error)))


def _answer(decision: Decision) -> Fact:
    word = "Approved" if decision.verdict == Verdict.APPROVE else "Declined"
    name = one_line(decision.person.get_username())
    reason = f" Reason: {one_line(decision.reason)}" if decision.reason else ""
    return ours("Decision", f"{word} by {name}, {one_line(who.how(decision))}.{reason}")


def _printed(what: RenderableType, *, colours: bool, width: int | None = None) -> str:
    out = StringIO()
    # Colours only: whether a NO_COLOR is set is for the library to see.
    screen = Console(
        file=out,
        force_terminal=colours,
        color_system="auto" if colours else None,
        markup=False,
        highlight=False,
        emoji=False,
        width=width,
    )
    screen.print(what)
    return out.getvalue().rstrip("\n")


@dataclass(frozen=True)
class _Led:
    """A text that goes over as many lines as it needs, each behind a lead of ours: so none of them begins a fact."""

    text: Text
    first: Text
    then: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(NARROW, options.max_width - len(self.then))
        for number, line in enumerate(self.text.wrap(console, width, overflow="fold")):
            yield (self.then if number else self.first) + line


def _drawn(fact: Fact) -> RenderableType:
    label = Text(printable(f"{fact.label}:"), style=STYLES.get(fact.label, "cyan"))
    if not fact.is_value:
        return _Led(Text(" ").join([label, fact.text]), Text(), FURTHER)
    return Group(_Led(label, Text(), FURTHER), *(_Led(line, BAR, BAR) for line in fact.lines))
