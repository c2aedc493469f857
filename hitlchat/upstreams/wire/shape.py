"""Whether a parsed JSON value is one that the rest of the program can live with."""

import math
from typing import Any

from hitlchat.upstreams.wire.spec import Limits

LONGEST_NUMBER = 400  # digits; more than any double has


def openings(data: bytes) -> int:
    """About how many lists and objects it takes to parse this, for parsing costs far more than the bytes."""
    return data.count(b"[") + data.count(b"{")


def complaint(value: Any, limits: Limits) -> str:
    """What is wrong with it, as the end of a sentence that begins with its name; empty if nothing is.

    Takes no more steps than `limits.nodes`, and no recursion.
    """
    left = limits.nodes
    level: list[Any] = [value]
    for _ in range(limits.depth + 1):
        left -= len(level)
        if left < 0:
            return f"has more than {limits.nodes:,} parts"
        if any(_is_no_number(each) for each in level):
            return "has a number that JSON cannot express"
        inner = [each for each in level if isinstance(each, dict | list)]
        if not inner:
            return ""
        if sum(map(len, inner)) > left:
            return f"has more than {limits.nodes:,} parts"
        level = [item for each in inner for item in (each.values() if isinstance(each, dict) else each)]
    return f"is nested more than {limits.depth} levels deep"


def _is_no_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and value.bit_length() > 3.33 * LONGEST_NUMBER
