"""Two texts side by side, cut into what is in both, what is in one of them, and long stretches that need no reading."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

from hitlchat.base.visible import Seen

# Beyond it, matching words takes quadratic time: what differs is then marked as a whole.
MOST_MATCHED_WORDS = 1500
# Of a longer stretch that is the same on both sides, this much stays at each end.
CONTEXT = 160
LONGEST = 40_000
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
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    gone, come = [True] * len(old), [True] * len(new)
    gone[:head] = come[:head] = [False] * head
    gone[len(old) - tail :] = come[len(new) - tail :] = [False] * tail
    first, last = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(first), len(last)) <= MOST_MATCHED_WORDS:
        for i, j, size in SequenceMatcher(None, first, last, autojunk=False).get_matching_blocks():
            gone[head + i : head + i + size] = come[head + j : head + j + size] = [False] * size
    return list(zip(old, gone, strict=True)), list(zip(new, come, strict=True))


def _common(one: list[Word], other: list[Word]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


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
    yield Part(f"{left_out:,} characters, the same on both sides", "skip")
    if tail:
        yield Part(text[-tail:], "same")


def _limited(parts: list[Part]) -> Iterator[Part]:
    left = LONGEST
    for at, part in enumerate(parts):
        yield part if len(part.text) <= left else Part(part.text[:left], part.kind, escape=part.escape)
        left -= len(part.text)
        if left < 0:
            missing = -left + sum(len(each.text) for each in parts[at + 1 :])
            yield Part(f"{missing:,} more characters, not shown", "skip")
            return
