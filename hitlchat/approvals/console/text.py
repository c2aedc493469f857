"""Texts of tools, models and people as a terminal may get them.

Nothing in them acts on a terminal: what cannot be seen comes as <U+001B>, and whatever is printed passes `printable`
last. Nothing in them ends where it does not: in a sentence they stand in quotes, elsewhere each line has its label.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from hitlchat.base.visible import Piece, Seen, escaped, see

Line = tuple[Piece, ...]

# U+007F too, which no escape of JSON covers.
_ACTS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_RIGHT_TO_LEFT: Final = {"R", "AL", "AN"}


@dataclass(frozen=True)
class Fact:
    """One thing that the card says. `label` is ours, as is the text of those of `kind` "said"; that of the others is
    somebody's: of a "value" in a box of its own, of a "text" beside its label."""

    label: str
    lines: tuple[Line, ...]
    kind: str = "said"

    @property
    def plain(self) -> list[str]:
        """One line each, with its label, so that no value can look like another fact."""
        return [f"{self.label}: {plain(line)}" for line in self.lines]


def said(label: str, sentence: str) -> Fact:
    """Our words, into which names may be woven."""
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
    """On one line, in quotes that it cannot end."""
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
    """Terminals differ in how they turn lines around: where that could mislead, each such letter is its code."""
    codes = (f"<U+{ord(c):04X}>" if unicodedata.bidirectional(c) in _RIGHT_TO_LEFT else c for c in piece.text)
    return Piece("".join(codes), piece.hidden)
