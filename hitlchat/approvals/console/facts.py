"""Everything a card says, in its order, one fact after the other: what every way of printing it prints."""

from collections.abc import Iterator
from datetime import datetime

from django.utils import timezone

from hitlchat.approvals.console.text import Fact, Line, fact, flat, named, one_line, quoted, said
from hitlchat.approvals.console.values import UNFOLD, effect, value, warned
from hitlchat.base.visible import Piece, Seen, see
from hitlchat.gate.card import Card
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status
from hitlchat.gate.who import sentences

PREVIEW = "Preview of the effect (by the tool's own preview code)"


def facts(card: Card, approval: Approval, *, full: bool) -> list[Fact]:
    """Of a question that waits, as `card` has it. `full`: with all that the page folds away."""
    return [
        *_question(card),
        *_again(card, full=full),
        *_arguments(card, full=full),
        *(effect(card.effect, PREVIEW, full=full) if card.effect else ()),
        *_who(card, approval),
        *_raw(card, full=full),
        *_time(card),
        _digest(card, full=full),
    ]


def must_unfold(card: Card) -> bool:
    """What is risky is not answered with yes before all of it was there to be read, here as on the page."""
    return card.dangerous and card.hidden > 0


def left(deadline: datetime) -> str:
    """How long a question is open, in words."""
    seconds = int((deadline - timezone.now()).total_seconds())
    if seconds <= 0:
        return "its time is up"
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _time(card: Card) -> Iterator[Fact]:
    if card.status == Status.WAITING:
        yield said("Time left", f"{left(card.deadline)}, until {card.deadline:%Y-%m-%d %H:%M:%S %Z}")


def _question(card: Card) -> Iterator[Fact]:
    pieces = (quoted(piece.text) if piece.is_value else _flat(piece.text) for piece in card.title)
    yield Fact("Question", (tuple(part for piece in pieces for part in piece),), "text")
    yield from (said("Warning", warning) for warning in card.warnings)
    yield said("Approval", card.id)
    yield Fact("Tool", (_flat(card.tool_name),), "text")
    yield fact("Source", card.origin)
    yield said("Asked by", f"{card.asked_by} for {one_line(card.for_whom.plain)}")
    yield said("Risk", f"L{card.risk} {card.risk_label}")
    yield fact("Why it asks", card.reason)
    yield from (fact("About the tool", each) for each in (*card.facts, *card.more_facts))
    if card.times > 1:
        many = f"{card.times} times, the same each time."
        yield said("Asked", f"{many} Approve runs it once; Decline answers all of them.")


def _again(card: Card, *, full: bool) -> Iterator[Fact]:
    if card.again is None:
        return
    yield fact("Asked again", card.again.why)
    yield said("Asked again", "It has not run. Decide again.")
    yield from effect(card.again.before, "Before (the author's preview, as you were shown it)", full=full)
    yield from effect(card.again.now, "Now (made by the tool's own preview code)", full=full)


def _arguments(card: Card, *, full: bool) -> Iterator[Fact]:
    if not card.rows:
        yield said("Arguments", "It takes no arguments.")
    for row in card.rows if not full else (*card.rows, *card.more_rows):
        word = f" ({one_line(row.type)})" if row.type else ""
        yield from value(row, f"Argument {named(row.name)}{word}", full=full)
    if card.more_rows and not full:
        many = sum(row.length for row in card.more_rows)
        yield said("Hidden", f"{len(card.more_rows)} more arguments with {many:,} characters; {UNFOLD}.")


def _who(card: Card, approval: Approval) -> Iterator[Fact]:
    yield fact("Who decides", card.decides or see(sentences(approval)))
    standing = card.who
    if standing is None:
        return
    if standing.several:
        by = f", by {', '.join(one_line(name.plain) for name in standing.yes)}" if standing.yes else ""
        yield said("Approved so far", f"{len(standing.yes)} of {standing.quorum}{by}.")
    if standing.stuck:
        yield said("Warning", standing.stuck)
    if standing.sign_in and standing.stance == "may":
        yield said("Warning", f"{standing.sign_in} It cannot be approved here; it can be declined.")
    if standing.stance == "said":
        yield said("You", "You approved it. It runs once the others have too.")
    if standing.stance == "others":
        yield said("You", "You cannot decide this call.")


def _raw(card: Card, *, full: bool) -> Iterator[Fact]:
    if full:
        yield fact("Raw JSON", card.raw, "value")
        yield from warned("Raw JSON", card.raw.warnings)


def _digest(card: Card, *, full: bool) -> Fact:
    if must_unfold(card) and not full:
        return said(
            "Digest", f"shown with --full: {card.hidden_count} characters are hidden, and the risk is L{card.risk}"
        )
    return said("Digest", f"{card.digest} (in short: {card.short_digest})")


def _flat(seen: Seen) -> Line:
    """A text of one line, which cannot go on with another one."""
    return tuple(Piece(flat(piece.text), piece.hidden) for piece in seen.pieces)
