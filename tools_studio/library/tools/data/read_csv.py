import csv
import re
from typing import Any, Literal

MOST_ROWS = 5000


def guess(line: str) -> str:
    """The separator that the first line has most of."""
    return min([",", ";", "\t", "|"], key=lambda mark: -line.count(mark))


def typed(text: str) -> Any:
    """Numbers, true, false and nothing as what they are; 007 stays a text."""
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,14})", text):
        return int(text)
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,14})\.[0-9]{1,15}", text):
        return float(text)
    return {"true": True, "false": False, "": None}.get(text.lower(), text)


def run(
    text: str, separator: Literal["guess", ",", ";", "tab", "|"] = "guess", header: bool = True, types: bool = True
) -> list[dict[str, Any]]:
    """Read CSV as a list of objects, one for each row.

    Args:
        text: the CSV
        separator: what stands between two values
        header: whether the first row names the columns; otherwise they are called column_1, column_2 and so on
        types: read numbers, true and false as such; otherwise everything stays a text
    """
    if not text.strip():
        return []
    mark = guess(text.splitlines()[0]) if separator == "guess" else "\t" if separator == "tab" else separator
    rows = [row for row in csv.reader(text.splitlines(keepends=True), delimiter=mark) if row]
    if len(rows) > MOST_ROWS:
        raise ValueError(f"expected at most {MOST_ROWS} rows, not {len(rows)}")
    names = [name.strip() for name in rows[0]] if header else [f"column_{n + 1}" for n in range(len(rows[0]))]
    if len(set(names)) != len(names) or "" in names:
        raise ValueError("expected column names in the first row, none of them empty or there twice")
    found = []
    for number, row in enumerate(rows[header:], 1):
        if len(row) != len(names):
            raise ValueError(f"row {number} has {len(row)} values, expected {len(names)}")
        found.append({name: typed(value.strip()) if types else value for name, value in zip(names, row, strict=True)})
    return found
