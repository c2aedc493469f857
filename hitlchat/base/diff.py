"""The difference of two sequences, of texts line by line, and of texts side by side, in bounded time.

What both ends share is matched first, the middle only if it is short.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitlchat.base.visible import Seen

# Matching takes quadratic time: beyond these, the differing middle is shown, or marked, as a whole.
MOST_MATCHED_LINES = MOST_MATCHED_WORDS = 1500
CONTEXT_LINES = 3
# Of a longer stretch that is the same on both sides, this many characters stay at each end.
CONTEXT = 160
LONGEST_TEXT = 40_000
_WORDS = re.compile(r"\s+|[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+")
# White space that differs would not be seen.
_UNSEEN = {"\n": "\u21b5", "\t": "\u21e5"}

Opcode = tuple[str, int, int, int, int]
# A word, and whether it stands for hidden characters.
Word = tuple[str, bool]


@dataclass(frozen=True)
class Line:
    """`old` and `new` count from 1, None where the line is not in that text. A skip stands for lines left out."""

    kind: Literal["same", "gone", "come", "skip"]
    text: str
    old: int | None = None
    new: int | None = None


@dataclass(frozen=True)
class Part:
    """A stretch of one side. `escape`: it stands for hidden characters; a skip counts characters left out."""

    text: str
    kind: Literal["same", "differs", "skip"]
    escape: bool = False


@dataclass(frozen=True)
class Side:
    """One side, ready to be shown; `stored` and `right_to_left` as of Seen."""

    parts: tuple[Part, ...]
    warnings: tuple[str, ...]
    stored: bool = False
    right_to_left: bool = False


def shared(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """Return how many items are the same at the beginning, and of the rest at the end."""
    head = _common(old, new)
    return head, _common(old[head:][::-1], new[head:][::-1])


def opcodes(old: Sequence[Any], new: Sequence[Any], most: int, *, autojunk: bool = False) -> list[Opcode]:
    """Return the stretches as `SequenceMatcher` does: tag, then begin and end in both.

    Matching takes quadratic time: a middle of more than `most` items is replaced as a whole.
    """
    head, tail = shared(old, new)
    first, last = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(first), len(last)) > most:
        middle: list[Opcode] = [("replace", 0, len(first), 0, len(last))]
    else:
        middle = list(SequenceMatcher(None, first, last, autojunk=autojunk).get_opcodes())
    return [
        ("equal", 0, head, 0, head),
        *((tag, head + i1, head + i2, head + j1, head + j2) for tag, i1, i2, j1, j2 in middle),
        ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
    ]


def lines(before: str, after: str) -> list[Line]:
    """Empty if the texts are the same. Only line feeds end a line, so that nothing hides behind another separator."""
    if before == after:
        return []
    if before.endswith("\n") and after.endswith("\n"):
        before, after = before[:-1], after[:-1]
    old, new = before.split("\n"), after.split("\n")
    whole: list[Line] = []
    for tag, i1, i2, j1, j2 in opcodes(old, new, MOST_MATCHED_LINES, autojunk=True):
        if tag == "equal":
            whole += [Line("same", old[i], i + 1, j + 1) for i, j in zip(range(i1, i2), range(j1, j2), strict=True)]
        else:
            whole += [Line("gone", old[i], old=i + 1) for i in range(i1, i2)]
            whole += [Line("come", new[j], new=j + 1) for j in range(j1, j2)]
    return list(_with_context(whole))


def sides(before: Seen | None, after: Seen | None) -> tuple[Side | None, Side | None]:
    """Return both sides with the words that differ marked.

    None where there is nothing on that side; the other one is then all new, or all gone, and has no marks.
    """
    if before is None or after is None:
        return _unmarked(before), _unmarked(after)
    old, new = _words(before), _words(after)
    gone, come = [True] * len(old), [True] * len(new)
    for tag, i1, i2, j1, j2 in opcodes(old, new, MOST_MATCHED_WORDS):
        if tag == "equal":
            gone[i1:i2] = come[j1:j2] = [False] * (i2 - i1)
    return _side(before, zip(old, gone, strict=True)), _side(after, zip(new, come, strict=True))


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _with_context(whole: list[Line]) -> Iterator[Line]:
    """Yield differing lines and those around them; runs of others become one line that counts them."""
    near = [False] * len(whole)
    for at, line in enumerate(whole):
        if line.kind != "same":
            first, last = max(0, at - CONTEXT_LINES), min(len(whole), at + CONTEXT_LINES + 1)
            near[first:last] = [True] * (last - first)
    skipped = 0
    for line, shown in zip(whole, near, strict=True):
        if shown and skipped:
            yield _skip(skipped)
        skipped = 0 if shown else skipped + 1
        if shown:
            yield line
    if skipped:
        yield _skip(skipped)


def _skip(count: int) -> Line:
    words = ngettext("{count} unchanged line", "{count} unchanged lines", count)
    return Line("skip", words.format(count=number_format(count, force_grouping=True)))


def _unmarked(seen: Seen | None) -> Side | None:
    if seen is None:
        return None
    return _side(seen, [((piece.text, piece.hidden), False) for piece in seen.pieces])


def _side(seen: Seen, marked: Iterable[tuple[Word, bool]]) -> Side:
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


def _parts(text: str, differs: bool, escape: bool, *, ends: tuple[bool, bool]) -> Iterator[Part]:
    if differs and escape:
        yield Part(text, "differs", escape=True)
    elif differs:
        for piece in re.split(r"([\n\t])", text):
            if piece in _UNSEEN:
                yield Part(_UNSEEN[piece], "differs", escape=True)
            if piece:
                yield Part(piece, "differs")
    elif escape or ends == (True, True):
        yield Part(text, "same", escape=escape)
    else:
        yield from _folded(text, 0 if ends[0] else CONTEXT, 0 if ends[1] else CONTEXT)


def _folded(text: str, head: int, tail: int) -> Iterator[Part]:
    left_out = len(text) - head - tail
    if left_out <= CONTEXT:
        yield Part(text, "same")
        return
    if head:
        yield Part(text[:head], "same")
    words = _("{count} unchanged characters")
    yield Part(words.format(count=number_format(left_out, force_grouping=True)), "skip")
    if tail:
        yield Part(text[-tail:], "same")


def _limited(parts: list[Part]) -> Iterator[Part]:
    left = LONGEST_TEXT
    for at, part in enumerate(parts):
        yield part if len(part.text) <= left else Part(part.text[:left], part.kind, escape=part.escape)
        left -= len(part.text)
        if left < 0:
            missing = -left + sum(len(each.text) for each in parts[at + 1 :])
            words = _("{count} more characters").format(count=number_format(missing, force_grouping=True))
            yield Part(words, "skip")
            return
