"""`heapq`, as far as it answers instead of changing a list: tools hand over copies."""

import heapq
from collections.abc import Iterable
from typing import Any

from hitlchat.sandbox.helpers.module import HelperModule


def merge(*iterables: Iterable[Any], reverse: bool = False) -> list[Any]:
    return list(heapq.merge(*iterables, reverse=reverse))


def nlargest(n: int, iterable: Iterable[Any]) -> list[Any]:
    return heapq.nlargest(n, iterable)


def nsmallest(n: int, iterable: Iterable[Any]) -> list[Any]:
    return heapq.nsmallest(n, iterable)


HEAPQ = HelperModule(
    "heapq",
    {"merge": merge, "nlargest": nlargest, "nsmallest": nsmallest},
    """from typing import Any, Iterable

def merge(*iterables: Iterable[Any], reverse: bool = False) -> list[Any]: ...
def nlargest(n: int, iterable: Iterable[Any]) -> list[Any]: ...
def nsmallest(n: int, iterable: Iterable[Any]) -> list[Any]: ...
""",
)
