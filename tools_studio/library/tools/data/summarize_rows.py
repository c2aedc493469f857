import json
from typing import Any, Literal


def measured(values: list[Any], measure: str) -> Any:
    if measure == "count":
        return len(values)
    numbers = [value for value in values if type(value) in (int, float)]
    if not numbers:
        return None
    if measure in ("minimum", "maximum"):
        return min(numbers) if measure == "minimum" else max(numbers)
    return round(sum(numbers) / (len(numbers) if measure == "average" else 1), 6)


def run(
    rows: list[dict[str, Any]],
    group_by: list[str],
    measure: Literal["count", "sum", "average", "minimum", "maximum"] = "count",
    column: str = "",
) -> list[dict[str, Any]]:
    """Group a list of objects by one or more columns and count, add up or average another one in each group.

    Args:
        rows: the objects
        group_by: the columns that make a group
        measure: what to work out for each group
        column: the column of numbers that it is worked out from; not needed to count
    """
    if not group_by:
        raise ValueError("group_by: expected at least one column")
    if measure != "count" and not column:
        raise ValueError(f"column: expected the column to take the {measure} of")
    known = {name for row in rows for name in row}
    unknown = [name for name in [*group_by, *([column] if column else [])] if rows and name not in known]
    if unknown:
        raise ValueError(f"no row has a column {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(json.dumps([row.get(name) for name in group_by]), []).append(row)
    made = []
    for group in groups.values():
        values = [row.get(column) for row in group] if column else group
        name = f"{measure}_{column}" if column else measure
        made.append({**{key: group[0].get(key) for key in group_by}, name: measured(values, measure)})
    return made
