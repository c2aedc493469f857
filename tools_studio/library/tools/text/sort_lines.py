import re
from typing import Any, Literal


def natural(line: str) -> list[Any]:
    """Digits count as numbers: file2 comes before file10."""
    return [[0, int(part), ""] if part.isdigit() else [1, 0, part] for part in re.findall(r"[0-9]+|[^0-9]+", line)]


def number(line: str) -> list[Any]:
    """By the first number of the line; lines without one come last."""
    found = re.search(r"-?[0-9]+(?:\.[0-9]+)?", line)
    return [0, float(found.group(0))] if found else [1, 0.0]


def run(
    text: str,
    by: Literal["text", "natural", "number", "length", "keep order"] = "natural",
    descending: bool = False,
    remove_duplicates: bool = False,
    ignore_case: bool = True,
) -> dict[str, Any]:
    """Sort the lines of a text, and remove empty lines and, if wanted, those that are there already.

    Args:
        text: the lines
        by: how to compare two lines; natural puts file2 before file10
        descending: largest first
        remove_duplicates: keep only the first of equal lines
        ignore_case: whether a and A are the same
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    folded = [line.lower() if ignore_case else line for line in lines]
    kept = list(range(len(lines)))
    if remove_duplicates:
        first = {line: place for place, line in reversed(list(enumerate(folded)))}
        kept = [place for place in kept if first[folded[place]] == place]
    if by != "keep order":
        ways = {"text": lambda line: line, "natural": natural, "number": number, "length": len}
        kept = sorted(kept, key=lambda place: ways[by](folded[place]), reverse=descending)
    return {"lines": len(kept), "removed": len(lines) - len(kept), "text": "\n".join([lines[n] for n in kept])}
