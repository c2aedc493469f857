import re
from typing import Any


def look_up(values: Any, path: str) -> Any:
    """The value at a dotted path such as `customer.name` or `items.0`, or None."""
    for part in path.split("."):
        if isinstance(values, dict):
            values = values.get(part)
        elif isinstance(values, list) and part.isdigit() and int(part) < len(values):
            values = values[int(part)]
        else:
            return None
    return values


def run(template: str, values: dict[str, Any], missing: str = "") -> dict[str, Any]:
    """Fill the {{placeholders}} of a text with values.

    Args:
        template: the text, with placeholders such as {{name}} or {{customer.city}}
        values: the values by name
        missing: what to write for a placeholder without a value; empty means that it is an error
    """
    parts = re.split(r"\{\{\s*([\w.]+)\s*\}\}", template)
    unknown = sorted({path for path in parts[1::2] if look_up(values, path) is None})
    if unknown and not missing:
        raise ValueError(f"there is no value for {', '.join(unknown)}")
    filled = [missing if look_up(values, path) is None else str(look_up(values, path)) for path in parts[1::2]]
    written = [text + value for text, value in zip(parts[0::2], [*filled, ""], strict=True)]
    return {"text": "".join(written), "missing": unknown}
