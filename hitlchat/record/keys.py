"""The key that the record is sealed with: made on the first start and kept in the data folder, or given.

HITL_RECORD_KEY is the path of a file, or the key itself: PEM (PKCS #8), or its 32 bytes in Base64. All processes on one
database need the same one: the record knows which key is its own, and takes seals from no other.
"""

import base64
import binascii
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db import IntegrityError, transaction
from django.utils.translation import gettext_noop

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import RecordKey
from hitlchat.gate.transition import note
from hitlchat.record.proofs import KEY, endorsed, fingerprint, public_of, sign

CHANGED = "record.key_changed"
EXPECTED = gettext_noop("expected the path of a PEM file, or an Ed25519 private key as PEM or as 32 bytes in Base64")


class BadKey(ValueError):
    """No key is usable; the message says where it was looked for."""


class OtherKey(Exception):
    """The record is sealed with another key than this process has."""


def file() -> Path:
    return Path(settings.DATA_DIR) / "record_key"


def own() -> Ed25519PrivateKey:
    """Return this process's key, made now if none was given and none is there. Raises: BadKey."""
    given = settings.HITL_RECORD_KEY
    if not given:
        if not file().exists():
            _write(file(), Ed25519PrivateKey.generate())
        return _pem(file().read_bytes(), str(file()))
    if given.startswith("-----BEGIN"):
        return _pem(given.encode(), "HITL_RECORD_KEY")
    if len(given) < 4096 and Path(given).is_file():
        return _pem(Path(given).read_bytes(), given)
    try:
        raw = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32:
        raise BadKey(f"HITL_RECORD_KEY is neither a key nor an existing file; {EXPECTED}.")
    return Ed25519PrivateKey.from_private_bytes(raw)


def own_fingerprint() -> str | None:
    """Return the fingerprint of this process's key; None if it has none, and then none is made."""
    if not settings.HITL_RECORD_KEY and not file().exists():
        return None
    return fingerprint(public_of(own()))


@contextmanager
def private_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """Write `path` for its owner only, whole or not at all. `replace`: else one that is there by then stays."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as handle:
            yield handle
        if replace:
            draft.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def current() -> RecordKey | None:
    """The key that the record is sealed with now."""
    return RecordKey.objects.order_by("-number").first()


def enrolled(key: Ed25519PrivateKey) -> RecordKey:
    """The row of `key`, which becomes the record's if there was none. OtherKey."""
    public = public_of(key)
    row = current() or _add(public, 1)
    if row.public != public:
        raise OtherKey(
            f"The record is sealed with the key {row.pk[:16]}…, but this process has "
            f"{fingerprint(public)[:16]}…, so it seals nothing. Give all processes on one database the "
            "same key (HITL_RECORD_KEY), or change the record's key with “manage.py audit rotate”."
        )
    return row


def rotate(to: Path, actor: Actor, *, lost: bool = False) -> RecordKey:
    """Make a new key in the new file `to`, and have the record sealed with it from now on; the one before vouches for
    it, unless that is `lost`. BadKey, OtherKey; FileExistsError: nothing was changed.
    """
    if to.exists():
        raise FileExistsError(f"{to} already exists. Name a new file.")
    before, endorsement = current(), ""
    made = Ed25519PrivateKey.generate()
    public = public_of(made)
    if before is not None and not lost:
        old = own()
        enrolled(old)
        endorsement = sign(old, KEY, endorsed(public, before.pk))
    # Before the record names it as the key: without the file nothing could be sealed any more.
    _write(to, made)
    with transaction.atomic():
        row = _add(public, before.number + 1 if before else 1, endorsement)
        data = {"before": before.pk if before else None, "after": row.pk, "lost": lost}
        note(None, CHANGED, actor=actor, data=data)
    return row


def put_in_place() -> None:
    """Put the new key in the place of the old one, which is kept beside it, after `rotate` into the data folder."""
    fresh = file().with_name("record_key.new")
    if file().exists():
        old = file().with_name(f"record_key.{(own_fingerprint() or '')[:16]}")
        file().replace(old)
    fresh.replace(file())


def check(**_: Any) -> list[CheckMessage]:
    """A key that is given and cannot be read stops the start."""
    try:
        if settings.HITL_RECORD_KEY:
            own()
    except BadKey as error:
        return [Error(str(error), hint="See docs/record.md for how to set one.", id="hitlchat.record.E001")]
    return []


def _write(path: Path, key: Ed25519PrivateKey) -> None:
    with private_file(path, replace=False) as handle:
        handle.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _add(public: str, number: int, endorsement: str = "") -> RecordKey:
    try:
        with transaction.atomic():
            row = RecordKey(id=fingerprint(public), public=public, number=number, endorsement=endorsement)
            row.save(force_insert=True)
    except IntegrityError:
        # Another process was first.
        winner = current()
        if winner is None:
            raise
        return winner
    return row


def _pem(data: bytes, where: str) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadKey(f"{where} contains no readable key; {EXPECTED}.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey(f"{where} contains a key of another kind; {EXPECTED}.")
    return key
