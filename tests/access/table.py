"""The tables of docs/access.md: who may ask for what, and what everybody else gets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.architecture.source import ROOT

PAGE: Final = ROOT / "docs" / "access.md"
ANY: Final = "any"
YES: Final = "yes"


@dataclass(frozen=True)
class Row:
    """`outcomes`: what each visitor gets, by the visitor's name, in the order of the page."""

    section: str
    heading: str
    route: str
    methods: tuple[str, ...]
    outcomes: dict[str, str]

    @property
    def let_in(self) -> list[str]:
        return [visitor for visitor, outcome in self.outcomes.items() if outcome == YES]


def rows() -> list[Row]:
    return [*_read(PAGE.read_text(encoding="utf-8"))]


def _read(text: str) -> Iterator[Row]:
    section = heading = ""
    head: list[str] = []
    words: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            section, heading, words = line[3:], line[3:], {}
        elif line.startswith("### "):
            heading = line[4:]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = _cells(line)
        elif set(line) <= set("|- "):
            continue
        elif head[0] == "Who":
            word, *outcomes = _cells(line)
            words[word] = dict(zip(head[1:], outcomes, strict=True))
        else:
            route, methods, who = _cells(line)
            yield Row(section, heading, route, tuple(methods.split(", ")), words[re.sub(r" \(.*\)$", "", who)])


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("`") for cell in line.strip("|").split("|")]
