"""What is wrong with a file of tools, each thing with its place."""

from collections.abc import Iterable
from dataclasses import dataclass

MOST_PROBLEMS = 100
LONGEST = 300


@dataclass(frozen=True)
class Problem:
    """`place` is like `tools[3].code`; empty where it is the file as a whole."""

    place: str
    said: str

    def __str__(self) -> str:
        return f"{self.place}: {self.said}" if self.place else self.said


class BadFile(ValueError):
    """The file cannot be imported, for these reasons; nothing was written."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        found = [Problem(cut(each.place), cut(each.said)) for each in problems]
        self.problems = found[:MOST_PROBLEMS]
        self.more = len(found) - len(self.problems)
        more = [f"And {self.more:,} more problems."] if self.more else []
        super().__init__("\n".join([*map(str, self.problems), *more]))


def cut(text: str) -> str:
    """What a stranger wrote may be of any length."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def dotted(path: Iterable[str | int]) -> str:
    """`tools[3].variables[0].name`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
