"""What is different between the preview that was approved and the one that it is asked about again with."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from hitlchat.gate.effect import Effect, Line, Part, effect, folded, is_short
from hitlchat.gate.visible import Seen, see

# Around what is different.
CONTEXT = 160
MOST_OF_DIFFERENCE = 600
OUT_OF_SIGHT = "What differs is in the part that is left out."
_WORD_OR_SPACE = re.compile(r"\s+|\S+")

Preview = dict[str, Any]


@dataclass(frozen=True)
class Again:
    """Why it is asked again, and what is different; `whole` when that is all there is to see."""

    why: Seen
    before: Effect
    now: Effect
    whole: bool

    @property
    def hidden(self) -> int:
        return self.before.hidden + self.now.hidden


def again(asked: dict[str, Any], shown: Preview) -> Again:
    """`asked` is the disclosure's note on asking again, `shown` the preview as it is now. KeyError: it lacks a part."""
    before, why = asked["before"], see(asked["why"])
    pair = _texts(before, shown) if _is_text(before) and _is_text(shown) else _tables(before, shown)
    if pair is None:
        now = effect(shown)
        unseen = (OUT_OF_SIGHT,) if {**before, "whole": ""} == {**shown, "whole": ""} else ()
        return Again(why, effect(before), replace(now, notes=now.notes + unseen), whole=True)
    return Again(why, *pair, whole=not pair[1].notes)


def _is_text(shown: Preview) -> bool:
    return shown["text"] is not None and shown["table"] is None and not shown["cut"]


def _texts(before: Preview, now: Preview) -> tuple[Effect, Effect]:
    """Both with their difference marked, and with what stands around it."""
    old, new = (_WORD_OR_SPACE.findall(shown["text"]) for shown in (before, now))
    same, end = _shared(old, new)
    other, others = old[same : len(old) - end], new[same : len(new) - end]
    return _excerpt(old, same, end, others), _excerpt(new, same, end, other)


def _excerpt(words: list[str], same: int, end: int, others: list[str]) -> Effect:
    middle = words[same : len(words) - end]
    head, tail = "".join(words[:same]), "".join(words[len(words) - end :])
    before, more, after = len(head) - CONTEXT, sum(map(len, middle)) - MOST_OF_DIFFERENCE, len(tail) - CONTEXT
    stretches = [(head[max(0, before) :], False), *_marked(middle, others), (tail[:CONTEXT], False)]
    stored = see("".join(words)).stored
    notes = [
        *([f"{before:,} characters before it are the same."] if before > 0 else []),
        *([f"{more:,} more characters of it are different."] if more > 0 else []),
        *([f"{after:,} characters after it are the same."] if after > 0 else []),
    ]
    parts = tuple(Part(see(text, stored=stored), changed) for text, changed in stretches if text)
    return Effect(parts=parts, notes=tuple(notes))


def _marked(words: list[str], others: list[str]) -> Iterator[tuple[str, bool]]:
    """Stretches of `words`, and whether they are missing in `others`; what is long is marked as a whole, and cut."""
    # Comparing takes the product of both lengths.
    if max(sum(map(len, words)), sum(map(len, others))) > MOST_OF_DIFFERENCE:
        yield "".join(words)[:MOST_OF_DIFFERENCE], True
        return
    marked = ""
    for tag, start, end, *_ in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        text = "".join(words[start:end])
        # That two texts have spaces in common says nothing.
        if tag != "equal" or not text.strip():
            marked += text
            continue
        yield marked, True
        yield text, False
        marked = ""
    yield marked, True


def _tables(before: Preview, now: Preview) -> tuple[Effect, Effect] | None:
    """Both with their difference marked; None if they are no two tables of the same columns, both complete."""
    old, new = before["table"], now["table"]
    if old is None or new is None or old["columns"] != new["columns"] or before["text"] != now["text"]:
        return None
    if before["cut"] or now["cut"]:
        return None
    same, end = _shared(old["rows"], new["rows"])
    other, others = (table["rows"][same : len(table["rows"]) - end] for table in (old, new))
    return _differing(old, same, other, others), _differing(new, same, others, other)


def _differing(table: dict[str, Any], same: int, rows: list[list[str]], others: list[list[str]]) -> Effect:
    """`rows` of the table, which begin behind as many as are the `same`, with the cells marked that are other ones in
    `others`; of a short table, all of it."""
    # Of more rows or fewer, nobody can say which was which.
    pairs = zip(rows, others, strict=True) if len(rows) == len(others) else ((row, [None] * len(row)) for row in rows)
    marked = [tuple(Part(see(cell), cell != was) for cell, was in zip(row, other, strict=True)) for row, other in pairs]
    if is_short(table["rows"]):
        lines = [_plain(row) for row in table["rows"]]
        lines[same : same + len(rows)] = marked
        return Effect(table=folded(table["columns"], lines))
    left = len(table["rows"]) - len(rows)
    note = f"{left:,} {'row is' if left == 1 else 'rows are'} the same."
    return Effect(table=folded(table["columns"], marked), notes=(note,) if left else ())


def _plain(row: list[str]) -> Line:
    return tuple(Part(see(cell)) for cell in row)


def _shared(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int]:
    """How many items are the same at the beginning, and of the rest at the end."""
    start = len([*takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))])
    rest = zip(reversed(old[start:]), reversed(new[start:]), strict=False)
    return start, len([*takewhile(lambda pair: pair[0] == pair[1], rest)])
