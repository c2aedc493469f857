"""Overview: several calls of one tool in one table, the odd one first: what differs among them, and what it adds up to.

Made from their disclosures alone. What a cell cuts off, and what is in no column, is on each call's own list below.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low
from typing import Any, Final
from urllib.parse import urlsplit

from hitlchat.base import canonical
from hitlchat.base.visible import Seen, see
from hitlchat.gate import meant
from hitlchat.gate.card import in_order
from hitlchat.gate.contents import spelled

MOST_COLUMNS: Final = 6
LONGEST: Final = 60  # characters of a value in a cell
# Fewer have no usual value that another one could differ from.
FEWEST: Final = 3
# A number so many times the usual one is odd.
FAR: Final = 3
# Sums of larger ones would be read wrong.
LARGEST: Final = 10**15

_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,12})?\Z")

Shown = dict[str, Any]  # a disclosure


@dataclass(frozen=True)
class Cell:
    """A value; None if the call gives none. `differs`: from that of most of the others."""

    text: Seen | None
    differs: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Line:
    """One call, by its place among those given. `differs`: in a value, be it in no column, from most of the others."""

    place: int
    cells: tuple[Cell, ...]
    differs: bool


@dataclass(frozen=True)
class Overview:
    """A table. `sums`: below each column, or nothing; `same`: names and values that all calls share; `more`: how many
    other arguments differ.
    """

    columns: tuple[Seen, ...]
    lines: tuple[Line, ...]
    sums: tuple[str, ...]
    same: tuple[tuple[Seen, Cell], ...]
    more: int

    @property
    def has_sums(self) -> bool:
        return any(self.sums)


def overview(calls: Sequence[Shown]) -> Overview:
    """Return the table of these calls, of which there are two at least."""
    names = list(dict.fromkeys(name for shown in calls for part in in_order(shown) for name in part))
    differing = {name for name in names if len({_key(shown, name) for shown in calls}) > 1}
    sums = {name: text for name in names if (text := _sum(calls, name))}
    columns = [name for name in names if name in differing or name in sums]
    columns.sort(key=lambda name: min(meant.weight(name, shown["arguments"].get(name)) for shown in calls))
    odd = {name: _odd(calls, name) for name in columns}
    oddities = Counter(place for places in odd.values() for place in places)
    chosen = columns[:MOST_COLUMNS]
    lines = [
        Line(place, tuple(_cell(shown, name, differs=place in odd[name]) for name in chosen), place in oddities)
        for place, shown in enumerate(calls)
    ]
    same = [name for name in names if name not in differing and name not in sums]
    return Overview(
        columns=tuple(map(see, chosen)),
        lines=tuple(sorted(lines, key=lambda line: oddities[line.place], reverse=True)),
        sums=tuple(sums.get(name, "") for name in chosen),
        same=tuple((see(name), _cell(calls[0], name)) for name in same),
        more=len(columns) - len(chosen),
    )


def _key(shown: Shown, name: str) -> str:
    """Return what tells a value from another one; that it is not given is a value, too."""
    return canonical.dumps(shown["arguments"][name]) if name in shown["arguments"] else ""


def _cell(shown: Shown, name: str, *, differs: bool = False) -> Cell:
    if name not in shown["arguments"]:
        return Cell(None, differs)
    text = spelled(shown["arguments"][name], indent=None)
    return Cell(see(text[:LONGEST]), differs, cut=len(text) > LONGEST)


def _odd(calls: Sequence[Shown], name: str) -> set[int]:
    """Return the places of the calls whose value differs from what is usual among these: from what most of them give,
    else, of addresses, from the host of most, or, of numbers, by far.
    """
    if len(calls) < FEWEST:
        return set()
    half = len(calls) / 2
    usual, many = Counter(keys := [_key(shown, name) for shown in calls]).most_common(1)[0]
    if many > half:
        return {place for place, key in enumerate(keys) if key != usual}
    usual, many = Counter(hosts := [_host(shown["arguments"].get(name)) for shown in calls]).most_common(1)[0]
    if usual and many > half:
        return {place for place, host in enumerate(hosts) if host != usual}
    numbers = _numbers(calls, name)
    usual_number = median_low(map(abs, numbers)) if numbers else 0
    return {
        place
        for place, number in enumerate(numbers)
        if abs(number) > FAR * usual_number > 0 or number < 0 < usual_number
    }


def _host(value: Any) -> str:
    """Return the host of a URL or of an e-mail address, and nothing of other values."""
    if not isinstance(value, str) or len(value) > meant.READ:
        return ""
    try:
        host = urlsplit(value).hostname
    except ValueError:
        host = None
    return host or (value.rpartition("@")[2].lower() if "@" in value else "")


def _sum(calls: Sequence[Shown], name: str) -> str:
    """Return what an amount adds up to, by currency if the schema tells it; nothing of what is no amount."""
    numbers = _numbers(calls, name) if _is_amount(calls[0], name) else []
    if not all(abs(number) < LARGEST for number in numbers):
        return ""
    sums: dict[str, Decimal] = {}
    for shown, number in zip(calls, numbers, strict=False):
        currency = shown.get("currencies", {}).get(name, "")
        sums[currency] = sums.get(currency, Decimal(0)) + number
    return " + ".join(f"{meant.grouped(total)} {currency}".rstrip() for currency, total in sums.items())


def _numbers(calls: Sequence[Shown], name: str) -> list[Decimal]:
    """Return the number that each call gives, as a text only where it is an amount; nothing if one gives none."""
    found = []
    for shown in calls:
        value = shown["arguments"].get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not (isinstance(value, str) and _DECIMAL.match(value) and _is_amount(shown, name)):
            return []
        found.append(Decimal(str(value)))
    return found


def _is_amount(shown: Shown, name: str) -> bool:
    currency = shown.get("currencies", {}).get(name, "")
    return bool(currency) or meant.weight(name, shown["arguments"].get(name)) == meant.AMOUNT
