import re
from typing import Any


def run(
    text: str, search: str, replacement: str, regular_expression: bool = False, ignore_case: bool = False
) -> dict[str, Any]:
    """Replace every occurrence of a text, or of what a regular expression matches.

    Args:
        text: the text to change
        search: what to look for
        replacement: what to put in its place; with an expression, \\1 is what the first group matched
        regular_expression: whether `search` is a regular expression
        ignore_case: whether a and A are the same
    """
    if not search:
        raise ValueError("search: expected at least one character")
    pattern = search if regular_expression else re.escape(search)
    put = replacement if regular_expression else replacement.replace("\\", "\\\\")
    try:
        flags = re.IGNORECASE if ignore_case else 0
        count = len(list(re.finditer(pattern, text, flags)))
        changed = re.sub(pattern, put, text, flags=flags)
    except (re.error, IndexError) as error:
        raise ValueError(f"the expression or its replacement cannot be used: {error}") from None
    return {"replaced": count, "text": changed}
