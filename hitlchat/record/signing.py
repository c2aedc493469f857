"""Ed25519 (RFC 8032) over what is to be proven: seals, drops, keys that follow one another, and exports.

Each kind of thing is signed under its own name, so that no signature can stand for something else. Needs neither
Django's settings nor a database.
"""

import hashlib
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hitlchat.base import canonical

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
    """As people compare it: in groups of four."""
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
    """What the key before signs of the one that follows it."""
    return {"key": fingerprint(public), "follows": before}


def _message(kind: str, body: Body) -> bytes:
    return f"hitlchat record {kind}\n{canonical.dumps(body)}".encode("ascii")
