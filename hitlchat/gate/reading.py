"""How long it takes to read what a card shows. Every number errs on the side of the person who answered."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from hitlchat.gate import canonical
from hitlchat.gate.boxes import FOLD_AFTER, FOLD_AFTER_LINES, SHOWN_OF_FOLDED
from hitlchat.gate.card import MOST_FACTS, MOST_ROWS
from hitlchat.gate.effect import ROWS_SHOWN

# Silent reading of non-fiction in English, and the mean length of its words with the space after each: M. Brysbaert,
# “How many words do we read per minute?”, Journal of Memory and Language 109 (2019), 104047.
WORDS_A_MINUTE: Final = 238
CHARACTERS_A_WORD: Final = 5.6
# Who knows a tool skims its card. Nobody reads four times as fast as that.
FRACTION: Final = 0.25
# Below it nobody has taken in even the shortest question; and after so long nobody is said to have hurried.
FLOOR_SECONDS: Final = 2.0
MOST_SECONDS: Final = 30.0

# What a card shows without a click, besides the arguments, of a stored disclosure.
_SHOWN: Final = ("prompt", "reason", "preview", "again")


def seconds(disclosure: dict[str, Any]) -> float:
    """To read all that the card of `disclosure` shows without unfolding anything. What is missing takes no time."""
    texts = list(_texts(disclosure))
    # Of an id or a key each by itself nobody reads every letter, and not all languages have spaces: the less counts.
    words = min(sum(len(text.split()) for text in texts), sum(map(len, texts)) / CHARACTERS_A_WORD)
    return words / WORDS_A_MINUTE * 60


def least(reading: float) -> float:
    """Seconds below which an answer to what takes `reading` seconds was hurried."""
    return min(MOST_SECONDS, max(FLOOR_SECONDS, FRACTION * reading))


def _texts(disclosure: dict[str, Any]) -> Iterator[str]:
    for name in _SHOWN:
        yield from _leaves(disclosure.get(name))
    yield from _leaves([disclosure.get("tool", {}).get(name) for name in ("name", "origin")])
    yield from _leaves(disclosure.get("facts", [])[:MOST_FACTS])
    for name, value in islice(disclosure.get("arguments", {}).items(), MOST_ROWS):
        yield name
        yield _before_fold(value if isinstance(value, str) else canonical.pretty(value, indent=2))


def _leaves(value: Any) -> Iterator[str]:
    """Every text and number in JSON; of what folds, the part before the fold."""
    if isinstance(value, dict | list):
        parts: Iterable[Any] = value.values() if isinstance(value, dict) else value[: ROWS_SHOWN + 2]
        for part in parts:
            yield from _leaves(part)
    elif value is not None and not isinstance(value, bool):
        yield _before_fold(str(value))


def _before_fold(text: str) -> str:
    folds = len(text) > FOLD_AFTER or text.count("\n") >= FOLD_AFTER_LINES
    return text[:SHOWN_OF_FOLDED] if folds else text
