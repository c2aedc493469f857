"""Becoming: what accepting a changed tool would mean, its record beside the accepted one, with nothing hidden."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from hitlchat.base import canonical, diff
from hitlchat.base.visible import Seen, see
from hitlchat.gate.models import HitlMode, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams import catalog, endpoint
from hitlchat.upstreams.models import ComposedTool, ToolEvent
from hitlchat.upstreams.risk.fingerprint import FIELDS, Difference, Offered, difference
from hitlchat.upstreams.risk.rubric import Composed, assess_server, assess_tool, compose, says_it_writes
from hitlchat.upstreams.risk.scan import Finding, blocks, findings_of, scan, trips

# Beyond it, matching words takes quadratic time: what differs is then marked as a whole.
MOST_MATCHED_WORDS = 1500
# Of a longer stretch that is the same on both sides, this much stays at each end.
CONTEXT = 160
LONGEST_TEXT = 40_000
_WORDS = re.compile(r"\s+|[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+")
# White space that differs would not be seen.
_UNSEEN = {"\n": "\u21b5", "\t": "\u21e5"}

Kind = Literal["same", "differs", "skip"]
Word = tuple[str, bool]


@dataclass(frozen=True)
class Part:
    """A stretch of one side. `escape`: it stands for what cannot be seen; a skip says what was left out."""

    text: str
    kind: Kind
    escape: bool = False


@dataclass(frozen=True)
class Side:
    """One side, ready to be shown; `stored` and `right_to_left` as of Seen."""

    parts: tuple[Part, ...]
    warnings: tuple[str, ...]
    stored: bool = False
    right_to_left: bool = False


def sides(before: Seen | None, after: Seen | None) -> tuple[Side | None, Side | None]:
    """None where there is nothing on that side; the other one is then all new, or all gone, and has no marks."""
    if before is None or after is None:
        return _alone(before), _alone(after)
    old, new = _words(before), _words(after)
    one, other = _matched(old, new)
    return _side(before, one), _side(after, other)


def _alone(seen: Seen | None) -> Side | None:
    return None if seen is None else _side(seen, _whole(seen))


def _side(seen: Seen, marked: list[tuple[Word, bool]]) -> Side:
    runs = [
        ("".join(word for (word, _), _ in run), differs, escape)
        for (differs, escape), run in groupby(marked, key=lambda each: (each[1], each[0][1]))
    ]
    parts = [
        part
        for at, (text, differs, escape) in enumerate(runs)
        for part in _parts(text, differs, escape, ends=(at == 0, at == len(runs) - 1))
    ]
    return Side(tuple(_limited(parts)), seen.warnings, seen.stored, seen.right_to_left)


def _words(seen: Seen) -> list[Word]:
    return [
        (word, piece.hidden)
        for piece in seen.pieces
        for word in ([piece.text] if piece.hidden else _WORDS.findall(piece.text))
    ]


def _whole(seen: Seen) -> list[tuple[Word, bool]]:
    return [((piece.text, piece.hidden), False) for piece in seen.pieces]


def _matched(old: list[Word], new: list[Word]) -> tuple[list[tuple[Word, bool]], list[tuple[Word, bool]]]:
    gone, come = [True] * len(old), [True] * len(new)
    for tag, i1, i2, j1, j2 in diff.opcodes(old, new, MOST_MATCHED_WORDS):
        if tag == "equal":
            gone[i1:i2] = come[j1:j2] = [False] * (i2 - i1)
    return list(zip(old, gone, strict=True)), list(zip(new, come, strict=True))


def _parts(text: str, differs: bool, escape: bool, *, ends: tuple[bool, bool]) -> Iterator[Part]:
    if differs:
        yield from [Part(text, "differs", escape=True)] if escape else _visible(text)
    elif escape or ends == (True, True):
        yield Part(text, "same", escape=escape)
    else:
        yield from _folded(text, 0 if ends[0] else CONTEXT, 0 if ends[1] else CONTEXT)


def _visible(text: str) -> Iterator[Part]:
    for piece in re.split(r"([\n\t])", text):
        if piece in _UNSEEN:
            yield Part(_UNSEEN[piece], "differs", escape=True)
        if piece:
            yield Part(piece, "differs")


def _folded(text: str, head: int, tail: int) -> Iterator[Part]:
    left_out = len(text) - head - tail
    if left_out <= CONTEXT:
        yield Part(text, "same")
        return
    if head:
        yield Part(text[:head], "same")
    said = _("{count} characters, the same on both sides")
    yield Part(said.format(count=number_format(left_out, force_grouping=True)), "skip")
    if tail:
        yield Part(text[-tail:], "same")


def _limited(parts: list[Part]) -> Iterator[Part]:
    left = LONGEST_TEXT
    for at, part in enumerate(parts):
        yield part if len(part.text) <= left else Part(part.text[:left], part.kind, escape=part.escape)
        left -= len(part.text)
        if left < 0:
            missing = -left + sum(len(each.text) for each in parts[at + 1 :])
            said = _("{count} more characters, not shown").format(count=number_format(missing, force_grouping=True))
            yield Part(said, "skip")
            return


LONGEST = 70_000


@dataclass(frozen=True)
class Field:
    """One member. `cut`: how many characters of it are not shown, which only happens to what cannot be offered."""

    words: str
    text: Seen
    is_code: bool
    cut: int


def fields(record: dict[str, Any]) -> tuple[Field, ...]:
    return tuple(_fields(record))


def _fields(record: dict[str, Any]) -> Iterator[Field]:
    for name, words in FIELDS.items():
        if name not in record:
            continue
        value = record[name]
        text = value if isinstance(value, str) else canonical.pretty(value, indent=2)
        shown = see(text[:LONGEST])
        yield Field(words, shown, not isinstance(value, str), max(0, len(text) - LONGEST))


def is_intact(record: dict[str, Any], digest: str) -> bool:
    """Return whether what is stored still has the fingerprint that was accepted."""
    return canonical.sha256(record) == digest


MOST_PLACES = 200


@dataclass(frozen=True)
class Place:
    """One place in which two records differ."""

    found: Difference
    before: Side | None
    after: Side | None

    @property
    def is_inside(self) -> bool:
        """Return whether it is a part of a schema or of the connection, whose place says more than the field's name."""
        return self.found.where.count("/") > 1


@dataclass(frozen=True)
class Comparison:
    """The first places in which two records differ, and how many more there are."""

    places: tuple[Place, ...]
    more: int


@dataclass(frozen=True)
class Becoming:
    """`withdrawn`: calls that came to nothing when it changed. `loses_mode`: accepted, it asks every time again.
    `must_read`: nobody may accept it without saying that they read the warnings.
    """

    comparison: Comparison
    before: Composed
    after: Composed
    new_warnings: tuple[Finding, ...]
    withdrawn: int
    loses_mode: bool
    must_read: bool

    @property
    def riskier(self) -> bool:
        return self.after.inherent > self.before.inherent


def compare(before: dict[str, object], after: dict[str, object]) -> Comparison:
    found = difference(before, after)
    places = [Place(each, *sides(each.before, each.after)) for each in found[:MOST_PLACES]]
    return Comparison(tuple(places), max(0, len(found) - MOST_PLACES))


def has_changed(row: ComposedTool) -> bool:
    """Return whether somebody has to look before it can be offered again."""
    return bool(row.pinned_digest) and (row.held or row.seen_digest != row.pinned_digest)


def becoming(row: ComposedTool) -> Becoming:
    """Return what a tool that `has_changed` becomes; its server and its row in the gate are loaded."""
    facts = endpoint.facts_of(row.server, writes=row.server.writes)
    then = endpoint.facts_of(row.server, writes=_wrote(row))
    old = scan(Offered.from_json(row.pinned), catalog.known_to(row.server))
    new = findings_of(row.warnings)
    known = {(each.id, each.where, each.excerpt) for each in old}
    gated = row.tool is None or row.tool.hitl_mode == HitlMode.REQUIRED
    return Becoming(
        comparison=compare(row.pinned, row.seen),
        before=compose(
            assess_server(then), assess_tool(Offered.from_json(row.pinned), then), gated=gated, poisoned=trips(old)
        ),
        after=compose(
            assess_server(facts), assess_tool(Offered.from_json(row.seen), facts), gated=True, poisoned=trips(new)
        ),
        new_warnings=tuple(each for each in new if (each.id, each.where, each.excerpt) not in known),
        withdrawn=_withdrawn(row),
        loses_mode=not gated,
        must_read=blocks(new),
    )


def _wrote(row: ComposedTool) -> bool:
    """Would any of the server's tools say that it writes, if this one were as it was accepted?"""
    if not row.server.writes or says_it_writes(Offered.from_json(row.pinned)):
        return row.server.writes
    others = ComposedTool.objects.filter(server=row.server, listed=True).exclude(pk=row.pk)
    return any(says_it_writes(Offered.from_json(seen)) for seen in others.values_list("seen", flat=True).iterator())


def _withdrawn(row: ComposedTool) -> int:
    changed = ToolEvent.objects.filter(tool=row, name="tool.changed").last()
    if changed is None or row.tool is None:
        return 0
    return ToolCall.objects.filter(tool=row.tool, status=Status.WITHDRAWN, settled_at__gte=changed.at).count()
