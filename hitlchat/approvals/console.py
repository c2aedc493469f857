"""A waiting call, its card and its outcome at a terminal: as facts in which nothing acts on it, drawn, or as JSON."""

import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from io import StringIO
from typing import Any, Final, Literal
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from rich.console import Console
from rich.text import Text

from hitlchat.base import canonical
from hitlchat.base.problems import required
from hitlchat.base.visible import Seen, escaped, see
from hitlchat.gate import attention, card, deciders, disclosure, queue, results, who
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import RISK_LABELS, Card, Effect, Part, Row, Table, TitlePiece
from hitlchat.gate.decide import NoSuchApproval
from hitlchat.gate.editing import Review
from hitlchat.gate.meant import Meaning
from hitlchat.gate.models import Approval, CallerKind
from hitlchat.gate.provenance import Provenance, Stretches
from hitlchat.gate.status import Status

PREVIEW: Final = "Preview of the effect (by the tool's own preview code, not checked by hitlchat)"
ESCAPED: Final = "bold reverse"
UNFOLD: Final = "--full shows them"
OF_THE_MODEL: Final = "The model's own: nobody typed it, and no result has it."
NOT_SEARCHED: Final = "In none of the last messages and results. Earlier ones, and images, were not searched."
# U+007F too, which no escape of JSON covers.
_ACTS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_RIGHT_TO_LEFT: Final = {"R", "AL", "AN"}
COLUMNS: Final = ("Approval", "Tool", "Asked by", "Risk", "Time left")
NOTHING: Final = "No calls are waiting."
NOWHERE: Final = "There is no approval with this id."
LARGE: Final = ("disclosure", "call__arguments", "call__result", "call__error", "call__output")
NARROW: Final = 20
SHORTEST_WHO: Final = 10
FURTHER: Final = Text("    ")
BAR: Final = Text("  │ ", style="cyan")
STYLES: Final = {"Warning": "bold yellow", "Question": "bold", "Hidden": "italic", "Digest": "dim", "Approval": "dim"}


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
        more = "\nMore calls are waiting. Raise --limit, or narrow the list." if len(rows) > limit else ""
        lines = [_cells(row) for row in rows[:limit]]
        if self.plain:
            return printable("\n".join("\t".join(line) for line in lines)) + more
        lines = [COLUMNS, *((*line[:3], line[3].partition(" ")[0], line[4]) for line in lines)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        # Ids and names stay whole, to be copied; who asks is cut in front, where it names no person.
        over = sum(widths) + 2 * len(COLUMNS[1:]) - shutil.get_terminal_size().columns
        room = widths[2] = widths[2] - max(0, min(over, widths[2] - SHORTEST_WHO))
        drawn = []
        for line in lines:
            who = line[2] if len(line[2]) <= room else f"…{line[2][len(line[2]) + 1 - room :]}"
            drawn.append("  ".join(map(str.ljust, (*line[:2], who, *line[3:]), widths)).rstrip())
        return printable("\n".join(drawn)) + more


def facts(card: Card, approval: Approval, *, full: bool) -> list[Fact]:
    """Return the facts of a question that waits, as `card` has it. `full`: with all that the page folds away."""
    found = [
        *_question(card),
        *_again(card, full=full),
        *_arguments(card, full=full),
        *(_effect(card.effect, PREVIEW, full=full) if card.effect else ()),
        *_caution(card),
        *_who(card, approval),
    ]
    if full:
        found += [fact("Raw JSON", card.raw, is_value=True), *_warned("Raw JSON", card.raw.warnings)]
    if card.status == Status.WAITING:
        found.append(ours("Time left", f"{left(card.deadline)}, until {card.deadline:%Y-%m-%d %H:%M:%S %Z}"))
    digest = f"{card.digest} (in short: {card.short_digest})"
    if must_unfold(card) and not full:
        digest = f"shown with --full: {card.hidden_count} characters are hidden, and the risk is L{card.care}"
    return [*found, ours("Digest", digest)]


def changed(review: Review) -> Iterator[Fact]:
    """Yield what approving a call with changed arguments would approve; nothing is folded away."""
    yield _title(review.title)
    for change in review.changes:
        name = f"Argument {_named(change.name)}"
        for label, shown, missing in (
            (f"{name}, asked", change.was, "not given"),
            (f"{name}, yours", change.now, "left out"),
        ):
            yield from _effect(shown, label, full=True) if shown else [ours(label, missing)]
        if change.whole:
            yield from _value(change.whole, f"{name}, all of yours", full=True)
        yield from (ours("Warning", each) for each in (*change.warnings, *filter(None, [change.note])))
        yield from _meant(change.name, change.meanings)
    if not review.changes:
        yield ours("Warning", "You changed nothing.")
    if review.asks_again:
        yield ours("Warning", "The tool's preview is rerun with your changes, and you confirm once more.")
    yield fact("Policy check", review.rule)
    yield ours("Digest", review.digest)


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
    seconds = int((deadline - timezone.now()).total_seconds())
    if seconds <= 0:
        return "its time is up"
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def in_boxes(facts: Iterable[Fact], *, colours: bool, width: int | None = None) -> str:
    """Draw facts in boxes. No text is read as markup: each is put together from pieces."""
    out = StringIO()
    # Colours only: whether a NO_COLOR is set is for the library to see.
    color_system: Literal["auto"] | None = "auto" if colours else None
    screen = Console(file=out, force_terminal=colours, color_system=color_system, width=width)

    def draw(text: Text, first: Text, further: Text) -> None:
        """Draw a text over as many lines as it needs, each behind a lead of ours: so none of them begins a fact."""
        wide = max(NARROW, screen.width - len(further))
        for number, line in enumerate(text.wrap(screen, wide, overflow="fold")):
            screen.print((further if number else first) + line)

    for each in facts:
        label = Text(printable(f"{each.label}:"), style=STYLES.get(each.label, "cyan"))
        if each.is_value:
            draw(label, Text(), FURTHER)
            for line in each.lines:
                draw(line, BAR, BAR)
        else:
            draw(Text(" ").join([label, each.text]), Text(), FURTHER)
    return out.getvalue().rstrip("\n")


def person(name: str) -> User:
    found = User.objects.filter(username=name, is_active=True).first()
    return required(found, NobodyNamed(f"There is no active user named {name!r}."))


def approval(approval_id: UUID) -> Approval:
    """Return one approval with its call, tool and caller. Raises: NoSuchApproval"""
    found = Approval.objects.select_related("call__tool", "call__caller").filter(pk=approval_id).first()
    return required(found, NoSuchApproval(NOWHERE))


def waiting(*, whose: str | None = None, tool: str = "", risk: int = 0, **_: Any) -> QuerySet[Approval]:
    """Return the approvals that wait, the soonest deadline first.

    These are everyone's, or what the person named `whose` may answer; of `tool` only, and of this `risk` or higher.
    """
    rows = deciders.waiting_for(person(whose).pk) if whose else Approval.objects.filter(call__status=Status.WAITING)
    rows = rows.filter(call__tool_name=tool) if tool else rows
    rows = rows.filter(call__risk_level__gte=risk) if risk else rows
    return rows.select_related("call__caller").defer(*LARGE).order_by("call__deadline", "pk")


def card_of(found: Approval, viewer: Actor | None) -> Card:
    return replace(card.card(found, viewer), times=queue.times([found])[found.pk])


def presented(found: Approval, card: Card, *, viewer: Actor | None, full: bool) -> list[Fact]:
    """Return the card of a waiting call, and note that `viewer` was shown it."""
    if viewer is not None:
        attention.shown(found, viewer)
    return facts(card, found, full=full)


def shown(found: Approval, *, viewer: Actor | None = None, full: bool = False) -> list[Fact]:
    """Return the facts for whoever looks, who may be nobody in particular."""
    if found.call.status == Status.WAITING:
        return presented(found, card_of(found, viewer), viewer=viewer, full=full)
    was = card.as_shown(found)
    if was is None:
        return [*_outcome(found), ours("As shown", "an older record, which lacks part of the card")]
    lead = ours("As shown", "the card at the time of asking")
    return [*_outcome(found), lead, *facts(was, found, full=full)]


def sentence(found: Approval) -> str:
    """Return the outcome of the question in one line, without changed arguments."""
    return " ".join(line.plain for each in _outcome(found) if not each.is_value for line in each.lines)


def _question(card: Card) -> Iterator[Fact]:
    yield _title(card.title)
    yield from (ours("Warning", warning) for warning in card.warnings)
    yield ours("Approval", card.id)
    yield Fact("Tool", _written(card.tool_name, _flat))
    yield fact("Source", card.origin)
    yield ours("Asked by", f"{card.asked_by} for {one_line(card.for_whom.plain)}")
    if card.said:
        yield fact("Message", card.said, is_value=True)
    if card.elsewhere:
        against = Text.assemble(
            "The message says ", _quoted(card.elsewhere), ", and the tool seems to be of another place."
        )
        yield Fact("Warning", against)
    if card.agents:
        yield ours("Through", " → ".join(one_line(each.plain) for each in card.agents))
    yield ours("Risk", f"L{card.risk} {card.risk_label}" + (", unknown" if card.risk_unknown else ""))
    if card.care_note:
        yield ours("Note", card.care_note)
    yield fact("Why it asks", card.reason)
    yield from (fact("About the tool", each) for each in (*card.facts, *card.more_facts))
    if card.instead:
        yield ours("Attempt", f"{card.attempt}. The one before was declined, with what to do instead.")
        yield fact("Said", card.instead, is_value=True)
    if card.times > 1:
        times = f"{card.times} times, the same each time"
        yield ours("Asked", f"{times}. Approve runs it once; Decline answers all of them.")


def _title(pieces: Iterable[TitlePiece]) -> Fact:
    written = (_quoted(piece.text) if piece.is_value else _written(piece.text, _flat) for piece in pieces)
    return Fact("Question", Text.assemble(*written))


def _again(card: Card, *, full: bool) -> Iterator[Fact]:
    if card.again is None:
        return
    yield fact("Asked again", card.again.why)
    yield ours("Asked again", "It has not run. Decide again.")
    yield from _effect(card.again.before, "Before (the author's preview, as you were shown it)", full=full)
    yield from _effect(card.again.now, "Now (made by the tool's own preview code, not checked by hitlchat)", full=full)


def _arguments(card: Card, *, full: bool) -> Iterator[Fact]:
    if not card.rows:
        yield ours("Arguments", "No arguments.")
    for row in card.rows if not full else (*card.rows, *card.more_rows):
        word = f" ({one_line(row.type)})" if row.type else ""
        yield from _value(row, f"Argument {_named(row.name)}{word}", full=full)
        yield from _meant(row.name, row.meanings)
        yield from _sources(row.name, row.origins)
    for row in card.missing:
        yield from _value(
            row, f"Only in the {'declined' if card.instead else 'last approved'} call: {_named(row.name)}", full=full
        )
        yield from _meant(row.name, row.meanings)
    if card.more_differ:
        yield ours("Arguments", f"{card.more_differ:,} more differ from the last approved call.")
    if card.more_rows and not full:
        many = sum(row.length for row in card.more_rows)
        yield ours("Hidden", f"{len(card.more_rows)} more arguments with {many:,} characters; {UNFOLD}.")


def _meant(name: Seen, meanings: Iterable[Meaning]) -> Iterator[Fact]:
    """Yield what a value means, below it; what was read out of it in quotes."""
    for line in meanings:
        read = Text.assemble(" ", _quoted(line.value)) if line.value else Text()
        yield Fact(f"About {_named(name)}", Text.assemble(line.words, read, f" {line.rest}" if line.rest else ""))


def _sources(name: Seen, origins: Iterable[Provenance]) -> Iterator[Fact]:
    """Yield where a value comes from that nobody typed, and what the message says against it."""
    for each in origins:
        words = Text()
        if each.origin == "model" and not each.wrote:
            words = Text(NOT_SEARCHED if each.unsure else OF_THE_MODEL)
        elif each.origin in ("tool", "outside"):
            partly = "Partly from " if each.partly else "Comes from "
            through = "outside, through " if each.origin == "outside" else "the result of "
            words = Text.assemble(partly, through, _quoted(each.tool) if each.tool else "an attached file")
        whose = Text.assemble(_quoted(each.parts), ": ") if each.parts else Text()
        near = Text()
        if each.near:
            near = Text.assemble(
                _word(each.near.here), " is nearly ", _word(each.near.there), ", which the conversation has."
            )
        wrote = Text.assemble("But the message says ", _quoted(each.wrote)) if each.wrote else Text()
        yield Fact(f"About {_named(name)}", Text.assemble(whose, Text(" ").join(filter(None, (words, near, wrote)))))


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


def _caution(card: Card) -> Iterator[Fact]:
    if card.caution and card.second_model:
        yield ours("Warning", f"A second model ({one_line(card.second_model.plain)}) cautions. It may be wrong.")
        yield fact("Caution", card.caution, is_value=True)


def _who(card: Card, approval: Approval) -> Iterator[Fact]:
    yield fact("Who decides", card.decides or see(who.sentences(approval)))
    now = card.who
    if now is None:
        return
    if now.several:
        by = f", by {', '.join(one_line(name.plain) for name in now.yes)}" if now.yes else ""
        yield ours("Approved so far", f"{len(now.yes)} of {now.quorum}{by}.{f' {now.turn}' if now.turn else ''}")
    if now.stuck:
        yield ours("Warning", now.stuck)
    if now.sign_in and now.stance == "may":
        yield ours("Warning", f"{now.sign_in} You can decline this call here, but not approve it.")
    if now.stance == "said":
        yield ours("You", "You approved this call. It runs once the others have approved it too.")
    if now.stance == "others":
        yield ours("You", "You cannot decide this call.")


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
    lines = []
    for row in (*table.rows, *table.more_rows) if full else table.rows:
        line = Text()
        for number, cell in enumerate(row):
            lead = f"{', ' if number else ''}{names[number]}: " if names else " = " if number else ""
            line = Text.assemble(line, lead, _marked(cell, _quoted(cell.text)))
        lines.append(line)
    yield Fact(label, Text("\n").join(lines), is_value=True)
    if table.more_rows and not full:
        yield ours("Hidden", f"{label}: {len(table.more_rows):,} more rows with {table.hidden:,} characters; {UNFOLD}.")


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


def _word(stretches: Stretches) -> Text:
    """Return a word in quotes, whose parts were told apart."""
    return Text.assemble('"', *(_written(part, _inside) for part, _ in stretches), '"')


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


def _cells(row: Approval) -> tuple[str, ...]:
    call = row.call
    assert call.deadline is not None
    who = f"{CallerKind(call.caller_kind).label} for {one_line(call.caller.get_username())}"
    level = disclosure.shown_risk(row)
    return str(row.pk), one_line(call.tool_name), who, f"L{level} {RISK_LABELS[level]}", left(call.deadline)


def _outcome(found: Approval) -> Iterator[Fact]:
    """Yield the outcome of the question: its decisions, what it ran with, its answer or why it ended."""
    call = found.call
    answers = list(found.decisions.select_related("person"))
    yield ours("Outcome", f"{Status(call.status).label}.")
    for each in answers:
        reason = f" {who.REASONS[each.verdict]}: {one_line(each.reason)}" if each.reason else ""
        by = f"{one_line(who.name(each))}, {one_line(who.how(each))}"
        yield ours("Decision", f"{who.DONE[each.verdict]} by {by}.{reason}")
    edited = [each.edited_arguments for each in answers if each.edited_arguments is not None]
    if edited:
        yield fact("Ran with", see(canonical.pretty(edited[-1], indent=2)), is_value=True)
    if call.status == Status.ANSWERED:
        yield ours("Not run", "A person answered in its place.")
        yield fact("Answer", see(call.result), is_value=True)
    if call.status == Status.WITHDRAWN and call.reason:
        yield fact("Why", see(call.reason))
    if call.error:
        yield fact("What happened", see(results.sentence(call.error)))
