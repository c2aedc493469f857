"""Characters that a reader cannot see, and marks: each set as the inside of a regular expression's [...]."""

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
# Nothing is drawn for these either, although Unicode counts them as letters, marks or symbols: fillers, the braille
# blank, the null notehead, and the variation selectors, in which a whole text can be smuggled.
BLANKS = {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159", *map(chr, range(0x180B, 0x1810))}
BLANKS |= {*map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0xE0100, 0xE01F0))}
PLAIN = {" ", "\n", "\t"}
# From here on every character is unassigned, private use, a tag or a variation selector.
_UNSEEN_PLANES = 0x40000
# Beyond the overlays by combining class: circles that cross out what they enclose.
_MORE_OVERLAYS = {*"\u1abe\u20e0\u20e2\u20e3\u20e4"}


def is_hidden(char: str) -> bool:
    return char not in PLAIN and (unicodedata.category(char) in HIDDEN_CATEGORIES or char in BLANKS)


def _is_overlay(char: str) -> bool:
    return unicodedata.combining(char) == 1 or char in _MORE_OVERLAYS


def _ranges(chars: Iterable[str]) -> str:
    """The inside of a regular expression's [...] that matches `chars`, which are in order."""
    found: list[list[int]] = []
    for code in map(ord, chars):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found)


class Sets(NamedTuple):
    hidden: str
    overlay: str
    mark: str


@cache
def sets() -> Sets:
    """Return the insides for hidden characters, overlays and other marks. Looking at all of Unicode takes a while."""
    chars = [*map(chr, range(_UNSEEN_PLANES))]
    marks = [char for char in chars if unicodedata.category(char) in {"Mn", "Me"} and char not in BLANKS]
    return Sets(
        _ranges(filter(is_hidden, chars)) + rf"\U{_UNSEEN_PLANES:08x}-\U0010ffff",
        _ranges(filter(_is_overlay, marks)),
        _ranges(char for char in marks if not _is_overlay(char)),
    )
