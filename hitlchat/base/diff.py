"""The difference of two sequences in bounded time: what both ends share is matched first, the middle only if short."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

Opcode = tuple[str, int, int, int, int]


def shared(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """Return how many items are the same at the beginning, and of the rest at the end."""
    head = _common(old, new)
    return head, _common(old[head:][::-1], new[head:][::-1])


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def opcodes(old: Sequence[Any], new: Sequence[Any], most: int, *, autojunk: bool = False) -> list[Opcode]:
    """Return the stretches as `SequenceMatcher` does: tag, then begin and end in both.

    Matching takes quadratic time: a middle of more than `most` items is replaced as a whole.
    """
    head, tail = shared(old, new)
    first, last = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(first), len(last)) > most:
        middle: list[Opcode] = [("replace", 0, len(first), 0, len(last))]
    else:
        middle = list(SequenceMatcher(None, first, last, autojunk=autojunk).get_opcodes())
    return [
        ("equal", 0, head, 0, head),
        *((tag, head + i1, head + i2, head + j1, head + j2) for tag, i1, i2, j1, j2 in middle),
        ("equal", len(old) - tail, len(old), len(new) - tail, len(new)),
    ]
