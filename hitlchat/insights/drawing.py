"""The pictures: plain geometry that a template writes down as SVG, each with its numbers as a table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from typing import Final, NamedTuple

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from hitlchat.base.visible import see
from hitlchat.insights.figures import BIN_NAMES, BINS, Answers, Figures, OfPerson, OfTool, Tally

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
    "others": gettext_noop("Waiting, withdrawn or answered in the tool's place"),
    "fast": gettext_noop("Faster than readable"),
}
OUTCOMES: Final = ("approved", "declined", "expired")
# Of all that was asked.
PARTS: Final = (*OUTCOMES, "others")
RATES: Final = (gettext_noop("Declined (of answered)"), gettext_noop("Changed (of approved)"))

# The URL of the calls of one with this name.
To = Callable[[str], str]


@dataclass(frozen=True)
class Mark:
    """An element of SVG, of our own tags and attributes."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


class Bar(NamedTuple):
    """A name, its number, the kinds that the number is made of, and the cells of its row after the name."""

    name: str
    number: int
    parts: dict[str, int]
    cells: Sequence[str]


@dataclass(frozen=True)
class Plot:
    """`summary`: the picture in words, for whoever does not see it. `more`: rows of the table that are not in the
    picture. `links`: the URLs of the calls behind each row, if any.
    """

    name: str
    title: str
    summary: str
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
        """Return whether it has more labels than a narrow page can show at once."""
        return self.width == WIDE and self.name != "times"


def days(figures: Figures) -> Plot:
    """Stacked answers of each day, under the line of what was asked."""
    tallies, total = list(figures.days.values()), figures.total
    grid = _grid(max(tally.asked for tally in tallies))
    bottom, last = DAYS_HEIGHT - 27, len(tallies) - 1
    xs = [LEFT + (WIDE - LEFT - RIGHT) * index / last for index in range(len(tallies))]

    def y(number: float) -> float:
        return bottom - (bottom - TOP) * number / grid[-1]

    marks = [_mark("line", "gridline", x1=LEFT, x2=WIDE - RIGHT, y1=y(number), y2=y(number)) for number in grid]
    lower = [0] * len(tallies)
    for kind in OUTCOMES:
        upper = [below + getattr(tally, kind) for below, tally in zip(lower, tallies, strict=True)]
        outline = [*zip(xs, map(y, upper), strict=True), *reversed([*zip(xs, map(y, lower), strict=True)])]
        marks.append(_mark("polygon", kind, points=_points(outline)))
        lower = upper
    line = [(x, y(tally.asked)) for x, tally in zip(xs, tallies, strict=True)]
    marks.append(_mark("polyline", "asked", points=_points(line)))
    marks += [_label("", LEFT - 8, y(number) + 4, f"{number}", "end") for number in grid]
    every, anchors = list(figures.days), {0: "start", last: "end"}
    for at in sorted({round(last * part / 4) for part in range(5)}):
        marks.append(_label("", xs[at], DAYS_HEIGHT - 7, date_format(every[at], "j M"), anchors.get(at, "middle")))
    return Plot(
        name="days",
        title=gettext_noop("Questions per day"),
        summary=_("{asked} asked in {period}: {approved} approved, {declined} declined, {expired} expired.").format(
            **vars(total), period=_(figures.period.words)
        ),
        width=WIDE,
        height=DAYS_HEIGHT,
        columns=(gettext_noop("Day"), "Asked", "Approved", "Declined", "Expired"),
        rows=[
            (date_format(day, "j M Y"), *_cells(tally)) for day, tally in reversed(figures.days.items()) if tally.asked
        ],
        marks=marks,
        kinds=("asked", *OUTCOMES),
    )


def times(answers: Answers) -> Plot:
    """Return how long answers took, with those apart that count as hurried."""
    summary = _("No answers with a known time to decide.")
    if answers.median is not None:
        summary = _(
            "Half of {count} answers came within {seconds} seconds of the first display; {hurried} "
            "approvals were faster than the card can be read."
        ).format(count=answers.count, seconds=max(1, answers.median), hurried=answers.hurried)
    bins = answers.bins
    most, bottom = max(every for every, _ in bins), BINS_HEIGHT - 26
    width = (WIDE - LEFT - RIGHT) / len(bins)
    marks = [_mark("line", "axis", x1=LEFT, x2=WIDE - RIGHT, y1=bottom + 0.5, y2=bottom + 0.5)]
    for index, (every, hurried) in enumerate(bins):
        x = LEFT + index * width
        tall, fast = ((bottom - TOP - 16) * number / max(1, most) for number in (every, hurried))
        if hurried:
            marks.append(_mark("rect", "fast", x=x + 3, y=bottom - fast, width=width - 6, height=fast))
        if every > hurried:
            marks.append(_mark("rect", "approved", x=x + 3, y=bottom - tall, width=width - 6, height=tall - fast))
        marks.append(_label("val of-times", x + width / 2, bottom - tall - 6, f"{every}", "middle"))
        if index:
            marks.append(_label("of-times", x, BINS_HEIGHT - 5, _bound(BINS[index]), "middle"))
    return Plot(
        name="times",
        title=gettext_noop("Time to decide"),
        summary=summary,
        width=WIDE,
        height=BINS_HEIGHT,
        columns=(gettext_noop("Time"), gettext_noop("Answers"), "Faster than readable"),
        rows=[(_(name), f"{every}", f"{fast}") for name, (every, fast) in zip(BIN_NAMES, bins, strict=True) if most],
        marks=marks,
        kinds=("fast",),
    )


def _bound(seconds: int) -> str:
    return _("{count} s").format(count=seconds) if seconds < 60 else _("{count} min").format(count=seconds // 60)


def by_tool(tools: Sequence[OfTool], to: To) -> Plot:
    bars = []
    for tool in tools:
        tally = tool.tally
        if tally.asked:
            rates = (_share(tally.declined, tally.answered), _share(tool.edited, tally.approved))
            parts = {kind: getattr(tally, kind) for kind in PARTS}
            bars.append(Bar(tool.name, tally.asked, parts, (*_cells(tally), *rates)))
    words = _("{count} tools asked, {tool} most often.") if bars else _("No tool asked.")
    columns = (gettext_noop("Tool"), "Asked", "Approved", "Declined", "Expired", *RATES)
    return _bars("tools", gettext_noop("Asked, by tool"), words, columns, bars, to=to, kinds=PARTS)


def by_person(people: Sequence[OfPerson], to: To) -> Plot:
    bars = []
    for each in people:
        rates = (_share(each.declined, each.answered), _share(each.edited, each.approved))
        cells = (f"{each.approved}", f"{each.declined}", *rates, f"{each.hurried}", f"{each.seconds / 60:.0f}")
        bars.append(Bar(each.name, each.answered, {"approved": each.approved, "declined": each.declined}, cells))
    words = _("{count} people answered, {person} most often.") if bars else _("Nobody answered.")
    columns = (gettext_noop("Person"), "Approved", "Declined", *RATES, gettext_noop("Hurried"), gettext_noop("Minutes"))
    title = gettext_noop("Answers, by person")
    return _bars("people", title, words, columns, bars, to=to, kinds=("approved", "declined"))


def unasked(tools: Sequence[OfTool], to: To) -> Plot:
    found = sorted((tool for tool in tools if tool.unasked), key=lambda tool: (-tool.unasked, tool.name))
    bars = [
        Bar(tool.name, tool.unasked, {"approved": tool.unasked}, (f"L{tool.risk}", f"{tool.unasked}")) for tool in found
    ]
    words = _("{count} tools ran without asking.") if bars else _("No tool ran without asking.")
    columns = (gettext_noop("Tool"), gettext_noop("Risk"), gettext_noop("Calls"))
    return _bars("unasked", gettext_noop("Ran without asking"), words, columns, bars, to=to)


def _bars(
    name: str, title: str, words: str, columns: Sequence[str], bars: list[Bar], *, to: To, kinds: Sequence[str] = ()
) -> Plot:
    """Draw the first MOST bars. `words`: the summary, with a place for how many there are, and for the first name."""
    most = max((bar.number for bar in bars), default=1)
    drawn = bars[:MOST]
    marks = []
    for index, bar in enumerate(drawn):
        top, x = index * STEP, 0.0
        marks.append(_label("lab", 0, top + 14, _name(bar.name)))
        marks.append(_label("val", NARROW, top + 14, f"{bar.number}", "end"))
        for kind, number in bar.parts.items():
            if number:
                width = NARROW * number / most
                marks.append(_mark("rect", kind, x=x, y=top + 20, width=max(GAP, width - GAP), height=9))
                x += width
    first = _name(bars[0].name) if bars else ""
    return Plot(
        name=name,
        title=title,
        summary=words.format(count=len(bars), tool=first, person=first),
        width=NARROW,
        height=len(drawn) * STEP,
        columns=columns,
        rows=[(_name(bar.name), *bar.cells) for bar in bars],
        marks=marks,
        more=len(bars) - len(drawn),
        kinds=kinds,
        links=[to(bar.name) for bar in bars],
    )


def _grid(most: int) -> range:
    """Return the lines of a grid up to `most` or just above it: at most six, apart by 1, 2, 5, 10, 20, …"""
    steps = (int(f"{first}{'0' * zeros}") for zeros in count() for first in (1, 2, 5))
    step = next(step for step in steps if 5 * step >= most)
    return range(0, max(1, most) + step, step)


def _cells(tally: Tally) -> tuple[str, ...]:
    return tuple(f"{number}" for number in (tally.asked, tally.approved, tally.declined, tally.expired))


def _share(part: int, whole: int) -> str:
    """Return a share in words; nothing of nothing."""
    return f"{round(100 * part / whole)} %" if whole else ""


def _name(text: str) -> str:
    """Return a name with escapes for what cannot be seen: a picture shows it as any page does."""
    shown = see(text).plain
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"


def _mark(tag: str, kind: str, **attributes: float | str) -> Mark:
    numbers = {name: value if isinstance(value, str) else f"{value:.1f}" for name, value in attributes.items()}
    return Mark(tag, {"class": kind, **numbers})


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


def _label(kind: str, x: float, y: float, text: str, anchor: str = "start") -> Mark:
    return Mark("text", {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}, text)
