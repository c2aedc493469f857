"""One folder of tools' files: what can be done there, within its quota, by one at a time."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools_studio.filing.paths import UNFINISHED, Parts, is_name
from tools_studio.filing.quota import require_room, seize
from tools_studio.filing.walking import NOT_FOLLOWED, Outside, below, content, require_file, resolved, status

LARGEST_FILE = 1024 * 1024
MOST_LISTED = 10_000


@dataclass(frozen=True)
class Folder:
    """The folder `name` below `base`. Everything here waits for the disk: to be called in a thread.

    All methods raise OSError as the system does, Outside for links that are not followed, and ValueError, all in words
    without the path. Reading follows relative links within the folder; writing follows none.
    """

    base: Path
    name: str

    def read(self, parts: Parts) -> str:
        with self._top() as top:
            *parents, name = resolved(top, parts) or _no_file()
            with below(top, parents) as parent:
                return _text(content(parent, name, LARGEST_FILE))

    def listing(self, parts: Parts) -> list[str]:
        """Paths from the top, in order; those of folders end with a slash."""
        prefix = "".join(f"{name}/" for name in parts)
        try:
            with self._top() as top, below(top, resolved(top, parts)) as folder:
                names = os.listdir(folder)  # noqa: PTH208 # by its descriptor
                if len(names) > MOST_LISTED:
                    raise ValueError(f"it holds {len(names):,} files; at most {MOST_LISTED:,} can be listed")
                kinds = {name: self._kind(top, (*parts, name)) for name in names if is_name(name)}
        except FileNotFoundError:
            if parts:
                raise
            return []
        return sorted(f"{prefix}{name}{'/' if kind == 'folder' else ''}" for name, kind in kinds.items() if kind)

    def _kind(self, top: int, parts: Parts) -> str | None:
        try:
            found = _found(top, parts)
        except (OSError, Outside):
            return None
        return None if found is None else _kind_of(found)

    def info(self, parts: Parts) -> dict[str, Any] | None:
        try:
            with self._top() as top:
                found = _found(top, parts)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if found is None or _kind_of(found) is None:
            return None
        folder = _kind_of(found) == "folder"
        modified = datetime.fromtimestamp(int(found.st_mtime), UTC)
        return {"size": 0 if folder else found.st_size, "modified": modified, "is_folder": folder}

    def write(self, parts: Parts, text: str) -> None:
        with self._alone() as top:
            self._replace(top, parts, text.encode())

    def append(self, parts: Parts, text: str) -> None:
        with self._alone() as top:
            self._replace(top, parts, _standing(top, parts) + text.encode())

    def delete(self, parts: Parts) -> bool:
        """Whether there was such a file or empty folder."""
        *parents, name = parts
        if not (self.base / self.name).is_dir():
            return False
        try:
            with self._alone() as top, below(top, parents) as parent:
                return _remove(parent, name)
        except FileNotFoundError:
            return False

    @contextmanager
    def _top(self, *, make: bool = False) -> Iterator[int]:
        if make:
            self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        base = os.open(self.base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with below(base, [self.name], make=make) as top:
                yield top
        finally:
            os.close(base)

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """The folder, made if need be, while no other writes to it, in this process or another one."""
        with self._top(make=True) as top:
            path = self.base / f"{self.name}.lock"
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                seize(lock)
                yield top
            finally:
                os.close(lock)

    def _replace(self, top: int, parts: Parts, data: bytes) -> None:
        """All of `data` under that name, or what stood there before."""
        *parents, name = parts
        if len(data) > LARGEST_FILE:
            raise ValueError(f"it would have {len(data):,} bytes; a file can have {LARGEST_FILE:,}")
        missing, standing = _way(top, parts)
        require_room(top, missing, len(data) - standing)
        unfinished = f"{UNFINISHED}{secrets.token_hex(8)}"
        with below(top, parents, make=True) as parent:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(unfinished, flags, 0o600, dir_fd=parent), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError:
                if status(parent, unfinished):
                    os.unlink(unfinished, dir_fd=parent)
                raise


def _no_file() -> Parts:
    raise ValueError("it is a folder")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8: the byte at {error.start:,} does not fit") from None


def _found(top: int, parts: Parts) -> os.stat_result | None:
    real = resolved(top, parts)
    if not real:
        return os.fstat(top)
    with below(top, real[:-1]) as parent:
        return status(parent, real[-1])


def _kind_of(found: os.stat_result) -> str | None:
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(found.st_mode) else None


def _standing(top: int, parts: Parts) -> bytes:
    """What there is to append to."""
    try:
        with below(top, parts[:-1]) as parent:
            return content(parent, parts[-1], LARGEST_FILE)
    except FileNotFoundError:
        return b""


def _way(top: int, parts: Parts) -> tuple[int, int]:
    """How many of the names are still to be made, and how large the file is that stands there."""
    for depth in range(len(parts)):
        with below(top, parts[:depth]) as parent:
            found = status(parent, parts[depth])
        if found is None:
            return len(parts) - depth, 0
        if depth == len(parts) - 1:
            require_file(found)
            return 0, found.st_size
        if stat.S_ISLNK(found.st_mode):
            raise Outside(NOT_FOLLOWED)
    return 0, 0


def _remove(parent: int, name: str) -> bool:
    found = status(parent, name)
    if found is None:
        return False
    if not stat.S_ISDIR(found.st_mode):
        require_file(found)
        os.unlink(name, dir_fd=parent)
        return True
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise ValueError("it is a folder that is not empty") from None
        raise
    return True
