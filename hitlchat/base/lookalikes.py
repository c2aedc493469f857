"""Characters that look like those of ASCII, by Unicode's own data (UTS #39), and names that a person could mix up."""

import re
import unicodedata
from collections.abc import Collection, Mapping
from functools import cache, lru_cache

from hitlchat.base.sentences import translatable

# Words that belong to the gate, or that model servers and clients give a meaning of their own.
RESERVED = frozenset(
    {
        *("approve", "approved", "approval", "decline", "declined", "decide", "grant", "hitl", "hitlchat"),
        *("system", "developer", "user", "assistant", "tool", "tools", "function", "none", "null", "auto", "required"),
        *("constructor", "prototype", "__proto__"),
    }
)
_PAIRS = (("rn", "m"), ("vv", "w"))
_ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l", "-": "_"})


def mistakable(name: str, taken: Collection[str]) -> str:
    """Return why no tool may have this name beside those with the names `taken`; empty if it may."""
    own = shape(name)
    if own in map(shape, RESERVED):
        return translatable(f"“{name}” is, or looks like, a reserved word.")
    other = next((each for each in taken if shape(each) == own), None)
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
