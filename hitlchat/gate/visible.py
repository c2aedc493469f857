"""Text as it is, with everything a reader could not see made visible (SR-3).

Unicode's general categories decide (UAX #44): controls, formats, surrogates, private use, unassigned, and every
separator but the plain space are shown as U+XXXX. Line feeds and tabs stay: boxes keep them as they are.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
# Nothing is drawn for these either, although Unicode counts them as letters, marks or symbols: fillers, the braille
# blank, and the variation selectors, in which a whole text can be smuggled.
BLANKS = {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", *map(chr, range(0x180B, 0x1810))}
BLANKS |= {*map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0xE0100, 0xE01F0))}
PLAIN = {" ", "\n", "\t"}
RTL = {"R", "AL", "AN"}
MIXABLE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}
_ASCII = re.compile(r"[\x20-\x7e\n\t]*\Z")
_WORD = re.compile(r"[^\W\d_]+")
_PUNYCODE = re.compile(r"\bxn--[a-z0-9-]+", re.IGNORECASE)


@dataclass(frozen=True)
class Piece:
    """A stretch of text; `hidden` ones are escapes standing for a character that can't be seen."""

    text: str
    hidden: bool = False


@dataclass(frozen=True)
class Seen:
    """A text ready to be shown: its pieces, and what a reader should be warned of, in sentences."""

    pieces: tuple[Piece, ...]
    warnings: tuple[str, ...] = ()

    @property
    def plain(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def suspect(self) -> bool:
        return bool(self.warnings)


def see(text: str) -> Seen:
    """`text` with hidden characters as escapes, and the warnings that belong to it."""
    if _ASCII.match(text):
        return Seen((Piece(text),), _punycode(text))
    pieces: list[Piece] = []
    plain: list[str] = []
    for char in text:
        if not _is_hidden(char):
            plain.append(char)
            continue
        if plain:
            pieces.append(Piece("".join(plain)))
            plain = []
        pieces.append(Piece(f"U+{ord(char):04X}", hidden=True))
    if plain:
        pieces.append(Piece("".join(plain)))
    return Seen(tuple(pieces), (*_warnings(text), *_punycode(text)))


@lru_cache(maxsize=4096)
def _is_hidden(char: str) -> bool:
    return char not in PLAIN and (unicodedata.category(char) in HIDDEN_CATEGORIES or char in BLANKS)


def _warnings(text: str) -> list[str]:
    found = []
    hidden = [char for char in text if _is_hidden(char)]
    if any(unicodedata.bidirectional(char) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
           for char in hidden):  # fmt: skip
        found.append("Contains a direction override: elsewhere this text may look different.")
    if hidden:
        many = f"{len(hidden):,} characters" if len(hidden) > 1 else "a character"
        found.append(f"Contains {many} that cannot be seen, shown here as U+ and a code.")
    if any(unicodedata.bidirectional(char) in RTL for char in text):
        found.append("Contains right-to-left letters; they are shown in the order in which they are stored.")
    if word := _mixed_word(text):
        found.append(f"Mixes look-alike letters of different alphabets in one word: “{word}”.")
    return found


def _mixed_word(text: str) -> str | None:
    for match in _WORD.finditer(text):
        word = match.group()
        if not word.isascii() and len({_script(char) for char in word} & MIXABLE) > 1:
            return word[:60]
    return None


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _punycode(text: str) -> tuple[str, ...]:
    match = _PUNYCODE.search(text)
    return (f"Contains an encoded international host name: “{match.group()[:60]}”.",) if match else ()
