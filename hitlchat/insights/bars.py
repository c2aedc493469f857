"""The pictures with a bar for each tool or person."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from hitlchat.insights.figures import OfPerson, OfTool
from hitlchat.insights.plot import NARROW, Plot, Rect, Words, cells, n, name_of, share

STEP: Final = 37
MOST: Final = 10
GAP: Final = 1.0
ANSWERS: Final = ("approved", "declined")
OUTCOMES: Final = (*ANSWERS, "expired")
TOOL: Final = ("Tool", "Asked", "Approved", "Declined", "Expired", "Declined of answered", "Changed of approved")
PERSON: Final = (
    "Person", "Approved", "Declined", "Declined of answered", "Changed of approved", "Hurried", "Minutes",
)  # fmt: skip

# A name, its number, and what the number is made of, by kind.
Bar = tuple[str, int, dict[str, int]]
# Where the calls of one with this name are.
To = Callable[[str], str]


def by_tool(tools: Sequence[OfTool], to: To) -> Plot:
    asked = [tool for tool in tools if tool.tally.asked]
    bars = [(tool.name, tool.tally.asked, {kind: getattr(tool.tally, kind) for kind in OUTCOMES}) for tool in asked]
    told = f"{len(asked)} tools asked, {name_of(asked[0].name)} most often." if asked else "No tool asked."
    empty = Plot("tools", "Asked, by tool", told, NARROW, 0, TOOL, [_of_tool(tool) for tool in asked], kinds=OUTCOMES)
    return _drawn(empty, bars, to)


def by_person(people: Sequence[OfPerson], to: To) -> Plot:
    bars = [(each.name, each.answered, {kind: getattr(each, kind) for kind in ANSWERS}) for each in people]
    told = f"{len(people)} people answered, {name_of(people[0].name)} most often." if people else "Nobody answered."
    rows = [_of_person(each) for each in people]
    return _drawn(Plot("people", "Answers, by person", told, NARROW, 0, PERSON, rows, kinds=ANSWERS), bars, to)


def unasked(tools: Sequence[OfTool], to: To) -> Plot:
    found = sorted((tool for tool in tools if tool.unasked), key=lambda tool: (-tool.unasked, tool.name))
    bars = [(tool.name, tool.unasked, {"approved": tool.unasked}) for tool in found]
    rows = [(name_of(tool.name), f"L{tool.risk}", f"{tool.unasked}") for tool in found]
    told = f"{len(found)} tools ran without asking." if found else "No tool ran without asking."
    return _drawn(Plot("unasked", "Ran without asking", told, NARROW, 0, ("Tool", "Risk", "Calls"), rows), bars, to)


def _of_tool(tool: OfTool) -> tuple[str, ...]:
    tally = tool.tally
    rates = (share(tally.declined, tally.answered), share(tool.edited, tally.approved))
    return (name_of(tool.name), *cells(tally), *rates)


def _of_person(each: OfPerson) -> tuple[str, ...]:
    rates = (share(each.declined, each.answered), share(each.edited, each.approved))
    counts = (f"{each.approved}", f"{each.declined}")
    return (name_of(each.name), *counts, *rates, f"{each.hurried}", f"{each.seconds / 60:.0f}")


def _drawn(empty: Plot, bars: Sequence[Bar], to: To) -> Plot:
    most = max((every for _, every, _ in bars), default=1)
    rects, words = [], []
    for index, (label, every, counts) in enumerate(bars[:MOST]):
        top, x = index * STEP, 0.0
        words.append(Words("lab", n(0), n(top + 14), name_of(label)))
        words.append(Words("val", n(NARROW), n(top + 14), f"{every}", "end"))
        for kind, count in counts.items():
            if count:
                width = NARROW * count / most
                rects.append(Rect(kind, n(x), n(top + 20), n(max(GAP, width - GAP)), n(9)))
                x += width
    more = max(0, len(bars) - MOST)
    return replace(
        empty,
        height=len(bars[:MOST]) * STEP,
        rects=rects,
        words=words,
        more=more,
        links=[to(name) for name, _, _ in bars],
    )
