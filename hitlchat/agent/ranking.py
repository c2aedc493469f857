"""Ranks tools by words: how much each has of what is wanted, where a rare word says more than a common one."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import log
from typing import Final

from hitlchat.gate.models import Tool

# A tool's name counts for more than its description.
NAMED: Final = 3
# Of a word so many letters count: "refunds" and "refunded" are one.
STEM: Final = 5
_WORD: Final = re.compile(r"[^\W_]{2,}")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def words(text: str) -> set[str]:
    """Return the words of a text, each by its beginning."""
    return {word[:STEM] for word in _WORD.findall(_HUMP.sub(" ", text).casefold())}


def scores(tools: Iterable[Tool], wanted: Mapping[str, int]) -> dict[str, float]:
    """Return how much each tool has of `wanted`, words with what each counts for; by the tools' names."""
    names = {tool.name: words(tool.name) for tool in tools}
    texts = {tool.name: names[tool.name] | words(f"{tool.description} {_parameters(tool)}") for tool in tools}
    spread = Counter(word for text in texts.values() for word in text)

    def score(tool: str, word: str) -> float:
        return wanted[word] * (NAMED if word in names[tool] else 1) * log(len(texts) / spread[word])

    return {tool: sum(score(tool, word) for word in text & wanted.keys()) for tool, text in texts.items()}


def _parameters(tool: Tool) -> str:
    properties = tool.input_schema.get("properties")
    return " ".join(properties) if isinstance(properties, dict) else ""
