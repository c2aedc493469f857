import re
from typing import Annotated, Any, Literal

KNOWN = {
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "url": r"https?://[^\s<>\"']*[^\s<>\"'.,;:!?)]",
    "number": r"-?[0-9]+(?:[.,][0-9]+)*",
    "date": r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\b",
    "hashtag": r"(?<!\w)#\w+",
    "ipv4": r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b",
}


def found(match: Any) -> Any:
    """The match, or its groups where the expression has some."""
    names = match.groupdict()
    return names or (list(match.groups()) if match.groups() else match.group(0))


def run(
    text: str,
    kind: Literal["email", "url", "number", "date", "hashtag", "ipv4", "expression"] = "expression",
    *,
    expression: str = "",
    ignore_case: bool = False,
    unique: bool = False,
    limit: Annotated[int, {"minimum": 1, "maximum": 1000}] = 200,
) -> dict[str, Any]:
    """Find everything in a text that looks like an address, a number, a date, or matches a regular expression.

    Args:
        text: the text to search
        kind: what to look for; expression means the one given next
        expression: a regular expression; with groups, each match is the list (or the object) of its groups
        ignore_case: whether a and A are the same
        unique: leave out what was found before
        limit: how many matches at most
    """
    if (kind == "expression") != bool(expression):
        raise ValueError("expected either a kind or an expression")
    try:
        pattern = re.compile(KNOWN.get(kind, expression), re.IGNORECASE if ignore_case else 0)
        matches = [found(match) for match in pattern.finditer(text)]
    except re.error as error:
        raise ValueError(f"the expression cannot be used: {error}") from None
    if unique:
        matches = [match for number, match in enumerate(matches) if match not in matches[:number]]
    return {"count": len(matches), "matches": matches[:limit], "left_out": max(0, len(matches) - limit)}
