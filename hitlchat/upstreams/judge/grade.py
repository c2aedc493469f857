"""Points, floors and levels: what both halves of the rubric are made of."""

from dataclasses import dataclass

LOWEST, HIGHEST = 1, 5


@dataclass(frozen=True)
class Signal:
    """One thing that was noticed: what it adds to the score, and the reason for a person."""

    points: int
    reason: str


@dataclass(frozen=True)
class Floor:
    """A rule that sets the level by itself, whatever the points say. `id` is its name in records."""

    id: str
    level: int
    reason: str


@dataclass(frozen=True)
class Assessment:
    """How risky a server or a tool is: `level` is 1 to 5; `floor` the rule that set it, if one did."""

    signals: tuple[Signal, ...]
    floor: Floor | None = None
    least: int = LOWEST

    @property
    def score(self) -> int:
        return sum(signal.points for signal in self.signals)

    @property
    def level(self) -> int:
        return max(self.least, bucket(self.score), self.floor.level if self.floor else LOWEST)

    @property
    def reasons(self) -> tuple[str, ...]:
        """In sentences, the heaviest first."""
        heaviest = sorted(self.signals, key=lambda signal: -signal.points)
        told = [*([self.floor.reason] if self.floor else []), *(signal.reason for signal in heaviest)]
        # A rule and a point may be made of the same.
        return tuple(dict.fromkeys(told))


def bucket(score: int) -> int:
    """0 points are L1, each one more is a level, from 4 points on L5."""
    return max(LOWEST, min(HIGHEST, LOWEST + score))


def worst(*floors: Floor | None) -> Floor | None:
    """The highest of those that apply; of equal ones the first."""
    return max((floor for floor in floors if floor), key=lambda floor: floor.level, default=None)
