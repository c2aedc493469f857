"""What of a seal is hashed and signed. The hash of one is part of the next: that is the chain."""

import hashlib
from collections.abc import Iterator
from typing import Any

from hitlchat.base import canonical

Body = dict[str, Any]
Ranges = list[list[int]]

SEAL, DROP, KEY, EXPORT = "seal", "drop", "key", "export"


def hash_of(body: Body) -> str:
    return canonical.sha256(body)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii", "replace")).hexdigest()


def gaps_in(ids: list[int], first: int, last: int) -> Ranges:
    """The ranges from `first` to `last`, both included, that none of `ids`, which ascend, is in."""
    found, expected = [], first
    for event_id in ids:
        if event_id > expected:
            found.append([expected, event_id - 1])
        expected = event_id + 1
    if expected <= last:
        found.append([expected, last])
    return found


def ids_of(body: Body) -> Iterator[int]:
    """The ids of a batch's events, in the order of their hashes."""
    yield from body["late"]
    at = body["first"]
    for first, last in body["gaps"]:
        yield from range(at, first)
        at = last + 1
    yield from range(at, body["last"] + 1)


def within(event_id: int, ranges: Ranges) -> bool:
    return any(first <= event_id <= last for first, last in ranges)
