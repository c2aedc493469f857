"""Ed25519 (RFC 8032) over what is to be proven, and which keys are vouched for.

Each kind of thing is signed under its own name, so that no signature can stand for something else. Needs neither
Django's settings nor a database.

Which keys are vouched for, starting from one that is known: the own one, or one whose fingerprint somebody noted.

A key's signature over a seal covers all seals before, whoever signed those. Forward it is the endorsement that a key
gives to the one that follows it. Needs neither Django's settings nor a database.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hitlchat.base import canonical
from hitlchat.record.seals import KEY

Body = dict[str, Any]


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


def sign(key: Ed25519PrivateKey, kind: str, body: Body) -> str:
    return key.sign(_message(kind, body)).hex()


def is_signed(public: str, signature: str, kind: str, body: Body) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), _message(kind, body))
    except (InvalidSignature, ValueError):
        return False
    return True


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
        if not _is_own_fingerprint(key):
            return f"The key {key.id[:16]}… on record is not the one that this fingerprint belongs to."
    places = [place for place, key in enumerate(keys) if key.id == anchor]
    if not places:
        return f"The record was never sealed with the key {anchor[:16]}…."
    for before, key in zip(keys[places[0] :], keys[places[0] + 1 :], strict=False):
        if not is_signed(before.public, key.endorsement, KEY, endorsed(key.public, before.id)):
            return f"The key {key.id[:16]}… took over, and the key {before.id[:16]}… before it never vouched for it."
    return ""


def onward(keys: Sequence[PublicKey], anchor: str) -> set[str]:
    """The anchor and the keys after it. What is chained below a seal of one of them is believed with that seal."""
    ids = [key.id for key in keys]
    return set(ids[ids.index(anchor) :]) if anchor in ids else set()


def _is_own_fingerprint(key: PublicKey) -> bool:
    try:
        return fingerprint(key.public) == key.id
    except ValueError:
        return False
