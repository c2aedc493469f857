"""Waiting calls, and one approval with its card: for a terminal, and as JSON under the names of the REST API."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from hitlchat.approvals.console.facts import Fact, Line, fact, facts, left, one_line, plain, printable, said
from hitlchat.base import canonical
from hitlchat.base.visible import see
from hitlchat.gate import attention, batch, card, deciders, disclosure, question, results, who
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import RISK_LABELS, Card
from hitlchat.gate.decide import NoSuchApproval
from hitlchat.gate.models import Approval, CallerKind, Decision, Verdict
from hitlchat.gate.status import Status

NARROW = 20
# From so many columns on, an id stands whole in its line, to be copied.
ROOMY = 64
FURTHER = Text("    ")
BAR = Text("  │ ", style="cyan")
ESCAPED = "bold reverse"
STYLES = {"Warning": "bold yellow", "Question": "bold", "Hidden": "italic", "Digest": "dim", "Approval": "dim"}


def in_plain(facts: Iterable[Fact]) -> str:
    return printable("\n".join(line for fact in facts for line in fact.plain))


def in_boxes(facts: Iterable[Fact], *, colours: bool, width: int | None = None) -> str:
    """Draw facts in boxes. No text is read as markup: each is put together from pieces."""
    return drawn(Group(*map(_drawn, facts)), colours=colours, width=width)


def listed(columns: Iterable[str], rows: Iterable[Iterable[str]], *, colours: bool, width: int | None = None) -> str:
    first, *others = columns
    is_roomy = (width or shutil.get_terminal_size().columns) >= ROOMY
    table = Table(Column(first, no_wrap=is_roomy), *others, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    return drawn(table, colours=colours, width=width)


def drawn(what: RenderableType, *, colours: bool, width: int | None = None) -> str:
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
class Led:
    """A text that goes over as many lines as it needs, each behind a lead of ours: so none of them begins a fact."""

    text: Text
    first: Text
    then: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(NARROW, options.max_width - len(self.then))
        for number, line in enumerate(self.text.wrap(console, width, overflow="fold")):
            yield (self.then if number else self.first) + line


def _drawn(fact: Fact) -> RenderableType:
    label = Text(f"{fact.label}:", style=STYLES.get(fact.label, "cyan"))
    if fact.kind != "value":
        return Led(Text(" ").join([label, Text("\n").join(map(_text, fact.lines))]), Text(""), FURTHER)
    return Group(Led(label, Text(""), FURTHER), *(Led(_text(line), BAR, BAR) for line in fact.lines))


def _text(line: Line) -> Text:
    text = Text(overflow="fold")
    for piece in line:
        text.append(printable(f"<{piece.text}>" if piece.hidden else piece.text), ESCAPED if piece.hidden else "")
    return text


@dataclass(frozen=True)
class Style:
    """A way to print: `plain`, one fact a line, or with boxes; in `colours` where that is a terminal."""

    plain: bool = False
    colours: bool = False

    def text(self, what: list[Fact]) -> str:
        return in_plain(what) if self.plain else in_boxes(what, colours=self.colours)


def shown(found: Approval, *, viewer: Actor | None = None, full: bool = False) -> list[Fact]:
    """Return the facts for whoever looks, who may be nobody in particular."""
    if found.call.status == Status.WAITING:
        return presented(found, card_of(found, viewer), viewer=viewer, full=full)
    return [*became(found), *_as_shown(found, full=full)]


def presented(found: Approval, card: Card, *, viewer: Actor | None, full: bool) -> list[Fact]:
    """The card of a question that waits, about to be before its person: the one place at the console that shows one."""
    if viewer is not None:
        attention.shown(found, viewer)
    return facts(card, found, full=full)


def became(found: Approval) -> list[Fact]:
    """Return what became of the question: in all the words that there are for it."""
    status = Status(found.call.status)
    answers = decisions(found)
    edited = [each.edited_arguments for each in answers if each.edited_arguments is not None]
    changed = (fact("Ran with", see(canonical.pretty(each, indent=2)), "value") for each in edited[-1:])
    return [said("Outcome", f"{status.label}."), *map(_answer, answers), *changed, *_why(found)]


def sentence(found: Approval) -> str:
    """Return what became of the question in one line, without changed arguments."""
    return " ".join(plain(line) for each in became(found) if each.kind != "value" for line in each.lines)


def _answer(decision: Decision) -> Fact:
    word = "Approved" if decision.verdict == Verdict.APPROVE else "Declined"
    name = one_line(decision.person.get_username())
    reason = f" Reason: {one_line(decision.reason)}" if decision.reason else ""
    return said("Decision", f"{word} by {name}, {one_line(who.how(decision))}.{reason}")


def _why(found: Approval) -> Iterator[Fact]:
    call = found.call
    if call.status == Status.WITHDRAWN and call.reason:
        yield fact("Why", see(call.reason))
    if call.error:
        yield fact("What happened", see(results.sentence(call.error)))


def _as_shown(found: Approval, *, full: bool) -> list[Fact]:
    try:
        card = card_of(found)
    except KeyError:
        return [said("As shown", "an older record, which lacks a part of the card")]
    return [said("As shown", "the card, as it was when it was asked"), *facts(card, found, full=full)]


COLUMNS = ("Approval", "Tool", "Asked by", "Risk", "Time left")
NOTHING = "Nothing waits for an answer."


def told(rows: Sequence[Approval], limit: int, style: Style) -> str:
    if not rows:
        return NOTHING
    more = f"\nMore wait than these {limit}: raise --limit, or narrow it down." if len(rows) > limit else ""
    lines = [_line(row) for row in rows[:limit]]
    if style.plain:
        return printable("\n".join("\t".join(line) for line in lines)) + more
    return listed(COLUMNS, lines, colours=style.colours) + more


def _line(row: Approval) -> tuple[str, ...]:
    call = row.call
    assert call.deadline is not None
    who = f"{CallerKind(call.caller_kind).label} for {one_line(call.caller.get_username())}"
    level = disclosure.said(row)
    return str(row.pk), one_line(call.tool_name), who, f"L{level} {RISK_LABELS[level]}", left(call.deadline)


# Read at once; what is asked for is nearly always among the first of them.
AT_ONCE = 200
NOWHERE = "There is no approval with this id."
LARGE = ("disclosure", "call__arguments", "call__result", "call__error", "call__output")


class NobodyNamed(LookupError):
    """Nobody with this name may sign in."""


def person(name: str) -> User:
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise NobodyNamed(f"There is nobody named {name!r} who may sign in.")
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


def unseen(rows: QuerySet[Approval], seen: set[tuple[UUID, int]]) -> Iterator[tuple[UUID, int]]:
    """The id and the round of each question among `rows` that is not in `seen`; read as far as it is needed."""
    start = 0
    ids = rows.values_list("pk", "call__round")
    while page := list(ids[start : start + AT_ONCE]):
        yield from (key for key in page if key not in seen)
        start += AT_ONCE


def approval(approval_id: UUID) -> Approval:
    """Return one approval with its call, tool and caller. Raises: NoSuchApproval"""
    rows = Approval.objects.select_related("call__tool", "call__caller")
    found = rows.filter(pk=approval_id).first()
    if found is None:
        raise NoSuchApproval(NOWHERE)
    return found


def card_of(found: Approval, viewer: Actor | None = None) -> Card:
    """Return the card as the page has it. Raises: KeyError, when an older record lacks a part of it."""
    shown = card.card(found, viewer)
    return replace(shown, times=batch.times([found])[found.pk]) if found.call.status == Status.WAITING else shown


def decisions(found: Approval) -> list[Decision]:
    return list(found.decisions.select_related("person"))


def among(ids: list[UUID]) -> QuerySet[Approval]:
    """Return the rows without what is large, in the order in which they were asked."""
    return Approval.objects.filter(pk__in=ids).select_related("call__caller").defer(*LARGE).order_by("pk")


ENDS = {
    Status.WAITING: "pending",
    Status.DECLINED: "declined",
    Status.EXPIRED: "expired",
    Status.WITHDRAWN: "withdrawn",
}


def dumped(value: Any) -> str:
    """Return JSON on one line."""
    return printable(json.dumps(value, default=str).replace("\x7f", "\\u007f"))


def line(row: Approval) -> dict[str, Any]:
    """Return one that waits, without what takes long to read."""
    assert row.call.deadline is not None
    return {
        "id": str(row.pk),
        "callId": str(row.call_id),
        "toolName": row.call.tool_name,
        "source": row.call.source,
        "requestedAt": row.created_at.isoformat(),
        "deadline": row.call.deadline.isoformat(),
        "riskLevel": disclosure.said(row),
        "caller": row.call.caller_kind,
        "requester": row.call.caller.get_username(),
        "status": ENDS.get(Status(row.call.status), "approved"),
        "quorum": row.call.quorum,
        "callStatus": row.call.status,
    }


def whole(row: Approval) -> dict[str, Any]:
    shown, waits = row.disclosure, row.call.status == Status.WAITING
    said = decisions(row)
    deadline = row.call.deadline
    return {
        **line(row),
        "arguments": row.call.arguments,
        "prompt": row.prompt,
        "sessionId": shown["conversation"],
        "agents": [{"tool": each["tool"], "callId": each["call"]} for each in shown.get("agents", [])],
        "userPrompt": shown["userPrompt"],
        "reason": shown["reason"],
        "preview": shown.get("preview"),
        "question": question.as_json(shown["arguments"]) if question.is_one(row.call) else None,
        # Only here, where all that it stands for is.
        "consentDigest": row.digest,
        "askedTimes": batch.times([row])[row.pk] if waits else 1,
        "askedAgain": shown.get("again"),
        "grantId": _first(str(given) for given in row.grants.values_list("pk", flat=True)[:1]),
        "decidedBy": row.call.decided_by,
        "deciderGroup": _first(group["name"] for group in [(shown.get("whoDecides") or {}).get("group")] if group),
        "approvedBy": [each.person.get_username() for each in _yes(row, said)],
        "whoDecides": who.sentences(row),
        "decisions": [_decision(each) for each in said],
        "result": row.call.result,
        "error": row.call.error,
        "deadline": deadline.isoformat() if deadline else shown["deadline"],
    }


def _first(found: Iterable[str]) -> str | None:
    return next(iter(found), None)


def _yes(row: Approval, said: Iterable[Decision]) -> list[Decision]:
    if row.call.status == Status.WAITING and row.call.quorum > 1:
        return list(deciders.counted(approval=row).select_related("person"))
    return [each for each in said if each.verdict == "approve" and each.round == row.call.round]


def _decision(each: Decision) -> dict[str, Any]:
    return {
        "person": each.person.get_username(),
        "verdict": each.verdict,
        "reason": each.reason,
        "means": each.means,
        "client": each.client or None,
        "token": each.token_name or None,
        "decidedAt": each.decided_at.isoformat(),
        "editedArguments": each.edited_arguments,
    }
