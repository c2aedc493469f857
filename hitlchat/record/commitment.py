"""What a seal says about one event: a hash that binds every column, and from which a part can be kept back.

`data` is hashed as a tree, each value in it with a salt of its own. So an export can leave the hash in the place of a
secret: the rest still verifies, and nobody can find the secret by trying values (as in SD-JWT, RFC 9901).
Needs neither Django's settings nor a database.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from hitlchat.gate import canonical

# An object with this key stands for a value that is kept back: its hash, and how the rest of it reads.
HIDDEN = "$hidden"
READS = "$reads"
COLUMNS = ("id", "name", "call", "actor", "means", "at")

Row = dict[str, Any]
SaltOf = Callable[[str], bytes]


def salt_of_row(salt: str, event_id: int) -> str:
    """The salt of one event, made from that of its batch: 32 hexadecimal digits."""
    return _keyed(bytes.fromhex(salt), str(event_id)).hex()


def salts(salt: str) -> SaltOf:
    """The salt of each value of an event, by its path, made from the event's."""
    key = bytes.fromhex(salt)
    return lambda path: _keyed(key, path)


def row_hash(row: Row, salt_of: SaltOf) -> bytes:
    """SHA-256 over all columns; `row` has COLUMNS and `data`, all as JSON. canonical.NotJson."""
    whole = {**{name: row[name] for name in COLUMNS}, "data": node(row["data"], salt_of).hex()}
    return hashlib.sha256(b"event" + canonical.dumps(whole).encode("ascii")).digest()


def node(value: Any, salt_of: SaltOf, path: str = "") -> bytes:
    """The hash of one value of `data`, at `path`; of one that is kept back, what stands for it. ValueError."""
    if isinstance(value, dict):
        if HIDDEN in value:
            return _kept_back(value)
        made = hashlib.sha256(b"object")
        for key in sorted(value):
            made.update(canonical.dumps(key).encode("ascii"))
            made.update(node(value[key], salt_of, below(path, key)))
        return made.digest()
    if isinstance(value, list):
        made = hashlib.sha256(b"array")
        for number, item in enumerate(value):
            made.update(node(item, salt_of, f"{path}/{number}"))
        return made.digest()
    return hashlib.sha256(b"value" + salt_of(path) + canonical.dumps(value).encode("ascii")).digest()


def paths(value: Any, path: str = "") -> list[str]:
    """Of the values that are not kept back."""
    if isinstance(value, dict):
        return [] if HIDDEN in value else [each for key in value for each in paths(value[key], below(path, key))]
    if isinstance(value, list):
        return [each for number, item in enumerate(value) for each in paths(item, f"{path}/{number}")]
    return [path]


def below(path: str, key: str) -> str:
    """As in a JSON pointer (RFC 6901): no two values have the same path."""
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def _kept_back(value: dict[str, Any]) -> bytes:
    digest = value[HIDDEN]
    if value.keys() - {HIDDEN, READS} or not isinstance(digest, str) or len(digest) != 64:
        raise ValueError(f"“{HIDDEN}” does not hold the hash of a value")
    return bytes.fromhex(digest)


def _keyed(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()
