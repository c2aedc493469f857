from typing import Any

MOST_LINES = 400


def table(old: list[str], new: list[str]) -> list[list[int]]:
    """How many lines the rests of both texts have in common, from each pair of places on."""
    counts = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        row, below = counts[i], counts[i + 1]
        for j in range(len(new) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if old[i] == new[j] else max(below[j], row[j + 1])
    return counts


def compare(old: list[str], new: list[str]) -> list[str]:
    counts = table(old, new)
    lines: list[str] = []
    i, j = 0, 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            lines.append(f"  {old[i]}")
            i, j = i + 1, j + 1
        elif j == len(new) or (i < len(old) and counts[i + 1][j] >= counts[i][j + 1]):
            lines.append(f"- {old[i]}")
            i += 1
        else:
            lines.append(f"+ {new[j]}")
            j += 1
    return lines


def run(old: str, new: str, only_changes: bool = True) -> dict[str, Any]:
    """Compare two texts line by line: what was removed is marked with -, what was added with +.

    Args:
        old: the text as it was
        new: the text as it is now
        only_changes: leave out the lines that are in both
    """
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > MOST_LINES:
        raise ValueError(f"expected texts of at most {MOST_LINES} lines")
    lines = compare(before, after)
    removed = len([line for line in lines if line[0] == "-"])
    added = len([line for line in lines if line[0] == "+"])
    shown = [line for line in lines if line[0] != " "] if only_changes else lines
    return {"same": not removed and not added, "removed": removed, "added": added, "diff": "\n".join(shown)}
