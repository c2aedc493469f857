"""A figure with its floor and its goal, and the table of all of them."""

import os
import platform
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """`floor` is the least that could be hoped for, measured in the same run; `goal` is the product's own."""

    what: str
    value: float | None
    unit: str
    floor: float | None = None
    goal: float | None = None
    better: Literal["less", "more"] = "less"
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.goal is None or self.value is None:
            return ""
        met = self.value <= self.goal if self.better == "less" else self.value >= self.goal
        return "met" if met else "missed"

    @property
    def goal_words(self) -> str:
        return "" if self.goal is None else f"{'≤' if self.better == 'less' else '≥'} {number(self.goal)}"


def number(value: float | None) -> str:
    """Three digits that count, no more."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = f"Python {platform.python_version()}"
    database = os.environ.get("DATABASE_URL", "").partition(":")[0] or "sqlite"
    return f"{database}, {python}, {platform.system()} {platform.machine()}, {cores} cores, {load()}"


def show(title: str, figures: Iterable[Figure]) -> Iterator[Figure]:
    """Print `figures` as one table under `title`, once all are there; passes them on."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("", min_width=58, no_wrap=True)
    for name in ("measured", "unit", "floor", "goal", ""):
        table.add_column(name, justify="left" if name == "unit" else "right")
    table.add_column("note", style="dim")
    found = list(figures)
    for one in found:
        cells = (one.what, number(one.value), one.unit, number(one.floor), one.goal_words, one.verdict, one.note)
        table.add_row(*cells)
    console = Console(width=150, highlight=False)
    console.print(table)
    console.print(f"  ({load()})\n", style="dim")
    yield from found
