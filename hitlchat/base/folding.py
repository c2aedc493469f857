"""Texts folded to plain lower case, so that no spelling hides a word: look-alikes, accents, invisible characters."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from hitlchat.base.visible import BLANKS

_CYRILLIC = dict(zip("авекмнорстухіјѕԁԛԝһӏьгпі", "abekmhopctyxijsdqwhlbrni", strict=True))
_GREEK = dict(zip("αβγεζηικνορτυχωϲϳ", "abyezniknoptuxwcj", strict=True))
# Dotless i, script g and a, four Armenian letters, and the apostrophes of typography.
_OTHERS = {"\u0131": "i", "\u0261": "g", "\u0251": "a", "\u0578": "n", "\u0585": "o", "\u057d": "u", "\u0570": "h"}
_OTHERS |= {"\u2019": "'", "\u2018": "'"}
_LOOKALIKES = _CYRILLIC | _GREEK | _OTHERS
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
    found = (_LOOKALIKES.get(each, each) for each in unicodedata.normalize("NFKD", char).lower())
    return "".join(
        each for each in found if unicodedata.category(each) not in {"Cf", "Mn", "Me"} and each not in BLANKS
    )
