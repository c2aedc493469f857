"""Which regular expressions an author may put into a schema.

The schema is checked in the web process, on text of up to 256 KB, with an engine that backtracks. So only patterns pass
whose work is small for any text: no groups, no alternatives, at most one open-ended repetition, and that one anchored.
"""

import re

LENGTH_CAP = 100
WORK_CAP = 100

_ATOM = r"(?:\\[dDwWsSbB\W]|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\](){}*+?|^$])"
_COUNT = r"(\*|\+|\?|\{\d{1,3}(?:,\d{0,3})?\})?"
_PART = re.compile(_ATOM + _COUNT)
_ALLOWED = "expected a pattern of characters, [classes], counts like {2,5}, and at most one * or + after a leading ^"


def check(pattern: object) -> None:
    """Raise ValueError unless `pattern` is valid and cheap on any text."""
    if not isinstance(pattern, str) or len(pattern) > LENGTH_CAP:
        raise ValueError(f"expected a pattern of at most {LENGTH_CAP} characters")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"expected a valid regular expression: {error}") from error
    anchored = pattern.startswith("^")
    open_ended, work = _cost(pattern.removeprefix("^").removesuffix("$"))
    if open_ended > anchored or work > WORK_CAP:
        raise ValueError(_ALLOWED)


def _cost(pattern: str) -> tuple[int, int]:
    """How many repetitions have no upper end, and in how many ways the others can be tried."""
    position, open_ended, work = 0, 0, 1
    while position < len(pattern):
        part = _PART.match(pattern, position)
        if part is None:
            raise ValueError(_ALLOWED)
        position = part.end()
        ways = _ways(part[1] or "")
        open_ended += ways is None
        work *= ways or 1
    return open_ended, work


def _ways(count: str) -> int | None:
    """The number of lengths that a count allows; None if there is no upper end."""
    if count in {"*", "+"} or count.endswith(",}"):
        return None
    if count == "?":
        return 2
    low, comma, high = count.strip("{}").partition(",")
    return int(high) - int(low or 0) + 1 if comma else 1
