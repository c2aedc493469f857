import json
from typing import Any


def cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\r", "").replace("\n", "<br>")


def run(rows: list[dict[str, Any]], columns: list[str] = []) -> str:
    """Write a list of objects as a Markdown table; columns of numbers stand right.

    Args:
        rows: the objects, one for each row
        columns: which columns, in this order; empty means all of them as they first appear
    """
    names = columns or list({name: None for row in rows for name in row})
    if not names:
        raise ValueError("there are no columns to write")
    lines = [[cell(name) for name in names]] + [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max([3] + [len(line[n]) for line in lines]) for n in range(len(names))]
    kinds = [[row.get(name) for row in rows if row.get(name) is not None] for name in names]
    right = [bool(kind) and all(type(value) in (int, float) for value in kind) for kind in kinds]
    padded = [
        "| " + " | ".join([t.rjust(w) if r else t.ljust(w) for t, w, r in zip(line, widths, right, strict=True)]) + " |"
        for line in lines
    ]
    rule = "| " + " | ".join(["-" * (w - 1) + ":" if r else "-" * w for w, r in zip(widths, right, strict=True)]) + " |"
    return "\n".join([padded[0], rule, *padded[1:]])
