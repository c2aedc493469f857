"""Ed25519 (RFC 8032): the key that the record is sealed with, made or given, and which keys count."""

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import IntegrityError, transaction

from hitlchat.base import canonical
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import RecordKey
from hitlchat.gate.transition import note
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
    """Return what the key before signs of the one that follows it."""
    return {"key": fingerprint(public), "follows": before}


def _message(kind: str, body: Body) -> bytes:
    return f"hitlchat record {kind}\n{canonical.dumps(body)}".encode("ascii")


@dataclass(frozen=True)
class PublicKey:
    """As the record has it, in the order of `number`."""

    id: str
    public: str
    number: int
    endorsement: str


def broken(keys: Sequence[PublicKey], anchor: str) -> str:
    """Return why the last of `keys` is not to be believed, if the one with the fingerprint `anchor` is.

    Empty if it is.
    """
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


CHANGED = "record.key_changed"
EXPECTED = "expected the path of a PEM file, or an Ed25519 private key as PEM or as 32 bytes in Base64"


class BadKey(ValueError):
    """There is no usable key; the message says where it was looked for."""


class OtherKey(Exception):
    """The record is sealed with another key than this process has."""


def file() -> Path:
    return Path(settings.DATA_DIR) / "record_key"


def own() -> Ed25519PrivateKey:
    """This process's key, made now if none was given and none is there. BadKey."""
    given = settings.HITL_RECORD_KEY
    if given:
        return _given(given)
    if not file().exists():
        write(file(), Ed25519PrivateKey.generate())
    return _pem(file().read_bytes(), str(file()))


def own_fingerprint() -> str | None:
    """Of this process's key; None if it has none, and then none is made."""
    if not settings.HITL_RECORD_KEY and not file().exists():
        return None
    return fingerprint(public_of(own()))


def write(path: Path, key: Ed25519PrivateKey) -> None:
    """For its owner only, and whole or not at all; one that another process has just written stays."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def current() -> RecordKey | None:
    """The key that the record is sealed with now."""
    return RecordKey.objects.order_by("-number").first()


def enrolled(key: Ed25519PrivateKey) -> RecordKey:
    """The row of `key`, which becomes the record's if there was none. OtherKey."""
    public = public_of(key)
    known = current() or _add(public, 1)
    if known.public != public:
        raise OtherKey(
            f"The record is sealed with the key {known.pk[:16]}…, and this process has {fingerprint(public)[:16]}…: it"
            " seals nothing. Give all processes on one database the same key (HITL_RECORD_KEY), or change the record's"
            " key with “manage.py audit rotate”."
        )
    return known


def rotate(to: Path, actor: Actor, *, lost: bool = False) -> RecordKey:
    """Make a new key in the new file `to`, and have the record sealed with it from now on; the one before vouches for
    it, unless that is `lost`. BadKey, OtherKey; FileExistsError: nothing was changed."""
    if to.exists():
        raise FileExistsError(f"{to} exists: name a file that does not.")
    before, endorsement = current(), ""
    made = Ed25519PrivateKey.generate()
    public = public_of(made)
    if before is not None and not lost:
        old = own()
        enrolled(old)
        endorsement = sign(old, KEY, endorsed(public, before.pk))
    # Before it is said to be the key: without the file nothing could be sealed any more.
    write(to, made)
    with transaction.atomic():
        row = _add(public, before.number + 1 if before else 1, endorsement)
        said = {"before": before.pk if before else None, "after": row.pk, "lost": lost}
        note(None, CHANGED, actor=actor, data=said)
    return row


def check(**_: Any) -> list[CheckMessage]:
    """A key that is given and cannot be read stops the start."""
    try:
        if settings.HITL_RECORD_KEY:
            own()
    except BadKey as error:
        return [Error(str(error), hint="docs/record.md says how to give one.", id="hitlchat.record.E001")]
    return []


def _add(public: str, number: int, endorsement: str = "") -> RecordKey:
    try:
        with transaction.atomic():
            row = RecordKey(id=fingerprint(public), public=public, number=number, endorsement=endorsement)
            row.save(force_insert=True)
    except IntegrityError:
        # Another process was first.
        known = current()
        if known is None:
            raise
        return known
    return row


def _given(text: str) -> Ed25519PrivateKey:
    if text.startswith("-----BEGIN"):
        return _pem(text.encode(), "HITL_RECORD_KEY")
    if len(text) < 4096 and Path(text).is_file():
        return _pem(Path(text).read_bytes(), text)
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32:
        raise BadKey(f"HITL_RECORD_KEY is no key, and no file that is there; {EXPECTED}.")
    return Ed25519PrivateKey.from_private_bytes(raw)


def _pem(data: bytes, where: str) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadKey(f"{where} holds no key that can be read; {EXPECTED}.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(f"{where} holds a key of another kind; {EXPECTED}.")
    return key


def put_in_place() -> None:
    """After `rotate` into the data folder: the new key takes the place of the old one, which is kept beside it."""
    fresh = file().with_name("record_key.new")
    if file().exists():
        old = file().with_name(f"record_key.{(own_fingerprint() or '')[:16]}")
        file().replace(old)
    fresh.replace(file())
