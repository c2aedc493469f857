"""The file of a backup: a tar archive in gzip, encrypted or not, which `tar` and `sha256sum --check` can read as well.

`manifest.json` comes first, so that what does not fit is refused early; then `data/` and `database/`; last `SHA256SUMS`
with the hash of every other member, without which a backup is not whole.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Final, Literal

from pydantic import BaseModel, ValidationError

from hitlchat.backup import BadPassphrase, Damaged, Unfit, encryption
from hitlchat.backup.encryption import Opened, Sealed

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
SUMS: Final = "SHA256SUMS"
FOLDERS: Final = ("data", "database")
AT_A_TIME: Final = 2**18
MOST_MANIFEST: Final = 2**26
BROKEN: Final = "The file is cut, altered, or not a backup of hitlchat."
# Where a member goes, by its name; None: nowhere.
Sink = Callable[[str], BinaryIO | None]


class Sequence(BaseModel):
    """Where the ids of a table on PostgreSQL go on."""

    table: str
    column: str
    last: int
    is_used: bool


class Manifest(BaseModel):
    """What a backup is of. `secret_key`: a fingerprint; `counts`: rows by table; the last two of PostgreSQL only."""

    format: int
    version: str
    made_at: datetime
    database: Literal["sqlite", "postgresql"]
    secret_key: str
    migrations: list[tuple[str, str]]
    counts: dict[str, int]
    columns: dict[str, list[str]]
    sequences: list[Sequence]


class Writer:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar, self._sums = tar, list[str]()

    def add(self, name: str, file: BinaryIO, size: int) -> None:
        """Add the next `size` bytes of `file`. Raises: OSError if it has fewer."""
        hashed = _Hashed(file)
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = size, 0o600
        self._tar.addfile(entry, hashed)
        # It would keep them all.
        self._tar.members = []  # type: ignore[attr-defined]
        self._sums.append(f"{hashed.sum.hexdigest()}  {name}\n")

    def add_bytes(self, name: str, data: bytes) -> None:
        self.add(name, io.BytesIO(data), len(data))

    def end(self) -> None:
        self.add_bytes(SUMS, "".join(self._sums).encode(errors="surrogateescape"))


@contextmanager
def written(file: BinaryIO, passphrase: str | None) -> Iterator[Writer]:
    """Write an archive to `file`; whole only if no exception is raised within."""
    outer = Sealed(file, passphrase) if passphrase is not None else None
    inner: Any = outer or file
    with gzip.GzipFile("", "wb", 6, inner) as packed, tarfile.open(fileobj=packed, mode="w|", encoding="utf-8") as tar:
        writer = Writer(tar)
        yield writer
        writer.end()
    if outer is not None:
        outer.end()


def is_encrypted(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(encryption.MAGIC)) == encryption.MAGIC


def read(path: Path, passphrase: str | None, fits: Callable[[Manifest], None], sink: Sink) -> Manifest:
    """Read a whole backup, each member into what `sink` returns for it, and compare all hashes.

    `fits` is called with the manifest before any other member is read, and raises if the rest is not to be.

    Raises: Damaged, BadPassphrase, Unfit; OSError
    """
    with path.open("rb") as file:
        plain: BinaryIO = file
        if is_encrypted(path):
            if passphrase is None:
                raise BadPassphrase("The backup is encrypted. Name the file of its passphrase with --passphrase-file.")
            file.seek(len(encryption.MAGIC))
            plain = io.BufferedReader(Opened(file, passphrase), AT_A_TIME)
        try:
            return _read(plain, fits, sink)
        except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise Damaged(BROKEN) from error


def _read(file: BinaryIO, fits: Callable[[Manifest], None], sink: Sink) -> Manifest:
    manifest: Manifest | None = None
    sums: dict[str, str] = {}
    stated: bytes | None = None
    with gzip.GzipFile(fileobj=file, mode="rb") as packed:
        with tarfile.open(fileobj=packed, mode="r|", encoding="utf-8") as tar:
            for entry in tar:
                content = _content(tar, entry, sums)
                if stated is not None or (manifest is None) != (entry.name == MANIFEST):
                    raise Damaged(BROKEN)
                if entry.name == SUMS:
                    stated = content.read()
                elif manifest is None:
                    manifest = _manifest(content.read(MOST_MANIFEST))
                    fits(manifest)
                else:
                    _copy(content, sink(entry.name))
                sums[entry.name] = content.sum.hexdigest()
                tar.members = []  # type: ignore[attr-defined]
        # To its very end, where its checksum is.
        while packed.read(AT_A_TIME):
            continue
    own = "".join(f"{digest}  {name}\n" for name, digest in sums.items() if name != SUMS)
    if manifest is None or stated != own.encode(errors="surrogateescape"):
        raise Damaged(BROKEN)
    return manifest


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo, seen: dict[str, str]) -> "_Hashed":
    """Return a member to be read, which may be nothing but a file with a new name in one of our folders."""
    content = tar.extractfile(entry) if entry.isreg() else None
    parts = PurePosixPath(entry.name).parts
    is_ours = entry.name in (MANIFEST, SUMS) or (len(parts) > 1 and parts[0] in FOLDERS)
    if content is None or not is_ours or "/".join(parts) != entry.name or ".." in parts or entry.name in seen:
        raise Damaged(BROKEN)
    return _Hashed(content)


def _manifest(data: bytes) -> Manifest:
    try:
        if (found := json.loads(data)["format"]) != FORMAT:
            raise Unfit(f"The backup has format {found}; this version of hitlchat reads format {FORMAT}.")
        return Manifest.model_validate_json(data)
    except (ValidationError, ValueError, KeyError, TypeError) as error:
        raise Damaged(BROKEN) from error


def _copy(content: "_Hashed", to: BinaryIO | None) -> None:
    while data := content.read(AT_A_TIME):
        if to is not None:
            to.write(data)
    if to is not None:
        to.flush()
        os.fsync(to.fileno())
        to.close()


class _Hashed(io.RawIOBase):
    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.sum = file, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self.sum.update(data)
        return data
