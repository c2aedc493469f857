"""Merkle trees over the events of a batch, as in RFC 6962 section 2.1: one hash for all, and proofs that one is in it.

Needs neither Django nor a database.
"""

import hashlib
from collections.abc import Sequence

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
