"""Two texts line by line: what went, what came, and some lines around it."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

CONTEXT_LINES = 3
# Beyond it, matching lines takes quadratic time: what differs is then shown as a whole.
MOST_MATCHED_LINES = 1500

Kind = Literal["same", "gone", "come", "skip"]


@dataclass(frozen=True)
class Line:
    """`old` and `new` count from 1, None where the line is not in that text. A skip stands for lines left out."""

    kind: Kind
    text: str
    old: int | None = None
    new: int | None = None


def lines(before: str, after: str) -> list[Line]:
    """Empty if the texts are the same. Only line feeds end a line, so that nothing hides behind another separator."""
    if before == after:
        return []
    if before.endswith("\n") and after.endswith("\n"):
        before, after = before[:-1], after[:-1]
    old, new = before.split("\n"), after.split("\n")
    return list(_with_context(list(_all(old, new))))


def _all(old: list[str], new: list[str]) -> Iterator[Line]:
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    for at in range(head):
        yield Line("same", old[at], at + 1, at + 1)
    yield from _middle(old[head : len(old) - tail], new[head : len(new) - tail], head)
    for back in range(tail, 0, -1):
        yield Line("same", old[-back], len(old) - back + 1, len(new) - back + 1)


def _common(one: list[str], other: list[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _middle(old: list[str], new: list[str], offset: int) -> Iterator[Line]:
    for tag, i1, i2, j1, j2 in _opcodes(old, new):
        if tag == "equal":
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                yield Line("same", old[i], offset + i + 1, offset + j + 1)
            continue
        for i in range(i1, i2):
            yield Line("gone", old[i], old=offset + i + 1)
        for j in range(j1, j2):
            yield Line("come", new[j], new=offset + j + 1)


def _opcodes(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    if len(old) > MOST_MATCHED_LINES or len(new) > MOST_MATCHED_LINES:
        return [("replace", 0, len(old), 0, len(new))]
    return list(difflib.SequenceMatcher(None, old, new).get_opcodes())


def _with_context(whole: list[Line]) -> Iterator[Line]:
    """Only what differs and the lines around it; runs of others become one line that counts them."""
    near = [False] * len(whole)
    for at, line in enumerate(whole):
        if line.kind != "same":
            first, last = max(0, at - CONTEXT_LINES), min(len(whole), at + CONTEXT_LINES + 1)
            near[first:last] = [True] * (last - first)
    skipped = 0
    for line, shown in zip(whole, near, strict=True):
        if shown and skipped:
            yield _skip(skipped)
        skipped = 0 if shown else skipped + 1
        if shown:
            yield line
    if skipped:
        yield _skip(skipped)


def _skip(count: int) -> Line:
    return Line("skip", f"{count:,} unchanged {'line' if count == 1 else 'lines'}")
