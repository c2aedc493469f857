"""Hashes, Merkle trees (RFC 6962, section 2.1) and Ed25519 signatures (RFC 8032) of the record.

Each kind of thing is signed under its own name, so that no signature can stand for something else. A key's signature
over a seal covers all seals before, whoever signed those; a key vouches for the one that follows it.

Needs neither Django's settings nor a database.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from types import MappingProxyType
from typing import Any, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hitlchat.base import canonical
from hitlchat.base.schemas import step
from hitlchat.base.sentences import translatable

COLUMNS: Final = ("id", "name", "call", "actor", "means", "at")
SEAL, DROP, KEY, EXPORT = "seal", "drop", "key", "export"
# How the events of a batch are hashed. 1: without the text of `data`, as batches were sealed once.
FORM: Final = 2
# The salt of the text of `data`; the paths of values begin with “/”.
TEXT: Final = "text"
# Hexadecimal digits of each hash of an event that stand beside the seal, to tell which event was changed.
MARK: Final = 16

Row = dict[str, Any]
Body = dict[str, Any]
SaltOf = Callable[[str], bytes]
Hashes = Sequence[bytes]
Ranges = list[list[int]]
# Hashes of values that are kept back, by path.
Hidden = Mapping[str, str]
NOTHING: Final[Hidden] = MappingProxyType({})
_WORDS: Final = {None: b"null", True: b"true", False: b"false"}


def salt_of_row(salt: str, event_id: int) -> str:
    """The salt of one event, made from that of its batch: 32 hexadecimal digits."""
    return _keyed(bytes.fromhex(salt), str(event_id)).hex()


def salts(salt: str) -> SaltOf:
    """The salt of each value of an event, by its path, made from the event's."""
    key = bytes.fromhex(salt)
    return lambda path: _keyed(key, path)


def row_hash(row: Row, salt_of: SaltOf, form: int = FORM, *, text: str = "", hidden: Hidden = NOTHING) -> bytes:
    """SHA-256 over all columns; `row` has COLUMNS and `data`, all as JSON. canonical.NotJson, ValueError.

    `text`: the digest of the text that `data` is stored as, which binds the order of its keys and how it is spelled.
    """
    if form not in (1, FORM):
        raise ValueError(f"no event is hashed in form {form!r}")
    whole = {**{name: row[name] for name in COLUMNS}, "data": node(row["data"], salt_of, hidden).hex()}
    if form == 1:
        return hashlib.sha256(b"event" + canonical.dumps(whole).encode("ascii")).digest()
    return hashlib.sha256(b"event 2" + canonical.dumps({**whole, "text": text}).encode("ascii")).digest()


def text_digest(text: str, salt_of: SaltOf) -> str:
    return hashlib.sha256(salt_of(TEXT) + text.encode("utf-8", "surrogatepass")).hexdigest()


def unreadable_inner(raw: str, salt_of: SaltOf) -> str:
    """Return the digest that files have in place of an unreadable row."""
    return hashlib.sha256(b"raw" + salt_of(TEXT) + raw.encode("utf-8", "surrogatepass")).hexdigest()


def unreadable_hash(event_id: int, inner: str) -> bytes:
    """Return the hash of such a row: no event has the same, since its hashed text begins otherwise."""
    return hashlib.sha256(f"unreadable {event_id} {bytes.fromhex(inner).hex()}".encode("ascii")).digest()


def node(value: Any, salt_of: SaltOf, hidden: Hidden = NOTHING, path: str = "", level: int = 0) -> bytes:
    """The hash of one value of `data`, at `path`, or that given for one that is kept back. NotJson, ValueError."""
    if path in hidden:
        digest = hidden[path]
        if not isinstance(digest, str) or len(digest) != 64:
            raise ValueError("no hash of a value")
        return bytes.fromhex(digest)
    if level > canonical.MAX_DEPTH:
        raise canonical.NotJson("nested too deeply")
    if isinstance(value, dict):
        made = hashlib.sha256(b"object")
        for key in sorted(value):
            made.update(_spelled(key))
            made.update(node(value[key], salt_of, hidden, step(path, key), level + 1))
        return made.digest()
    if isinstance(value, list):
        made = hashlib.sha256(b"array")
        for number, item in enumerate(value):
            made.update(node(item, salt_of, hidden, f"{path}/{number}", level + 1))
        return made.digest()
    return hashlib.sha256(b"value" + salt_of(path) + _spelled(value)).digest()


def paths(value: Any, hidden: Hidden = NOTHING, path: str = "") -> list[str]:
    """Return the paths of the values that are not kept back."""
    if path in hidden:
        return []
    if isinstance(value, dict):
        return [each for key in value for each in paths(value[key], hidden, step(path, key))]
    if isinstance(value, list):
        return [each for number, item in enumerate(value) for each in paths(item, hidden, f"{path}/{number}")]
    return [path]


def _spelled(value: Any) -> bytes:
    """Return a text as canonical.dumps spells it, without its detours: there are very many of them."""
    if isinstance(value, str):
        return encode_basestring_ascii(value).encode("ascii")
    return _WORDS[value] if value is None or isinstance(value, bool) else canonical.dumps(value).encode("ascii")


def _keyed(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()


def root(leaves: Hashes) -> bytes:
    if not leaves:
        return hashlib.sha256(b"").digest()
    level = [_leaf(each) for each in leaves]
    while len(level) > 1:
        level = _above(level)
    return level[0]


def proof(leaves: Hashes, index: int) -> list[bytes]:
    """Return the hashes that lead from the leaf at `index` to the root, from below."""
    level, path = [_leaf(each) for each in leaves], []
    while len(level) > 1:
        beside = index ^ 1
        if beside < len(level):
            path.append(level[beside])
        level, index = _above(level), index // 2
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


def _above(level: list[bytes]) -> list[bytes]:
    # The last of an odd number goes up as it is, which gives the same tree as splitting at a power of two.
    pairs = [_inner(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
    return pairs + level[2 * len(pairs) :]


def _leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def _inner(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


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
    yield from body["late"]
    at = body["first"]
    for first, last in body["gaps"]:
        yield from range(at, first)
        at = last + 1
    yield from range(at, body["last"] + 1)


def mark_of(made: bytes) -> str:
    return made.hex()[:MARK]


def sealed_as(body: Body, marks: str) -> Iterator[tuple[int, str]]:
    """Yield the ids of a batch's events, in the order of their hashes, each with the mark that it was sealed with."""
    return zip(ids_of(body), (marks[at : at + MARK] for at in range(0, len(marks), MARK)), strict=False)


def within(event_id: int, ranges: Ranges) -> bool:
    return any(first <= event_id <= last for first, last in ranges)


def public_of(key: Ed25519PrivateKey) -> str:
    """The public key: 64 hexadecimal digits."""
    return key.public_key().public_bytes_raw().hex()


def fingerprint(public: str) -> str:
    """SHA-256 of the public key's 32 bytes: 64 hexadecimal digits. ValueError: it is no such key."""
    raw = bytes.fromhex(public)
    if len(raw) != 32:
        raise ValueError("an Ed25519 key has 32 bytes")
    return hashlib.sha256(raw).hexdigest()


def spaced(digits: str) -> str:
    """Return digits as people compare them: in groups of four."""
    return " ".join(digits[at : at + 4] for at in range(0, len(digits), 4))


def unspaced(text: str) -> str:
    """Return digits that somebody typed or copied, as they are compared here."""
    return "".join(text.split()).lower()


def sign(key: Ed25519PrivateKey, kind: str, body: Body) -> str:
    return key.sign(_message(kind, body)).hex()


def is_signed(public: str, signature: str, kind: str, body: Body) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), _message(kind, body))
    except (InvalidSignature, ValueError):
        return False
    return True


def fault_of(seal: Body, made: str, signature: str, public: str) -> Literal["", "edited", "unsigned"]:
    """Return the fault of a seal: it has not the hash `made`, or its signature is not that of its key."""
    if canonical.sha256(seal) != made:
        return "edited"
    return "" if is_signed(public, signature, SEAL, seal) else "unsigned"


def endorsed(public: str, before: str) -> Body:
    """Return the body that a key signs of the one that follows it."""
    return {"key": fingerprint(public), "follows": before}


def _message(kind: str, body: Body) -> bytes:
    return f"hitlchat record {kind}\n{canonical.dumps(body)}".encode("ascii")


@dataclass(frozen=True)
class PublicKey:
    """A key as the record has it, in the order of `number`."""

    id: str
    public: str
    number: int
    endorsement: str


def broken(keys: Sequence[PublicKey], anchor: str) -> str:
    """Return why the last of `keys` is not to be believed, if the one with fingerprint `anchor` is; empty if it is."""
    for key in keys:
        try:
            is_own = fingerprint(key.public) == key.id
        except ValueError:
            is_own = False
        if not is_own:
            return translatable(f"This fingerprint does not belong to the key {key.id[:16]}… on record.")
    places = [place for place, key in enumerate(keys) if key.id == anchor]
    if not places:
        return translatable(f"The record was never sealed with the key {anchor[:16]}….")
    for before, key in zip(keys[places[0] :], keys[places[0] + 1 :], strict=False):
        if not is_signed(before.public, key.endorsement, KEY, endorsed(key.public, before.id)):
            return translatable(
                f"The key {key.id[:16]}… took over, but the previous key {before.id[:16]}… never vouched for it."
            )
    return ""


def onward(keys: Sequence[PublicKey], anchor: str) -> set[str]:
    """The anchor and the keys after it. Seals chained below a seal of one of them are believed with that seal."""
    ids = [key.id for key in keys]
    return set(ids[ids.index(anchor) :]) if anchor in ids else set()
