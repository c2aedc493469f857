"""The pictures: plain geometry that a template writes down as SVG, each with its numbers as a table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.base.visible import see
from hitlchat.insights.figures import BIN_NAMES, Answers, Figures, OfPerson, OfTool, Tally

WIDE: Final = 760
NARROW: Final = 440
LEFT, RIGHT, TOP = 34, 8, 12
DAYS_HEIGHT, BINS_HEIGHT = 238, 176
# Of bars: how far apart, how many, and what is between their parts.
STEP: Final = 37
MOST: Final = 10
GAP: Final = 1.0
LONGEST_NAME: Final = 40
# What the colours mean, as far as a picture has them.
KEY: Final = {
    "asked": gettext_noop("Asked"),
    "approved": gettext_noop("Approved"),
    "declined": gettext_noop("Declined"),
    "expired": gettext_noop("Expired"),
    "fast": gettext_noop("Faster than it can be read"),
}
ANSWERS: Final = ("approved", "declined")
OUTCOMES: Final = (*ANSWERS, "expired")
DECLINED_RATE: Final = gettext_noop("Declined of answered")
CHANGED_RATE: Final = gettext_noop("Changed of approved")
TOOL: Final = (gettext_noop("Tool"), "Asked", "Approved", "Declined", "Expired", DECLINED_RATE, CHANGED_RATE)
PERSON: Final = (
    gettext_noop("Person"), "Approved", "Declined", DECLINED_RATE, CHANGED_RATE, gettext_noop("Hurried"),
    gettext_noop("Minutes"),
)  # fmt: skip
UNASKED: Final = (gettext_noop("Tool"), gettext_noop("Risk"), gettext_noop("Calls"))

# A name, its number, and what the number is made of, by kind.
Bar = tuple[str, int, dict[str, int]]
# Where the calls of one with this name are.
To = Callable[[str], str]


@dataclass(frozen=True)
class Mark:
    """An element of SVG, of our own tags and attributes."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass(frozen=True)
class Plot:
    """`told`: what it shows, for whoever does not see it. `more`: rows of the table that are not in the picture.
    `links`: where the calls behind each row are, if at all.
    """

    name: str
    title: str
    told: str
    width: int
    height: int
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    marks: Sequence[Mark] = ()
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


def days(figures: Figures) -> Plot:
    """Stacked answers of each day, under the line of what was asked."""
    tallies, total = list(figures.days.values()), figures.total
    step = _step(max(tally.asked for tally in tallies))
    most, bottom = 4 * step, DAYS_HEIGHT - 27
    xs = [LEFT + (WIDE - LEFT - RIGHT) * index / (len(tallies) - 1) for index in range(len(tallies))]

    def y(count: float) -> float:
        return bottom - (bottom - TOP) * count / most

    def stack(tally: Tally, upto: int) -> int:
        return sum(getattr(tally, kind) for kind in OUTCOMES[:upto])

    grid = [count * step for count in range(5)]
    marks = [_line("gridline", LEFT, WIDE - RIGHT, y(count)) for count in grid]
    for index, kind in enumerate(OUTCOMES):
        upper = [(x, y(stack(tally, index + 1))) for x, tally in zip(xs, tallies, strict=True)]
        lower = [(x, y(stack(tally, index))) for x, tally in zip(xs, tallies, strict=True)]
        marks.append(_shape("polygon", kind, [*upper, *reversed(lower)]))
    marks.append(_shape("polyline", "asked", [(x, y(tally.asked)) for x, tally in zip(xs, tallies, strict=True)]))
    marks += [_words("", LEFT - 8, y(count) + 4, f"{count}", "end") for count in grid]
    return Plot(
        name="days",
        title=gettext_noop("Questions per day"),
        told=_("{asked} asked in {period}: {approved} approved, {declined} declined, {expired} expired.").format(
            **vars(total), period=_(figures.period.words)
        ),
        width=WIDE,
        height=DAYS_HEIGHT,
        columns=(gettext_noop("Day"), "Asked", "Approved", "Declined", "Expired"),
        rows=[
            (date_format(day, "j M Y"), *_cells(tally)) for day, tally in reversed(figures.days.items()) if tally.asked
        ],
        marks=[*marks, *_dates(figures, xs)],
        kinds=("asked", *OUTCOMES),
    )


def times(answers: Answers) -> Plot:
    """Return how long answers took, with those apart that count as hurried."""
    bins = answers.bins
    most, bottom = max(1, *(every for every, _ in bins)), BINS_HEIGHT - 26
    width = (WIDE - LEFT - RIGHT) / len(bins)
    marks = [_line("axis", LEFT, WIDE - RIGHT, bottom + 0.5)]
    for index, ((every, hurried), name) in enumerate(zip(bins, BIN_NAMES, strict=True)):
        x, tall, fast = LEFT + index * width, _tall(every, most, bottom), _tall(hurried, most, bottom)
        if hurried:
            marks.append(_rect("fast", x + 3, bottom - fast, width - 6, fast))
        if every > hurried:
            marks.append(_rect("approved", x + 3, bottom - tall, width - 6, tall - fast))
        marks.append(_words("val", x + width / 2, bottom - tall - 6, f"{every}", "middle"))
        marks.append(_words("", x + width / 2, BINS_HEIGHT - 8, _(name), "middle"))
    return Plot(
        name="times",
        title=gettext_noop("Time to decide"),
        told=_told(answers),
        width=WIDE,
        height=BINS_HEIGHT,
        columns=(gettext_noop("Time"), gettext_noop("Answers"), "Faster than it can be read"),
        rows=[(_(name), f"{every}", f"{fast}") for name, (every, fast) in zip(BIN_NAMES, bins, strict=True)],
        marks=marks,
        kinds=("fast",),
    )


def by_tool(tools: Sequence[OfTool], to: To) -> Plot:
    asked = [tool for tool in tools if tool.tally.asked]
    bars = [(tool.name, tool.tally.asked, {kind: getattr(tool.tally, kind) for kind in OUTCOMES}) for tool in asked]
    told = _("No tool asked.")
    if asked:
        told = _("{count} tools asked, {tool} most often.").format(count=len(asked), tool=_name(asked[0].name))
    title = gettext_noop("Asked, by tool")
    empty = Plot("tools", title, told, NARROW, 0, TOOL, [_of_tool(tool) for tool in asked], kinds=OUTCOMES)
    return _drawn(empty, bars, to)


def by_person(people: Sequence[OfPerson], to: To) -> Plot:
    bars = [(each.name, each.answered, {kind: getattr(each, kind) for kind in ANSWERS}) for each in people]
    told = _("Nobody answered.")
    if people:
        told = _("{count} people answered, {person} most often.").format(
            count=len(people), person=_name(people[0].name)
        )
    rows = [_of_person(each) for each in people]
    return _drawn(
        Plot("people", gettext_noop("Answers, by person"), told, NARROW, 0, PERSON, rows, kinds=ANSWERS), bars, to
    )


def unasked(tools: Sequence[OfTool], to: To) -> Plot:
    found = sorted((tool for tool in tools if tool.unasked), key=lambda tool: (-tool.unasked, tool.name))
    bars = [(tool.name, tool.unasked, {"approved": tool.unasked}) for tool in found]
    rows = [(_name(tool.name), f"L{tool.risk}", f"{tool.unasked}") for tool in found]
    told = _("No tool ran without asking.")
    if found:
        told = _("{count} tools ran without asking.").format(count=len(found))
    return _drawn(Plot("unasked", gettext_noop("Ran without asking"), told, NARROW, 0, UNASKED, rows), bars, to)


def _told(answers: Answers) -> str:
    if answers.median is None:
        return _("Nothing was answered after a recorded display.")
    return _(
        "Half of {count} answers came within {seconds} seconds of the first display; "
        "{hurried} were yeses that came faster than the card can be read."
    ).format(count=answers.count, seconds=max(1, answers.median), hurried=answers.hurried)


def _tall(count: int, most: int, bottom: float) -> float:
    return (bottom - TOP - 16) * count / most


def _dates(figures: Figures, xs: Sequence[float]) -> list[Mark]:
    """Return dates below the first, the last and some days in between."""
    every = list(figures.days)
    last = len(every) - 1
    marks = sorted({round(last * part / 4) for part in range(5)})
    anchors = {0: "start", last: "end"}
    return [
        _words("", xs[at], DAYS_HEIGHT - 7, date_format(every[at], "j M"), anchors.get(at, "middle")) for at in marks
    ]


def _step(most: int) -> int:
    """Return the step of the grid, so that four of them hold `most`."""
    size = 1
    while True:
        for step in (1, 2, 5):
            if 4 * step * size >= most:
                return step * size
        size *= 10


def _of_tool(tool: OfTool) -> tuple[str, ...]:
    tally = tool.tally
    rates = (_share(tally.declined, tally.answered), _share(tool.edited, tally.approved))
    return (_name(tool.name), *_cells(tally), *rates)


def _of_person(each: OfPerson) -> tuple[str, ...]:
    rates = (_share(each.declined, each.answered), _share(each.edited, each.approved))
    counts = (f"{each.approved}", f"{each.declined}")
    return (_name(each.name), *counts, *rates, f"{each.hurried}", f"{each.seconds / 60:.0f}")


def _drawn(empty: Plot, bars: Sequence[Bar], to: To) -> Plot:
    most = max((every for _, every, _ in bars), default=1)
    marks = []
    for index, (label, every, counts) in enumerate(bars[:MOST]):
        top, x = index * STEP, 0.0
        marks.append(_words("lab", 0, top + 14, _name(label)))
        marks.append(_words("val", NARROW, top + 14, f"{every}", "end"))
        for kind, count in counts.items():
            if count:
                width = NARROW * count / most
                marks.append(_rect(kind, x, top + 20, max(GAP, width - GAP), 9))
                x += width
    height, links = len(bars[:MOST]) * STEP, [to(name) for name, _, _ in bars]
    return replace(empty, height=height, marks=marks, more=max(0, len(bars) - MOST), links=links)


def _cells(tally: Tally) -> tuple[str, ...]:
    return tuple(f"{count}" for count in (tally.asked, tally.approved, tally.declined, tally.expired))


def _share(part: int, whole: int) -> str:
    """Return a share in words; nothing of nothing."""
    return f"{round(100 * part / whole)} %" if whole else ""


def _name(text: str) -> str:
    """Return a name with escapes for what cannot be seen: a picture shows it as any page does."""
    shown = see(text).plain
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"


def _rect(kind: str, x: float, y: float, width: float, height: float) -> Mark:
    return Mark("rect", {"class": kind, "x": _n(x), "y": _n(y), "width": _n(width), "height": _n(height)})


def _line(kind: str, x1: float, x2: float, y: float) -> Mark:
    return Mark("line", {"class": kind, "x1": _n(x1), "x2": _n(x2), "y1": _n(y), "y2": _n(y)})


def _shape(tag: str, kind: str, pairs: Iterable[tuple[float, float]]) -> Mark:
    return Mark(tag, {"class": kind, "points": " ".join(f"{_n(x)},{_n(y)}" for x, y in pairs)})


def _words(kind: str, x: float, y: float, text: str, anchor: str = "start") -> Mark:
    return Mark("text", {"class": kind, "x": _n(x), "y": _n(y), "text-anchor": anchor}, text)


def _n(value: float) -> str:
    return f"{value:.1f}"
