import json
import re
from typing import Any, Literal


def written(value: Any, mark: str) -> str:
    """The value as CSV has it: quoted where it would be misread, and never the start of a spreadsheet formula."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and re.match(r"[=+@-](?![0-9.,]*$)", text):
        text = f"'{text}"
    if mark in text or '"' in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def run(
    rows: list[dict[str, Any]],
    columns: list[str] = [],
    separator: Literal[",", ";", "tab"] = ",",
) -> str:
    """Write a list of objects as CSV with a header.

    Args:
        rows: the objects, one for each row
        columns: which columns, in this order; empty means all of them as they first appear
        separator: what stands between two values
    """
    mark = "\t" if separator == "tab" else separator
    names = columns or list({name: None for row in rows for name in row})
    if not names:
        raise ValueError("there are no columns to write")
    lines = [mark.join([written(name, mark) for name in names])]
    lines += [mark.join([written(row.get(name), mark) for name in names]) for row in rows]
    return "\n".join(lines) + "\n"
