"""Text as it is, with everything that a reader cannot see made visible (SR-3).

Unicode's general categories decide (UAX #44): controls, formats, surrogates, private use, unassigned, and every
separator but the plain space are shown as U+XXXX. Line feeds and tabs stay: boxes keep them as they are.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

from django.utils.translation import gettext_noop

from hitlchat.base.sentences import translatable

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
MIXABLE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}
MOST_MARKS = 2
MOST_CODES = 5
# A page can carry this many elements for escapes; behind the last of them the escapes stand in the text.
MOST_PIECES = 1000
LONGEST_NAMED = 60
# Ordinary in Chinese and Japanese, so no look-alikes beside their letters.
_WIDE = "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5e"
_EAST_ASIAN = (
    rf"\u1100-\u11ff\u2e80-\u312f\u3131-\u318e\u31a0-\ua4cf\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff{_WIDE}"
)
# Look-alikes of ASCII punctuation that Unicode's compatibility mappings don't know.
_TWINS = dict.fromkeys("\u2215\u2044\u29f8\u2571", "/") | dict.fromkeys("\ua789\u2236\u02f8\u0589", ":")
_TWINS |= dict.fromkeys("\u2216\u29f5", "\\") | {"\ua4f8": ".", "\u01c3": "!", "\u01c0": "|"}
_EMOJI = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935"
    r"\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_DIRECTION = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
_RTL = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff\U0001e800-\U0001efff]")
# A line in which nothing but right-to-left letters has a direction of its own: no display order can mislead.
_RTL_LINE = re.compile(
    rf"(?:[\u0590-\u065f\u066e-\u06ef\u06fa-\u07bf\u07ca-\u08ff\ufb1d-\ufdff\ufe70-\ufefe{_EMOJI}]"
    r"|[ \t.,:;!?'\"\u2013\u2014\u2018\u2019\u201c\u201d\u2026\ufe0f\u200d-])*\Z"
)
_ASCII = re.compile(r"[\x20-\x7e\n\t]*\Z")
_WORD = re.compile(r"[^\W\d_]+")
_PUNYCODE = re.compile(r"\bxn--[a-z0-9-]+", re.IGNORECASE)
_WIDE_ALONE = re.compile(rf"[{_WIDE}](?<![{_EAST_ASIAN}].)(?![{_EAST_ASIAN}])")


@dataclass(frozen=True)
class Piece:
    """A stretch of text; `hidden` ones are escapes standing for characters that can't be seen."""

    text: str
    hidden: bool = False


@dataclass(frozen=True)
class Seen:
    """A text ready to be shown: its pieces, and warnings for a reader, in sentences."""

    pieces: tuple[Piece, ...]
    warnings: tuple[str, ...] = ()
    right_to_left: bool = False
    # To be shown in the order in which it is stored, because its display order could mislead.
    stored: bool = False

    @property
    def plain(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def suspect(self) -> bool:
        return bool(self.warnings)


def is_hidden(char: str) -> bool:
    return char not in PLAIN and (unicodedata.category(char) in HIDDEN_CATEGORIES or char in BLANKS)


def see(text: str, *, stored: bool = False) -> Seen:
    """`text` with hidden characters as escapes, and the warnings that belong to it; `stored` if it is a part of a text
    that is shown in stored order.
    """
    if _ASCII.match(text):
        return Seen((Piece(text),), _punycode(text), stored=stored)
    runs = [match for match in patterns().token.finditer(text) if match.lastgroup]
    right_to_left = bool(_RTL.search(text))
    misleads = any(_RTL.search(line) and not _RTL_LINE.match(line) for line in text.split("\n"))
    stored = stored or (right_to_left and (bool(runs) or misleads))
    warnings = (*_warnings(text, "".join(run[0] for run in runs), stored=stored and right_to_left), *_punycode(text))
    return Seen(tuple(_pieces(text, runs)), warnings, right_to_left, stored)


def pieces(text: str) -> tuple[Piece, ...]:
    """`text` with its hidden characters as escapes, without the warnings that belong to it."""
    if _ASCII.match(text):
        return (Piece(text),)
    return tuple(_pieces(text, [match for match in patterns().token.finditer(text) if match.lastgroup]))


def escaped(text: str) -> str:
    """`text` with each hidden character as plain U+ and code, where nothing can be marked as an escape."""
    if _ASCII.match(text):
        return text
    return patterns().token.sub(lambda match: _codes(match[0]) if match.lastgroup else match[0], text)


class _Patterns(NamedTuple):
    token: re.Pattern[str]
    hidden_run: re.Pattern[str]
    hostlike: re.Pattern[str]
    top_level: re.Pattern[str]


@cache
def patterns() -> _Patterns:
    """Return the patterns that need the tables of Unicode. Making them takes a while: plain ASCII needs none."""
    chars = [*map(chr, range(_UNSEEN_PLANES))]
    marks = [char for char in chars if unicodedata.category(char) in {"Mn", "Me"} and char not in BLANKS]
    hidden = _ranges(filter(is_hidden, chars)) + rf"\U{_UNSEEN_PLANES:08x}-\U0010ffff"
    overlay = _ranges(filter(_is_overlay, marks))
    mark = _ranges(char for char in marks if not _is_overlay(char))
    emoji = rf"(?![{hidden}])[{_EMOJI}][\ufe0e\ufe0f]?"
    unseen, rest = rf"[{hidden}{overlay}]", rf"[{hidden}{overlay}{mark}]*"
    # Either an emoji with its modifiers, or a run to be escaped: hidden characters, and marks that have enough of
    # their kind before them or nothing to stand on.
    token = re.compile(
        rf"{emoji}(?:\u200d{emoji})*|[0-9#*]\ufe0f\u20e3"
        rf"|(?![ -~\n\t])(?P<escaped>{unseen}{rest}|[{mark}](?<=[{mark}]{{{MOST_MARKS + 1}}}){rest}"
        rf"|[{mark}](?<![^\n{hidden}{overlay}].){rest})"
    )
    return _Patterns(
        token,
        re.compile(f"[{hidden}]+"),
        re.compile(rf"[\w.{mark}-]+"),
        re.compile(rf"[^\W\d_][^\W\d_{mark}]*[^\W\d_]"),
    )


def _ranges(chars: Iterable[str]) -> str:
    """The inside of a regular expression's [...] that matches `chars`, which are in order."""
    found: list[list[int]] = []
    for code in map(ord, chars):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found)


def _is_overlay(char: str) -> bool:
    return unicodedata.combining(char) == 1 or char in _MORE_OVERLAYS


def _pieces(text: str, runs: list[re.Match[str]]) -> Iterator[Piece]:
    at = 0
    for run in runs[:MOST_PIECES]:
        if at < run.start():
            yield Piece(text[at : run.start()])
        yield Piece(_codes(run[0]), hidden=True)
        at = run.end()
    if len(runs) > MOST_PIECES:
        yield Piece(escaped(text[at:]), hidden=True)
    elif at < len(text):
        yield Piece(text[at:])


def _codes(run: str) -> str:
    codes = " ".join(f"U+{ord(char):04X}" for char in run[:MOST_CODES])
    return codes if len(run) <= MOST_CODES else f"{codes} +{len(run) - MOST_CODES:,} more"


def _warnings(text: str, escaped: str, *, stored: bool) -> Iterator[str]:
    if overrides := len(_DIRECTION.findall(escaped)):
        yield gettext_noop("Contains a direction override: elsewhere this text may look different.")
    hidden = sum(map(len, patterns().hidden_run.findall(escaped)))
    marks = len(escaped) - hidden
    # One warning for each character.
    if hidden := hidden - overrides:
        one = gettext_noop("Contains an invisible character, shown as U+ and a code.")
        many = translatable(f"Contains {hidden:,} invisible characters, shown as U+ and a code.")
        yield many if hidden > 1 else one
    if marks:
        yield (
            translatable(f"Contains {marks:,} marks that can overlap letters, shown as U+ and a code.")
            if marks > 1
            else gettext_noop("Contains a mark that can overlap letters, shown as U+ and a code.")
        )
    if stored:
        yield gettext_noop("Contains right-to-left letters, shown in stored order, left to right.")
    if word := _mixed_word(text):
        yield translatable(f"Mixes look-alike letters of different alphabets in one word: “{word}”.")
    if host := _foreign_host(text):
        yield translatable(
            f"“{host}” looks like a host name, but has letters other than a to z: it may imitate another."
        )
    if twins := _twins(text):
        yield translatable(f"Contains look-alikes of ordinary characters: {twins}.")


def _mixed_word(text: str) -> str | None:
    for match in _WORD.finditer(text):
        word = match.group()
        if not word.isascii() and len({_script(char) for char in set(word)} & MIXABLE) > 1:
            return word[:LONGEST_NAMED]
    return None


def _foreign_host(text: str) -> str | None:
    for match in patterns().hostlike.finditer(text):
        host = match.group().strip(".-_")
        if not host.isascii() and "." in host and patterns().top_level.match(host.rpartition(".")[2]):
            return host[:LONGEST_NAMED]
    return None


def _twins(text: str) -> str:
    wide = set(_WIDE_ALONE.findall(text))
    found = sorted(c for c in set(text) if not c.isascii() and _twin(c) and (c in wide or c not in _WIDE))
    named = [f"{char} (U+{ord(char):04X}, like “{_twin(char)}”)" for char in islice(found, MOST_CODES)]
    return ", ".join(named) + (f" and {len(found) - MOST_CODES:,} more" if len(found) > MOST_CODES else "")


@lru_cache(maxsize=4096)
def _twin(char: str) -> str | None:
    """The ASCII character that `char` may be mistaken for. Small raised and circled letters are not."""
    if char in _TWINS:
        return _TWINS[char]
    plain = unicodedata.normalize("NFKC", char)
    is_distinct = unicodedata.category(char) in {"So", "No", "Lm", "Lo"} or is_hidden(char)
    return plain if len(plain) == 1 and "!" <= plain <= "~" and not is_distinct else None


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _punycode(text: str) -> tuple[str, ...]:
    if match := _PUNYCODE.search(text):
        return (translatable(f"Contains an encoded international host name: “{match.group()[:LONGEST_NAMED]}”."),)
    return ()
