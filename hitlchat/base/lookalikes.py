"""Characters that look like those of ASCII, by Unicode's own data (UTS #39).

With them, names are found that a person could mix up, and texts are folded to plain lower case, so that no spelling
hides a word.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from hitlchat.base.sentences import translatable

# Nothing is drawn for these either, although Unicode counts them as letters, marks or symbols: fillers, the braille
# blank, the null notehead, and the variation selectors, in which a whole text can be smuggled.
BLANKS = {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159", *map(chr, range(0x180B, 0x1810))}
BLANKS |= {*map(chr, range(0xFE00, 0xFE10)), *map(chr, range(0xE0100, 0xE01F0))}
# Words that belong to the gate, or that model servers and clients give a meaning of their own.
RESERVED = frozenset(
    {
        *("approve", "approved", "approval", "decline", "declined", "decide", "grant", "hitl", "hitlchat"),
        *("system", "developer", "user", "assistant", "tool", "tools", "function", "none", "null", "auto", "required"),
        *("constructor", "prototype", "__proto__"),
    }
)
# In many typefaces, though not in Unicode's data; and the apostrophes of typography.
_NEAR = {"\u043f": "n", "\u04cf": "i", "\u03b7": "n", "\u03bd": "n", "\u03c9": "w", "\u2018": "'", "\u2019": "'"}
_WORDS = re.compile(r"[_.\-/]+|(?<=[a-z0-9])(?=[A-Z])")
_PAIRS = (("rn", "m"), ("vv", "w"))
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "-": "_"})


def mistakable(name: str, others: Collection[str]) -> str:
    """Return why no tool may have this name beside those with the names `others`; empty if it may."""
    own = shape(name)
    if own in map(shape, RESERVED):
        return translatable(f"“{name}” is, or looks like, a reserved word.")
    other = next((each for each in others if shape(each) == own), None)
    if other is None:
        return ""
    how = "is the name of another tool" if other == name else f"looks like “{other}”, the name of another tool"
    return translatable(f"“{name}” {how}.")


def shape(name: str) -> str:
    """Return a name at a glance: no case, `-` as `_`, one `_` for several, 0 as o, 1 and i as l, rn as m."""
    seen = name.lower().translate(_ALIKE)
    for pair, letter in _PAIRS:
        seen = seen.replace(pair, letter)
    return re.sub("_+", "_", seen).strip("_") or seen


@dataclass(frozen=True)
class Folded:
    """`text` in plain lower case; the character at index i stood at `at[i]`, or at i where `at` is None."""

    text: str
    at: tuple[int, ...] | None = None

    def place(self, index: int) -> int:
        return index if self.at is None else self.at[index]


def fold(text: str) -> Folded:
    if text.isascii():
        return Folded(text.lower())
    pairs = [(plain, index) for index, char in enumerate(text) for plain in _plain(char)]
    return Folded("".join(plain for plain, _ in pairs), tuple(index for _, index in pairs))


def words(name: str) -> str:
    """A name such as `readSshKey` or `read_ssh_key` as words."""
    return _WORDS.sub(" ", name)


@cache
def lookalikes() -> Mapping[str, str]:
    """Return what looks like a single ASCII character, with that one. Loading it takes a while: ASCII needs none."""
    from confusable_homoglyphs.confusables import confusables_data  # noqa: PLC0415 - loading it takes a tenth of a second

    found = {}
    for plain, others in confusables_data.items():
        if plain.isascii() and (len(plain) == 1 or plain == "rn"):
            for other in others:
                # The data has marks of direction around right-to-left letters.
                char = other["c"].strip("\u200e")
                if len(char) == 1 and not char.isascii():
                    found[char] = _as_read(char, "m" if plain == "rn" else plain)
    return found


def _as_read(char: str, plain: str) -> str:
    """Tell apart what the data takes for one: 1, I and l; 0 and O."""
    compatible = unicodedata.normalize("NFKC", char)
    if len(compatible) == 1 and "!" <= compatible <= "~":
        return compatible
    if unicodedata.category(char) == "Nd":
        return {"l": "1", "o": "0", "O": "0"}.get(plain, plain)
    return "I" if plain == "l" and char.isupper() else plain


@lru_cache(maxsize=4096)
def script(char: str) -> str:
    """Return Unicode's script of a character, in capitals: `CYRILLIC`, `COMMON`."""
    from confusable_homoglyphs.categories import alias  # noqa: PLC0415 - the same

    return str(alias(char))


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    if 0xE0020 <= ord(char) <= 0xE007E:
        return chr(ord(char) - 0xE0000).lower()
    found = map(_letter, unicodedata.normalize("NFKD", char))
    return "".join(
        each for each in found if unicodedata.category(each) not in {"Cf", "Mn", "Me"} and each not in BLANKS
    )


def _letter(char: str) -> str:
    """Return the ASCII letter that a character looks like, also if only as a capital; else the small one it is."""
    small, table = char.lower(), lookalikes()
    found = _NEAR.get(small) or table.get(char) or table.get(char.upper(), "")
    return found.lower() if found.isalnum() or found == "'" else small
