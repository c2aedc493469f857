"""Bytes of attachments below the data folder, each file named by its SHA-256, for this user alone.

Who stores a file holds the lock together with others until its row is there; who removes one holds it alone.
"""

import fcntl
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils.translation import gettext as _

from hitlchat.base.problems import Problem

NEW: Final = ".new-"
# What a process that died has begun to write.
STALE_SECONDS: Final = 3600

logger = logging.getLogger(__name__)


class NoRoom(Problem):
    status = 507


def place(digest: str) -> Path:
    return Path(settings.ATTACHMENTS_DIR) / digest[:2] / digest


def write(data: bytes) -> str:
    """Store the bytes and return their digest; within `storing`. Raises: NoRoom."""
    digest = hashlib.sha256(data).hexdigest()
    at = place(digest)
    if read(digest) == data:
        return digest
    try:
        at.parent.mkdir(mode=0o700, exist_ok=True)
        new = at.with_name(f"{NEW}{secrets.token_hex(8)}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.rename(at)
    except OSError as error:
        logger.warning("An attachment could not be stored: %s", error)
        raise NoRoom(_("The server cannot store files right now. See its log for the reason.")) from error
    return digest


def read(digest: str) -> bytes | None:
    """Return the bytes; None if they are not there, or not as they were."""
    try:
        data = place(digest).read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == digest else None


def remove(digests: Collection[str]) -> None:
    """Remove these files; within `removing`, that no row names them any more."""
    for digest in digests:
        with suppress(OSError):
            place(digest).unlink()


def everything() -> Iterator[list[str]]:
    """Yield the digests of all files, a folder at a time; what was only begun long ago is removed on the way."""
    for folder in sorted(Path(settings.ATTACHMENTS_DIR).glob("[0-9a-f][0-9a-f]")):
        names = [path.name for path in folder.iterdir()]
        for name in names:
            if name.startswith(NEW):
                with suppress(OSError):
                    if time.time() - (folder / name).stat().st_mtime > STALE_SECONDS:
                        (folder / name).unlink()
        yield [name for name in names if not name.startswith(NEW)]


@contextmanager
def _locked(how: int) -> Iterator[None]:
    folder = Path(settings.ATTACHMENTS_DIR)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        logger.warning("The attachments folder cannot be used: %s", error)
        raise NoRoom(_("The server cannot store files right now. See its log for the reason.")) from error
    try:
        fcntl.flock(lock, how)
        yield
    finally:
        os.close(lock)


# Keeps what is written within from being removed before its row is there.
storing = partial(_locked, fcntl.LOCK_SH)
# Has nobody store anything within.
removing = partial(_locked, fcntl.LOCK_EX)
