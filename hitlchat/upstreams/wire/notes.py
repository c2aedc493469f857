"""The last lines that a server wrote to its standard error, and what was wrong with its output."""

from datetime import UTC, datetime

MOST_NOTES = 50


class Notes:
    """The newest last. What comes again is kept once, at its last time, and counted: a program that fails at each
    start would fill them with copies of one reason."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[datetime, int]] = {}

    def add(self, text: str) -> None:
        _, times = self._kept.pop(text, (None, 0))
        self._kept[text] = (datetime.now(UTC), times + 1)
        if len(self._kept) > MOST_NOTES:
            del self._kept[next(iter(self._kept))]

    def lines(self) -> tuple[str, ...]:
        """Each with its time, as ISO 8601 has it, and a space before."""
        return tuple(f"{at:%Y-%m-%dT%H:%M:%SZ} {text}{_often(times)}" for text, (at, times) in self._kept.items())


def _often(times: int) -> str:
    return f" ({times:,} times)" if times > 1 else ""
