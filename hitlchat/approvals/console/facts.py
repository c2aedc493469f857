"""What a card says, as facts for a terminal: a label of ours, and text in which nothing acts on the terminal."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils import timezone
from rich.text import Text

from hitlchat.base.visible import Seen, escaped, see
from hitlchat.gate.card import Card, Effect, Part, Row, Table
from hitlchat.gate.models import Approval
from hitlchat.gate.status import Status
from hitlchat.gate.who import sentences

PREVIEW: Final = "Preview of the effect (by the tool's own preview code)"
ESCAPED: Final = "bold reverse"
UNFOLD: Final = "--full shows them"
# U+007F too, which no escape of JSON covers.
_ACTS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_RIGHT_TO_LEFT: Final = {"R", "AL", "AN"}


@dataclass(frozen=True)
class Fact:
    """One thing that the card says. The label is ours; a value is somebody's, and stands in a box of its own."""

    label: str
    text: Text
    is_value: bool = False

    @property
    def lines(self) -> list[Text]:
        return list(self.text.split("\n", allow_blank=True))

    @property
    def plain(self) -> list[str]:
        """Return each line with the label, so that no value can look like another fact."""
        return [f"{self.label}: {line.plain}" for line in self.lines]


def facts(card: Card, approval: Approval, *, full: bool) -> list[Fact]:
    """Return the facts of a question that waits, as `card` has it. `full`: with all that the page folds away."""
    return [
        *_question(card),
        *_again(card, full=full),
        *_arguments(card, full=full),
        *(_effect(card.effect, PREVIEW, full=full) if card.effect else ()),
        *_who(card, approval),
        *_raw(card, full=full),
        *_time(card),
        _digest(card, full=full),
    ]


def must_unfold(card: Card) -> bool:
    """Return whether all of the card must be unfolded before a yes counts, as on the page."""
    return card.dangerous and card.hidden > 0


def fact(label: str, seen: Seen, *, is_value: bool = False) -> Fact:
    return Fact(label, text_of(seen), is_value)


def ours(label: str, sentence: str) -> Fact:
    """Make a fact of our own words, into which names may be woven."""
    return Fact(label, Text(printable(_flat(sentence))))


def text_of(seen: Seen) -> Text:
    # Terminals differ in how they turn lines around.
    return _written(seen, _unturned if seen.stored else str)


def one_line(text: str) -> str:
    """Return somebody's text on one line of a list or a sentence."""
    return _written(see(text), _flat).plain


def printable(text: str) -> str:
    """Return `text` without anything a terminal would act on but line feeds and tabs."""
    return _ACTS.sub(lambda found: f"<U+{ord(found[0]):04X}>", escaped(text))


def left(deadline: datetime) -> str:
    """Return how long a question is open, in words."""
    seconds = int((deadline - timezone.now()).total_seconds())
    if seconds <= 0:
        return "its time is up"
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _question(card: Card) -> Iterator[Fact]:
    pieces = (_quoted(piece.text) if piece.is_value else _written(piece.text, _flat) for piece in card.title)
    yield Fact("Question", Text.assemble(*pieces))
    yield from (ours("Warning", warning) for warning in card.warnings)
    yield ours("Approval", card.id)
    yield Fact("Tool", _written(card.tool_name, _flat))
    yield fact("Source", card.origin)
    yield ours("Asked by", f"{card.asked_by} for {one_line(card.for_whom.plain)}")
    if card.agents:
        yield ours("Through", " → ".join(one_line(each.plain) for each in card.agents))
    yield ours("Risk", f"L{card.risk} {card.risk_label}")
    yield fact("Why it asks", card.reason)
    yield from (fact("About the tool", each) for each in (*card.facts, *card.more_facts))
    if card.times > 1:
        many = f"{card.times} times, the same each time."
        yield ours("Asked", f"{many} Approve runs it once; Decline answers all of them.")


def _again(card: Card, *, full: bool) -> Iterator[Fact]:
    if card.again is None:
        return
    yield fact("Asked again", card.again.why)
    yield ours("Asked again", "It has not run. Decide again.")
    yield from _effect(card.again.before, "Before (the author's preview, as you were shown it)", full=full)
    yield from _effect(card.again.now, "Now (made by the tool's own preview code)", full=full)


def _arguments(card: Card, *, full: bool) -> Iterator[Fact]:
    if not card.rows:
        yield ours("Arguments", "It takes no arguments.")
    for row in card.rows if not full else (*card.rows, *card.more_rows):
        word = f" ({one_line(row.type)})" if row.type else ""
        yield from _value(row, f"Argument {_named(row.name)}{word}", full=full)
    if card.more_rows and not full:
        many = sum(row.length for row in card.more_rows)
        yield ours("Hidden", f"{len(card.more_rows)} more arguments with {many:,} characters; {UNFOLD}.")


def _effect(shown: Effect, label: str, *, full: bool) -> Iterator[Fact]:
    if shown.error:
        yield ours(label, "The preview failed:")
        yield from _value(shown.error, label, full=full)
    if shown.text:
        yield from _value(shown.text, label, full=full)
    if shown.parts:
        marked = (_marked(part, text_of(part.text)) for part in shown.parts)
        yield Fact(label, Text.assemble(*marked), is_value=True)
    if shown.table:
        yield from _table(shown.table, label, full=full)
    yield from _warned(label, shown.warnings)
    yield from (ours(label, note) for note in shown.notes)


def _who(card: Card, approval: Approval) -> Iterator[Fact]:
    yield fact("Who decides", card.decides or see(sentences(approval)))
    who = card.who
    if who is None:
        return
    if who.several:
        by = f", by {', '.join(one_line(name.plain) for name in who.yes)}" if who.yes else ""
        yield ours("Approved so far", f"{len(who.yes)} of {who.quorum}{by}.")
    if who.stuck:
        yield ours("Warning", who.stuck)
    if who.sign_in and who.stance == "may":
        yield ours("Warning", f"{who.sign_in} It cannot be approved here; it can be declined.")
    if who.stance == "said":
        yield ours("You", "You approved it. It runs once the others have too.")
    if who.stance == "others":
        yield ours("You", "You cannot decide this call.")


def _raw(card: Card, *, full: bool) -> Iterator[Fact]:
    if full:
        yield fact("Raw JSON", card.raw, is_value=True)
        yield from _warned("Raw JSON", card.raw.warnings)


def _time(card: Card) -> Iterator[Fact]:
    if card.status == Status.WAITING:
        yield ours("Time left", f"{left(card.deadline)}, until {card.deadline:%Y-%m-%d %H:%M:%S %Z}")


def _digest(card: Card, *, full: bool) -> Fact:
    if must_unfold(card) and not full:
        hidden = f"{card.hidden_count} characters are hidden, and the risk is L{card.risk}"
        return ours("Digest", f"shown with --full: {hidden}")
    return ours("Digest", f"{card.digest} (in short: {card.short_digest})")


def _value(row: Row, label: str, *, full: bool) -> Iterator[Fact]:
    """Yield the value under its label, and then its warnings, as on the page."""
    if row.empty:
        yield ours(label, "(empty text)")
    else:
        text = text_of(row.value)
        yield Fact(label, text + text_of(row.rest) if full and row.rest else text, is_value=True)
    yield from _warned(label, row.warnings)
    if row.rest and not full:
        yield ours("Hidden", f"{label}: {row.folded}; {UNFOLD}.")


def _table(table: Table, label: str, *, full: bool) -> Iterator[Fact]:
    """Yield a line for each row; each cell in quotes, under the name of its column."""
    names = [_named(column) for column in table.columns]
    rows = (*table.rows, *table.more_rows) if full else table.rows
    yield Fact(label, Text("\n").join(_row(names, row) for row in rows), is_value=True)
    if table.more_rows and not full:
        yield ours("Hidden", f"{label}: {len(table.more_rows):,} more rows with {table.hidden:,} characters; {UNFOLD}.")


def _row(names: Sequence[str], cells: Sequence[Part]) -> Text:
    line = Text()
    for number, cell in enumerate(cells):
        lead = f"{', ' if number else ''}{names[number]}: " if names else " = " if number else ""
        line = Text.assemble(line, lead, _marked(cell, _quoted(cell.text)))
    return line


def _marked(part: Part, text: Text) -> Text:
    """Return the text; between marks if it differs between a preview and the one before it."""
    return Text.assemble("**", text, "**") if part.changed else text


def _warned(label: str, warnings: Iterable[str]) -> Iterator[Fact]:
    yield from (ours("Warning", f"{label}: {warning}") for warning in warnings)


def _written(seen: Seen, write: Callable[[str], str]) -> Text:
    """Return a text with what cannot be seen in it as codes, which stand out."""
    pieces = ((printable(write(piece.text)), piece.hidden) for piece in seen.pieces)
    return Text.assemble(*((f"<{text}>", ESCAPED) if hidden else text for text, hidden in pieces))


def _quoted(seen: Seen) -> Text:
    """Return a text on one line, in quotes that it cannot end."""
    return Text.assemble('"', _written(seen, _inside), '"')


def _named(seen: Seen) -> str:
    """Return a name within a label: as it is if it is one word, else in quotes."""
    return seen.plain if _SIMPLE.match(seen.plain) else _quoted(seen).plain


def _inside(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def _flat(text: str) -> str:
    return text.replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def _unturned(text: str) -> str:
    """Replace right-to-left letters by their codes."""
    return "".join(f"<U+{ord(c):04X}>" if unicodedata.bidirectional(c) in _RIGHT_TO_LEFT else c for c in text)
