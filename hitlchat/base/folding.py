"""Texts folded to plain lower case, so that no spelling hides a word: look-alikes, accents, invisible characters."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from hitlchat.base.lookalikes import lookalikes
from hitlchat.base.visible import BLANKS

# In many typefaces, though not in Unicode's data; and the apostrophes of typography.
_NEAR = {"\u043f": "n", "\u04cf": "i", "\u03b7": "n", "\u03bd": "n", "\u03c9": "w", "\u2018": "'", "\u2019": "'"}
_WORDS = re.compile(r"[_.\-/]+|(?<=[a-z0-9])(?=[A-Z])")


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
