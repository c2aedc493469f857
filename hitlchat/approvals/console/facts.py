"""Everything a card says as text for a terminal, and the arguments of `manage.py approvals`."""

import re
import unicodedata
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.core.management.base import CommandParser
from django.utils import timezone

from hitlchat.base.visible import Piece, Seen, escaped, see
from hitlchat.gate.card import Card, Effect, Part, Row, Table
from hitlchat.gate.models import Approval
from hitlchat.gate.oversight import HIGHEST_RISK
from hitlchat.gate.status import Status
from hitlchat.gate.who import sentences

Line = tuple[Piece, ...]

# U+007F too, which no escape of JSON covers.
_ACTS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_RIGHT_TO_LEFT: Final = {"R", "AL", "AN"}


@dataclass(frozen=True)
class Fact:
    """One thing that the card says. `label` is ours, as is the text of those of `kind` "said"; that of the others is
    somebody's: of a "value" in a box of its own, of a "text" beside its label.
    """

    label: str
    lines: tuple[Line, ...]
    kind: str = "said"

    @property
    def plain(self) -> list[str]:
        """Return one line for each fact, with its label, so that no value can look like another fact."""
        return [f"{self.label}: {plain(line)}" for line in self.lines]


def said(label: str, sentence: str) -> Fact:
    """Make a fact of our own words, into which names may be woven."""
    return Fact(label, ((Piece(flat(sentence)),),))


def fact(label: str, seen: Seen, kind: str = "text") -> Fact:
    return Fact(label, lines_of(seen), kind)


def lines_of(seen: Seen) -> tuple[Line, ...]:
    lines: list[list[Piece]] = [[]]
    for piece in map(_unturned, seen.pieces) if seen.stored else seen.pieces:
        first, *more = piece.text.split("\n")
        lines[-1].append(Piece(first, piece.hidden))
        lines += [[Piece(part, piece.hidden)] for part in more]
    return tuple(tuple(line) for line in lines)


def plain(line: Line) -> str:
    return "".join(f"<{piece.text}>" if piece.hidden else piece.text for piece in line)


def quoted(seen: Seen) -> Line:
    """Return a text on one line, in quotes that it cannot end."""
    return (Piece('"'), *(Piece(_inside(piece.text), piece.hidden) for piece in seen.pieces), Piece('"'))


def named(seen: Seen) -> str:
    """A name within a label: as it is if it is one word, else in quotes."""
    return seen.plain if _SIMPLE.match(seen.plain) else plain(quoted(seen))


def one_line(text: str) -> str:
    """Somebody's text on one line of a list or a sentence."""
    return plain(tuple(Piece(flat(piece.text), piece.hidden) for piece in see(text).pieces))


def flat(text: str) -> str:
    return text.replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def printable(text: str) -> str:
    """`text` without anything a terminal would act on but line feeds and tabs."""
    return _ACTS.sub(lambda found: f"<U+{ord(found[0]):04X}>", escaped(text))


def _inside(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def _unturned(piece: Piece) -> Piece:
    """Replace right-to-left letters by their codes: terminals differ in how they turn lines around."""
    codes = (f"<U+{ord(c):04X}>" if unicodedata.bidirectional(c) in _RIGHT_TO_LEFT else c for c in piece.text)
    return Piece("".join(codes), piece.hidden)


UNFOLD = "--full shows them"
# Around what differs between a preview and the one before it.
MARK = Piece("**")


def value(row: Row, label: str, *, full: bool) -> Iterator[Fact]:
    """`row` under `label`; what one should be warned of stands after it, as on the page."""
    if row.empty:
        yield said(label, "(empty text)")
    else:
        lines = lines_of(row.value)
        yield Fact(label, joined(lines, lines_of(row.rest)) if full and row.rest else lines, "value")
    yield from warned(label, row.warnings)
    if row.rest and not full:
        yield said("Hidden", f"{label}: {row.folded}; {UNFOLD}.")


def warned(label: str, warnings: Iterable[str]) -> Iterator[Fact]:
    yield from (said("Warning", f"{label}: {warning}") for warning in warnings)


def effect(shown: Effect, label: str, *, full: bool) -> Iterator[Fact]:
    if shown.error:
        yield said(label, "The preview failed:")
        yield from value(shown.error, label, full=full)
    if shown.text:
        yield from value(shown.text, label, full=full)
    if shown.parts:
        yield Fact(label, _parts(shown.parts), "value")
    if shown.table:
        yield from _table(shown.table, label, full=full)
    yield from warned(label, shown.warnings)
    yield from (said(label, note) for note in shown.notes)


def joined(lines: Sequence[Line], more: Sequence[Line]) -> tuple[Line, ...]:
    """`more`, which goes on where the last of `lines` ends."""
    return (*lines[:-1], (*lines[-1], *more[0]), *more[1:])


def _parts(parts: Iterable[Part]) -> tuple[Line, ...]:
    found: tuple[Line, ...] = ((),)
    for part in parts:
        found = joined(found, _marked(part))
    return found


def _marked(part: Part) -> tuple[Line, ...]:
    lines = lines_of(part.text)
    return joined(joined(((MARK,),), lines), ((MARK,),)) if part.changed else lines


def _table(table: Table, label: str, *, full: bool) -> Iterator[Fact]:
    """A line for each row; each cell in quotes, under the name of its column."""
    names = [named(column) for column in table.columns]
    rows = (*table.rows, *table.more_rows) if full else table.rows
    yield Fact(label, tuple(_row(names, row) for row in rows), "value")
    if table.more_rows and not full:
        yield said("Hidden", f"{label}: {len(table.more_rows):,} more rows with {table.hidden:,} characters; {UNFOLD}.")


def _row(names: Sequence[str], cells: Sequence[Part]) -> Line:
    line: Line = ()
    for number, cell in enumerate(cells):
        lead = f"{', ' if number else ''}{names[number]}: " if names else " = " if number else ""
        mark = (MARK,) if cell.changed else ()
        line = (*line, Piece(lead), *mark, *quoted(cell.text), *mark)
    return line


PREVIEW = "Preview of the effect (by the tool's own preview code)"


def facts(card: Card, approval: Approval, *, full: bool) -> list[Fact]:
    """Return the facts of a question that waits, as `card` has it. `full`: with all that the page folds away."""
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
    """Return whether all of the card must be unfolded before a yes counts, as on the page."""
    return card.dangerous and card.hidden > 0


def left(deadline: datetime) -> str:
    """Return how long a question is open, in words."""
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
    if card.agents:
        yield said("Through", " → ".join(one_line(each.plain) for each in card.agents))
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


MOST = 1000
WATCHING = "Waiting for questions. Ctrl-C ends it."
ONLY_SHOWN = "Waiting for questions, which are only shown: to answer, say who you are with --as."
NO_TERMINAL = "Waiting for questions, which are only shown: they are answered at a terminal, and this is none."


def add(parser: CommandParser) -> None:
    what = parser.add_subparsers(dest="what", required=True)
    listed = what.add_parser("list", help="what waits, the most urgent first")
    _narrowed(listed)
    _printed(listed)
    listed.add_argument("--limit", type=_limit, default=50, help=f"how many at most, up to {MOST:,}")
    shown = what.add_parser("show", help="one question with all that its card says, or what became of it")
    shown.add_argument("approval", type=UUID)
    shown.add_argument("--full", action="store_true", help="with all that is folded away, and the raw JSON")
    shown.add_argument("--as", dest="person", metavar="USER", help="also whether this person may answer")
    _printed(shown)
    _answers(what.add_parser("approve", help="say yes to exactly this call, as a person"), digest=True)
    _answers(what.add_parser("decline", help="say no, as a person"), digest=False)
    watched = what.add_parser("watch", help="wait for questions, show each, and ask what to do with it")
    watched.add_argument("--as", dest="person", metavar="USER", help="who answers; without it they are only shown")
    _narrowed(watched)
    _printed(watched)
    extend = what.add_parser("extend", help="put a deadline off by five minutes, in its last minute")
    extend.add_argument("approval", type=UUID)
    extend.add_argument("--user", required=True, help="the username of the person who does it")


def _narrowed(parser: ArgumentParser) -> None:
    parser.add_argument("--for", dest="whose", metavar="USER", help="only what this person may answer")
    parser.add_argument("--tool", default="", metavar="NAME", help="only calls of this tool")
    parser.add_argument("--risk", type=_risk, default=0, metavar="LEVEL", help="only this risk or higher, such as L3")


def _printed(parser: ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plain", action="store_true", help="no colours and no boxes: one fact a line")
    how.add_argument("--json", action="store_true", help="one JSON object a line, with the fields of the REST API")


def _answers(parser: ArgumentParser, *, digest: bool) -> None:
    parser.add_argument("approval", type=UUID)
    parser.add_argument("--as", dest="person", metavar="USER", required=True, help="the person whose answer it is")
    if digest:
        parser.add_argument("--digest", help="of what was read with `show`; without it, the card is shown here first")
        parser.add_argument("--plain", action="store_true", help="no colours and no boxes: one fact a line")
    else:
        parser.add_argument("--reason", default="", help="why; the model is told")


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST:
        raise ArgumentTypeError(f"expected a whole number from 1 to {MOST:,}")
    return int(text)


def _risk(text: str) -> int:
    level = text.upper().removeprefix("L")
    if not level.isascii() or not level.isdigit() or not 0 <= int(level) <= HIGHEST_RISK:
        raise ArgumentTypeError(f"expected a level from L0 to L{HIGHEST_RISK}")
    return int(level)
