"""The pictures along a time: questions of each day, and how long answers took."""

from collections.abc import Sequence
from typing import Final

from hitlchat.insights.figures import BIN_NAMES, Answers, Figures, Tally
from hitlchat.insights.plot import WIDE, Line, Plot, Rect, Shape, Words, cells, n, points

LEFT, RIGHT, TOP = 34, 8, 12
DAYS_HEIGHT, BINS_HEIGHT = 238, 176
STEPS: Final = (1, 2, 5)
KINDS: Final = ("approved", "declined", "expired")


def days(figures: Figures) -> Plot:
    """Stacked answers of each day, under the line of what was asked."""
    tallies, total = list(figures.days.values()), figures.total
    step = _step(max(tally.asked for tally in tallies))
    most, bottom = 4 * step, DAYS_HEIGHT - 27
    xs = [LEFT + (WIDE - LEFT - RIGHT) * index / (len(tallies) - 1) for index in range(len(tallies))]

    def y(count: float) -> float:
        return bottom - (bottom - TOP) * count / most

    def stack(tally: Tally, upto: int) -> int:
        return sum(getattr(tally, kind) for kind in KINDS[:upto])

    shapes = []
    for index, kind in enumerate(KINDS):
        upper = [(x, y(stack(tally, index + 1))) for x, tally in zip(xs, tallies, strict=True)]
        lower = [(x, y(stack(tally, index))) for x, tally in zip(xs, tallies, strict=True)]
        shapes.append(Shape(kind, points([*upper, *reversed(lower)])))
    asked = [(x, y(tally.asked)) for x, tally in zip(xs, tallies, strict=True)]
    grid = [count * step for count in range(5)]
    return Plot(
        name="days",
        title="Questions per day",
        told=f"{total.asked} asked in {figures.period.words}: {total.approved} approved, {total.declined} declined, "
        f"{total.expired} expired.",
        width=WIDE,
        height=DAYS_HEIGHT,
        columns=("Day", "Asked", "Approved", "Declined", "Expired"),
        rows=[(f"{day:%-d %b %Y}", *cells(tally)) for day, tally in reversed(figures.days.items()) if tally.asked],
        lines=[Line("gridline", n(LEFT), n(y(count)), n(WIDE - RIGHT), n(y(count))) for count in grid],
        shapes=[*shapes, Shape("asked", points(asked), is_line=True)],
        kinds=("asked", *KINDS),
        words=[Words("", n(LEFT - 8), n(y(count) + 4), f"{count}", "end") for count in grid] + _dates(figures, xs),
    )


def times(answers: Answers) -> Plot:
    """How long answers took, with those apart that count as hurried."""
    bins = answers.bins
    most, bottom = max(1, *(every for every, _ in bins)), BINS_HEIGHT - 26
    width = (WIDE - LEFT - RIGHT) / len(bins)
    rects, words = [], []
    for index, ((every, hurried), name) in enumerate(zip(bins, BIN_NAMES, strict=True)):
        x, tall, fast = LEFT + index * width, _tall(every, most, bottom), _tall(hurried, most, bottom)
        rects.append(Rect("fast", n(x + 3), n(bottom - fast), n(width - 6), n(fast)))
        rects.append(Rect("approved", n(x + 3), n(bottom - tall), n(width - 6), n(tall - fast)))
        words.append(Words("val", n(x + width / 2), n(bottom - tall - 6), f"{every}", "middle"))
        words.append(Words("", n(x + width / 2), n(BINS_HEIGHT - 8), name, "middle"))
    return Plot(
        name="times",
        title="Time to decide",
        told=_told(answers),
        width=WIDE,
        height=BINS_HEIGHT,
        columns=("Time", "Answers", "Faster than it can be read"),
        rows=[(name, f"{every}", f"{fast}") for name, (every, fast) in zip(BIN_NAMES, bins, strict=True)],
        rects=[rect for rect in rects if rect.height != n(0)],
        lines=[Line("axis", n(LEFT), n(bottom + 0.5), n(WIDE - RIGHT), n(bottom + 0.5))],
        words=words,
        kinds=("fast",),
    )


def _told(answers: Answers) -> str:
    if answers.median is None:
        return "Nothing was answered after a recorded display."
    return (
        f"Half of {answers.count} answers came within {max(1, answers.median)} seconds of the first display;"
        f" {answers.hurried} were yeses that came faster than the card can be read."
    )


def _tall(count: int, most: int, bottom: float) -> float:
    return (bottom - TOP - 16) * count / most


def _dates(figures: Figures, xs: Sequence[float]) -> list[Words]:
    """Under the first, the last and some days in between."""
    every = list(figures.days)
    last = len(every) - 1
    marks = sorted({round(last * part / 4) for part in range(5)})
    anchors = {0: "start", last: "end"}
    return [Words("", n(xs[at]), n(DAYS_HEIGHT - 7), f"{every[at]:%-d %b}", anchors.get(at, "middle")) for at in marks]


def _step(most: int) -> int:
    """Of the grid, so that four of them hold `most`."""
    size = 1
    while True:
        for step in STEPS:
            if 4 * step * size >= most:
                return step * size
        size *= 10
