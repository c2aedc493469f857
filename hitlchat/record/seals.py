"""What of a seal is hashed and signed, and the Merkle trees over its batch of events (RFC 6962, section 2.1).

Merkle trees over the events of a batch, as in RFC 6962 section 2.1: one hash for all, and proofs that one is in it.

Needs neither Django nor a database.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from hitlchat.base import canonical

Hashes = Sequence[bytes]


def root(leaves: Hashes) -> bytes:
    if not leaves:
        return hashlib.sha256(b"").digest()
    level = [_leaf(each) for each in leaves]
    while len(level) > 1:
        # The last of an odd number goes up as it is, which gives the same tree as splitting at a power of two.
        pairs = [_inner(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = pairs + level[2 * len(pairs) :]
    return level[0]


def proof(leaves: Hashes, index: int) -> list[bytes]:
    """What it takes besides the leaf at `index` to get at the root, from below."""
    level, path = [_leaf(each) for each in leaves], []
    while len(level) > 1:
        beside = index ^ 1
        if beside < len(level):
            path.append(level[beside])
        pairs = [_inner(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level, index = pairs + level[2 * len(pairs) :], index // 2
    return path


def climbed(leaf: bytes, index: int, count: int, path: Hashes) -> bytes | None:
    """The root that a proof leads to; None if it does not fit a tree of `count` leaves."""
    if not 0 <= index < count:
        return None
    here, left = _leaf(leaf), list(path)
    while count > 1:
        if index ^ 1 < count:
            if not left:
                return None
            beside = left.pop(0)
            here = _inner(beside, here) if index % 2 else _inner(here, beside)
        index, count = index // 2, (count + 1) // 2
    return None if left else here


def _leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def _inner(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


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
