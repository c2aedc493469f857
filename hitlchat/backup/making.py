"""Making a backup: the data folder's files and the database as they are at one moment, beside a running server."""

import os
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal, cast

from django.conf import settings
from django.db import connection
from django.utils import timezone

from hitlchat.backup import NotEmpty, Unfit, databases, keeping
from hitlchat.backup.archive import FORMAT, MANIFEST, Manifest, Writer, written
from hitlchat.backup.databases import Snapshot
from hitlchat.base import scratch
from hitlchat.health import too_new
from hitlchat.record.keys import private_file
from hitlchat.secrets import sealing

# How often the database is read again where a file of it was removed just before.
ATTEMPTS: Final = 3
PURPOSE: Final = "backup"


@dataclass(frozen=True)
class Made:
    """What was written, in how many bytes. `others`: tables that are not in it; `left_out`: links and the like below
    the data folder; `missing`: attachments without a file.
    """

    manifest: Manifest
    files: int
    others: list[str]
    left_out: int = 0
    missing: int = 0
    size: int = 0


def make(to: Path, passphrase: str | None, *, overwrite: bool = False) -> Made:
    """Write a backup to the file `to`, for its owner only, whole or not at all; encrypted if there is a passphrase.

    Raises: NotEmpty, Unfit, Damaged; OSError
    """
    if to.exists() and not overwrite:
        raise NotEmpty(f"{to} already exists. Name a new file, or pass --overwrite.")
    if databases.is_empty():
        raise Unfit("The database is empty, so there is nothing to back up. Is HITLCHAT_DATA or DATABASE_URL right?")
    scratch.sweep(settings.DATA_DIR)
    folder = scratch.make("backup", settings.DATA_DIR)
    try:
        with private_file(to, replace=True) as file:
            with written(file, passphrase) as archive:
                made = _gather(folder.path, archive)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
    finally:
        folder.remove()
    sync(to.parent)
    return replace(made, size=size)


@cache
def version() -> str:
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def sync(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _gather(folder: Path, archive: Writer) -> Made:
    data = folder / keeping.FOLDER
    data.mkdir(mode=0o700)
    for attempt in range(1, ATTEMPTS + 1):
        # Before: what the mark names must be in the database, and what is removed meanwhile may be needed. After: what
        # has come meanwhile.
        keeping.link(data)
        with databases.snapshot(folder) as snapshot:
            left_out = keeping.link(data)
            missing = snapshot.attachments - {path.name for path in (data / keeping.ATTACHMENTS).glob("??/*")}
            if not missing or attempt == ATTEMPTS:
                return replace(_write(archive, snapshot, data), left_out=left_out, missing=len(missing))
    raise AssertionError("the last attempt returns")


def _write(archive: Writer, snapshot: Snapshot, data: Path) -> Made:
    if sentence := too_new(snapshot.migrations):
        raise Unfit(sentence)
    manifest = Manifest(
        format=FORMAT,
        version=version(),
        made_at=timezone.now(),
        database=cast(Literal["sqlite", "postgresql"], connection.vendor),
        secret_key=sealing.fingerprint("", PURPOSE),
        migrations=sorted(snapshot.migrations),
        counts=snapshot.counts,
        columns=snapshot.columns,
        sequences=snapshot.sequences,
    )
    archive.add_bytes(MANIFEST, manifest.model_dump_json(indent=1).encode())
    files = [path for path in sorted(data.rglob("*")) if path.is_file()]
    for path in files:
        with path.open("rb") as file:
            archive.add(f"{keeping.FOLDER}/{path.relative_to(data)}", file, path.stat().st_size)
    snapshot.write(archive)
    return Made(manifest, len(files), snapshot.others)
