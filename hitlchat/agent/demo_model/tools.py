"""The tools of a request, as the demo model sees them."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hitlchat.agent.demo_model.shapes import Param, params
from hitlchat.agent.demo_model.words import FILLERS, canonical, parts, tokens

MOST = 500
LONGEST_DESCRIPTION = 1_000


@dataclass(frozen=True)
class Tool:
    """One tool that may be called."""

    name: str
    description: str
    schema: dict[str, Any]

    @property
    def params(self) -> list[Param]:
        return params(self.schema)

    @property
    def title(self) -> str:
        """The first line of the description."""
        return self.description.strip().partition("\n")[0].strip()

    @property
    def squashed(self) -> str:
        return "".join(parts(self.name))

    @property
    def vocabulary(self) -> frozenset[str]:
        """All words that it tells of itself, of its parameters and of their fixed values."""
        texts = [self.description, *(param.description for param in self.params), *_fixed(self)]
        names = [part for name in (self.name, *(param.name for param in self.params)) for part in parts(name)]
        said = (token.text for text in texts for token in tokens(text))
        aliases = frozenset[str]().union(*(param.words for param in self.params))
        return frozenset(map(canonical, [*names, *said])) | aliases


def _fixed(tool: Tool) -> list[str]:
    return [str(value) for param in tool.params for value in param.enum]


def offered(request: dict[str, Any]) -> list[Tool]:
    """The tools of `request`; none if it forbids calls."""
    raw = request.get("tools")
    if request.get("tool_choice") == "none" or not isinstance(raw, list):
        return []
    functions = [
        entry["function"] for entry in raw[:MOST] if isinstance(entry, dict) and isinstance(entry.get("function"), dict)
    ]
    return [
        Tool(
            str(function["name"]),
            str(function.get("description") or "")[:LONGEST_DESCRIPTION],
            _schema(function.get("parameters")),
        )
        for function in functions
        if function.get("name")
    ]


def _schema(raw: Any) -> dict[str, Any]:
    return raw if isinstance(raw, dict) else {}


class Index:
    """How much each word says about which tool is meant: the fewer tools have it, the more."""

    def __init__(self, tools: list[Tool]) -> None:
        self.tools = tools
        self._names = {tool.name: _telling(parts(tool.name)) for tool in tools}
        self._titles = {tool.name: _telling(token.text for token in tokens(tool.title)) for tool in tools}
        self._asides = {tool.name: self._told_aside(tool) for tool in tools}
        self.name_words = frozenset[str]().union(*self._names.values())
        self._in_names = Counter(word for words in self._names.values() for word in words)
        self._in_titles = Counter(word for words in self._titles.values() for word in words)
        self._in_asides = Counter(word for words in self._asides.values() for word in words)

    def by_name(self, tool: Tool, said: list[str]) -> float:
        """How strongly the words `said` name `tool`; 1 and above is a match."""
        own = self._names[tool.name]
        heard = own & {canonical(word) for word in said}
        exact = set(parts(tool.name)) & {word.lower() for word in said} - FILLERS
        rarity = sum(2 / self._in_names[word] for word in heard)
        # rounded, because a sum of fractions depends on their order, and a set has another one in every process
        return round(rarity + len(heard) / (2 * len(own)) + len(exact) / 4, 6) if heard else 0

    def by_title(self, tool: Tool, said: list[str]) -> float:
        """How strongly they hint at its description."""
        heard = self._titles[tool.name] & {canonical(word) for word in said}
        aside = self._asides[tool.name] & {canonical(word) for word in said}
        hints = [0.6 / self._in_titles[word] for word in heard] + [0.6 / self._in_asides[word] for word in aside]
        return round(min(1.2, math.fsum(hints)), 6)

    def share(self, tool: Tool, said: list[str]) -> float:
        """How much of its name `said` has, from 0 to 1."""
        own = self._names[tool.name]
        return len(own & {canonical(word) for word in said}) / len(own) if own else 0

    def _told_aside(self, tool: Tool) -> frozenset[str]:
        """The words of its fixed values and, as of tags, of the lines below its title."""
        below = tool.description.strip().partition("\n")[2]
        said = (token.text for text in (below, *_fixed(tool)) for token in tokens(text))
        return _telling(said) - self._titles[tool.name]


def _telling(words: Any) -> frozenset[str]:
    return frozenset(canonical(word) for word in words if word.lower() not in FILLERS and len(word) > 1)
