"""Difference of two records of a tool, place by place, with nothing hidden: made for reading side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from hitlchat.base import canonical
from hitlchat.base.visible import Seen, see
from hitlchat.upstreams.risk import limits

FIELDS = {
    "name": "Name",
    "title": "Title",
    "description": "Description",
    "inputSchema": "Input schema",
    "outputSchema": "Output schema",
    "annotations": "Hints",
    "connection": "Connection",
}


class _Absent:
    """Marks what is not even null."""


_ABSENT: Final = _Absent()


@dataclass(frozen=True)
class Difference:
    """One place, as a JSON pointer into the record, with what stood and what stands there; None where nothing does."""

    where: str
    before: Seen | None
    after: Seen | None

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def field(self) -> str:
        """The part of the tool, in words."""
        first = self.where.split("/")[1]
        return FIELDS.get(first, first)


def difference(before: dict[str, Any], after: dict[str, Any]) -> tuple[Difference, ...]:
    """Return where two records differ, in the order of their fields.

    Empty if they say the same, whatever their profiles.

    Lists of plain values are compared whole, lists of objects element by element. NotJson: a record is none.
    """
    members = (before.keys() | after.keys()) - {"profile"}
    ordered = [*(key for key in FIELDS if key in members), *sorted(members - FIELDS.keys())]
    return tuple(
        found
        for key in ordered
        for found in _walk(limits.step("", key), before.get(key, _ABSENT), after.get(key, _ABSENT))
    )


def _walk(where: str, before: Any, after: Any) -> Iterator[Difference]:
    # Texts are compared, not values: for Python, 1 and True and 1.0 are equal.
    match before, after:
        case _Absent(), _:
            yield Difference(where, None, _shown(after, isinstance(after, str)))
        case _, _Absent():
            yield Difference(where, _shown(before, isinstance(before, str)), None)
        case _ if canonical.dumps(before) == canonical.dumps(after):
            return
        case dict(), dict():
            for key in sorted(before.keys() | after.keys()):
                step = limits.step(where, key)
                yield from _walk(step, before.get(key, _ABSENT), after.get(key, _ABSENT))
        case list(), list() if _nested(before) or _nested(after):
            for index in range(max(len(before), len(after))):
                step = limits.step(where, index)
                yield from _walk(step, _element(before, index), _element(after, index))
        case _:
            texts = isinstance(before, str) and isinstance(after, str)
            yield Difference(where, _shown(before, texts), _shown(after, texts))


def _element(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else _ABSENT


def _nested(values: list[Any]) -> bool:
    return any(isinstance(value, dict | list) for value in values)


def _shown(value: Any, plain: bool) -> Seen:
    """Text as it is beside text, else as JSON: “5” and 5 must not look the same."""
    return see(value if plain else canonical.pretty(value, indent=2))
