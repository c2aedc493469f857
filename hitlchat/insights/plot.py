"""A picture as plain geometry, which a template writes down as SVG, with its numbers as a table."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from hitlchat.base.visible import see
from hitlchat.insights.figures import Tally

WIDE: Final = 760
NARROW: Final = 440
LONGEST_NAME: Final = 40
# What the colours mean, as far as a picture has them.
KEY: Final = {
    "asked": "Asked",
    "approved": "Approved",
    "declined": "Declined",
    "expired": "Expired",
    "fast": "Faster than it can be read",
}
GAP: Final = 1.0


@dataclass(frozen=True)
class Rect:
    kind: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class Line:
    kind: str
    x1: str
    y1: str
    x2: str
    y2: str


@dataclass(frozen=True)
class Shape:
    """`points` as SVG has them; closed and filled unless it is a line."""

    kind: str
    points: str
    is_line: bool = False


@dataclass(frozen=True)
class Words:
    kind: str
    x: str
    y: str
    text: str
    anchor: str = "start"


@dataclass(frozen=True)
class Plot:
    """`told`: what it shows, for whoever does not see it. `more`: rows of the table that are not in the picture.
    `links`: where the calls behind each row are, if at all."""

    name: str
    title: str
    told: str
    width: int
    height: int
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    rects: Sequence[Rect] = ()
    lines: Sequence[Line] = ()
    shapes: Sequence[Shape] = ()
    words: Sequence[Words] = ()
    more: int = 0
    kinds: Sequence[str] = ()
    links: Sequence[str] = ()

    @property
    def key(self) -> list[tuple[str, str]]:
        return [(kind, KEY[kind]) for kind in self.kinds]

    @property
    def linked_rows(self) -> Iterator[tuple[Sequence[str], str]]:
        return zip_longest(self.rows, self.links, fillvalue="")

    @property
    def is_wide(self) -> bool:
        return self.width == WIDE


def cells(tally: Tally) -> tuple[str, ...]:
    return tuple(f"{count}" for count in (tally.asked, tally.approved, tally.declined, tally.expired))


def share(part: int, whole: int) -> str:
    """In words; nothing of nothing."""
    return f"{round(100 * part / whole)} %" if whole else ""


def name_of(text: str) -> str:
    """With what cannot be seen as escapes: a picture shows it as any page does."""
    shown = see(text).plain
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"


def points(pairs: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{n(x)},{n(y)}" for x, y in pairs)


def n(value: float) -> str:
    return f"{value:.1f}"
