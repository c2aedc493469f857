"""Characters that a reader does not see, or takes for others."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from hitlchat.base.visible import BLANKS, HIDDEN_CATEGORIES, see
from hitlchat.upstreams.judge.scan.findings import Severity


@dataclass(frozen=True)
class Match:
    """A signal found in one text, from `start` to `end`."""

    id: str
    severity: Severity
    sentence: str
    start: int
    end: int


# What an emoji is put together with, right where it belongs.
_EMOJI = r"\xa9\xae\u203c-\u3299\U0001f000-\U0001faff"
_JOINED = re.compile(
    rf"(?<=[{_EMOJI}])[\ufe0e\ufe0f]|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[0-9#*])\ufe0f\u20e3"
)
_PATTERNS: tuple[tuple[str, Severity, str, str], ...] = (
    ("tag-characters", "block", "[\U000e0000-\U000e007f]", "Hides a text in tag characters, which only a model reads."),
    ("direction-override", "block", "[\u202a-\u202e\u2066-\u2069]", "Turns the direction of writing, so that what is"
     " shown is not what is said."),
    ("zero-width", "block", "[\u200b-\u200d\u2060\ufeff\u180e]", "Has characters without a width: words may be split or"
     " hidden by them."),
    ("terminal-codes", "block", r"[\x1b\x9b]|\\(?:x1b|u001b|033|e)\[", "Has control codes of a terminal, which can"
     " hide or repaint text."),
    ("variation-selectors", "block", "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}|[\U000e0100-\U000e01ef]", "Has variation"
     " selectors in places where they mean nothing; a text can be smuggled in them."),
)  # fmt: skip
_COMPILED = tuple((id, severity, re.compile(pattern), sentence) for id, severity, pattern, sentence in _PATTERNS)
_ODD = re.compile(r"[^\x20-\x7e\n\t]")


def unseen(text: str) -> Iterator[Match]:
    """At most one match per kind. Line ends of any system, emoji and spaces of other widths are no finding."""
    # A character stands in for each one taken out: places must stay what they are.
    text = _JOINED.sub(lambda match: " " * len(match[0]), text).replace("\r\n", " \n")
    if not _ODD.search(text) and "\\" not in text:
        return
    covered = set()
    for id, severity, pattern, sentence in _COMPILED:
        if match := pattern.search(text):
            covered.add(id)
            yield Match(id, severity, sentence, match.start(), match.end())
    if not covered:
        yield from _rest(text)


def _rest(text: str) -> Iterator[Match]:
    hidden = [index for index, char in enumerate(text) if _hidden(char)]
    if hidden:
        first = hidden[0]
        yield Match("hidden-characters", "warn", "Has characters that cannot be seen.", first, first + 1)
        return
    plain = "".join(" " if unicodedata.category(char) == "Zs" else char for char in text)
    seen = see(plain)
    if seen.warnings:
        odd = _ODD.search(plain)
        start = odd.start() if odd else 0
        yield Match("look-alikes", "warn", " ".join(seen.warnings), start, start + 1)


def _hidden(char: str) -> bool:
    if " " <= char <= "~" or char in "\n\t":
        return False
    category = unicodedata.category(char)
    return (category in HIDDEN_CATEGORIES and category != "Zs") or char in BLANKS
