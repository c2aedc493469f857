"""The host functions behind `hitl.files`: one folder of text files, within its quota, by one at a time."""

import asyncio
import errno
import fcntl
import logging
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings

from hitlchat.sandbox import HostFunction
from tools_studio.capabilities import Files

LONGEST_NAME = 255
MOST_LEVELS = 16
# What a write begins under; it gets its real name when it is whole.
UNFINISHED = ".unfinished-"

Parts = tuple[str, ...]
MOST_LINKS = 8
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_FOLLOWED = "it is a link, and that is not followed"
# Not to be kept waiting by a pipe that nobody writes to.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MOST_ENTRIES = 1000
MOST_BYTES = 64 * 1024 * 1024
LOCK_SECONDS = 5.0
PAUSE_SECONDS = 0.01
LARGEST_FILE = 1024 * 1024
MOST_LISTED = 10_000
logger = logging.getLogger(__name__)
T = TypeVar("T")


def parts_of(path: object) -> Parts:
    """Return the parts of a path, at least one. Raises: TypeError, ValueError"""
    if not isinstance(path, str):
        raise TypeError("a path is a text such as notes/today.txt")
    if not path:
        raise ValueError("the path is empty: expected one such as notes/today.txt")
    if path.startswith("/"):
        raise ValueError(f"{_short(path)} is an absolute path: expected one such as notes/today.txt")
    parts = tuple(path.removesuffix("/").split("/"))
    if len(parts) > MOST_LEVELS:
        raise ValueError(f"{_short(path)} has {len(parts)} levels; at most {MOST_LEVELS} are possible")
    for name in parts:
        if wrong := _problem(name):
            raise ValueError(f"{_short(path)}: {wrong}")
    return parts


def _problem(name: str) -> str | None:
    if name in ("", "."):
        return "a name between two slashes is missing"
    if name == "..":
        return "a path cannot go up with .."
    if "\\" in name:
        return "names in a path are separated by / and contain no \\"
    if not name.isprintable():
        return "a name must not have control characters or invisible ones"
    if len(name.encode()) > LONGEST_NAME:
        return f"a name may have at most {LONGEST_NAME} bytes"
    if name.startswith(UNFINISHED):
        return f"names that begin with {UNFINISHED} are not for tools"
    return None


def _short(path: str) -> str:
    return repr(path if len(path) <= 80 else f"{path[:80]}…")


class Outside(Exception):
    """The path leads out of the folder, or over a link where none is followed; the message says so."""


@contextmanager
def below(top: int, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Open the folder `parts` below the folder `top`, following no link; with `make` missing ones are created.

    Raises: OSError
    """
    folder = os.dup(top)
    try:
        for name in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=folder)
            inner = os.open(name, FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def resolved(top: int, parts: Parts) -> Parts:
    """Return `parts` with every link resolved. Raises: Outside, FileNotFoundError"""
    done: list[str] = []
    ahead = deque(parts)
    links = 0
    while ahead:
        name = ahead.popleft()
        if name == "..":
            if not done:
                raise Outside("it is a link that leads out of the tool's folder")
            done.pop()
        elif name not in ("", "."):
            target = _link(top, done, name)
            if target is None:
                done.append(name)
                continue
            links += 1
            if target.startswith("/") or links > MOST_LINKS:
                raise Outside("it is a link that leads out of the tool's folder, or over too many others")
            ahead.extendleft(reversed(target.split("/")))
    return tuple(done)


def _link(top: int, folder: Sequence[str], name: str) -> str | None:
    """Return the target of a link; None if it is none."""
    with below(top, folder) as parent:
        try:
            return os.readlink(name, dir_fd=parent)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise


def status(parent: int, name: str) -> os.stat_result | None:
    """Return the status of an entry, of a link its own; None if there is none."""
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    return None


def content(parent: int, name: str, most: int) -> bytes:
    """Return the content of a regular file. Raises: OSError; ValueError, it is none, or larger than `most`"""
    # Looked at before: opening a device can do something.
    require_file(os.stat(name, dir_fd=parent, follow_symlinks=False))
    descriptor = os.open(name, FILE, dir_fd=parent)
    with os.fdopen(descriptor, "rb") as file:
        require_file(os.fstat(descriptor))
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it is larger than {most:,} bytes, the most that a tool can read")
    return data


def require_file(found: os.stat_result) -> None:
    """Require a regular file. Raises: Outside, it is a link; ValueError"""
    if stat.S_ISLNK(found.st_mode):
        raise Outside(NOT_FOLLOWED)
    if stat.S_ISDIR(found.st_mode):
        raise ValueError("it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a regular file")


def require_room(top: int, more_entries: int, more_bytes: int) -> None:
    """Require room in the folder, which the caller has locked. Raises: ValueError"""
    entries = size = 0
    # No further than the quota; what another process left unfinished is removed.
    for _, folders, files, folder in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        entries += len(folders) + len(files)
        for name in files:
            if name.startswith(UNFINISHED):
                os.unlink(name, dir_fd=folder)
                entries -= 1
            elif found := status(folder, name):
                size += found.st_size
        if entries > MOST_ENTRIES:
            break
    if entries + more_entries > MOST_ENTRIES:
        raise ValueError(f"the tool's folder is full: it can hold {MOST_ENTRIES:,} files and folders")
    if more_bytes > 0 and size + more_bytes > MOST_BYTES:
        raise ValueError(f"the tool's folder is full: it can hold {MOST_BYTES:,} bytes")


def seize(lock: int) -> None:
    """Lock the file, waiting while another process has it. Raises: TimeoutError"""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError(f"the tool's folder was busy for {LOCK_SECONDS:g} s") from None
            time.sleep(PAUSE_SECONDS)
        else:
            return


@dataclass(frozen=True)
class Folder:
    """The folder `name` below `base`. Its methods wait for the disk, so call them in a thread.

    Reading follows relative links within the folder; writing follows none. Raises: OSError, Outside, ValueError, whose
    words do not have the path
    """

    base: Path
    name: str

    def read(self, parts: Parts) -> str:
        with self._top() as top:
            real = resolved(top, parts)
            if not real:
                raise ValueError("it is a folder")
            with below(top, real[:-1]) as parent:
                data = content(parent, real[-1], LARGEST_FILE)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"it is not UTF-8 text: the byte at {error.start:,} is invalid") from None

    def listing(self, parts: Parts) -> list[str]:
        """Return sorted paths from the top; those of folders end with a slash."""
        prefix = "".join(f"{name}/" for name in parts)
        try:
            with self._top() as top, below(top, resolved(top, parts)) as folder:
                names = os.listdir(folder)  # noqa: PTH208 # by its descriptor
                if len(names) > MOST_LISTED:
                    raise ValueError(f"it holds {len(names):,} files; at most {MOST_LISTED:,} can be listed")
                reached = {name: self._reached(top, (*parts, name)) for name in names if _problem(name) is None}
        except FileNotFoundError:
            if parts:
                raise
            return []
        things = [(name, found) for name, found in reached.items() if found]
        return sorted(f"{prefix}{name}{'/' if stat.S_ISDIR(found.st_mode) else ''}" for name, found in things)

    def _reached(self, top: int, parts: Parts) -> os.stat_result | None:
        with suppress(OSError, Outside):
            return _found(top, parts)
        return None

    def info(self, parts: Parts) -> dict[str, Any] | None:
        try:
            with self._top() as top:
                found = _found(top, parts)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if found is None:
            return None
        folder = stat.S_ISDIR(found.st_mode)
        modified = datetime.fromtimestamp(int(found.st_mtime), UTC)
        return {"size": 0 if folder else found.st_size, "modified": modified, "is_folder": folder}

    def write(self, parts: Parts, text: str) -> None:
        with self._alone() as top:
            self._replace(top, parts, text.encode())

    def append(self, parts: Parts, text: str) -> None:
        with self._alone() as top:
            before = b""
            with suppress(FileNotFoundError), below(top, parts[:-1]) as parent:
                before = content(parent, parts[-1], LARGEST_FILE)
            self._replace(top, parts, before + text.encode())

    def delete(self, parts: Parts) -> bool:
        """Return whether there was such a file or empty folder."""
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
        """Open the folder, created if need be, with a lock against other writers."""
        with self._top(make=True) as top:
            path = self.base / f"{self.name}.lock"
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                seize(lock)
                yield top
            finally:
                os.close(lock)

    def _replace(self, top: int, parts: Parts, data: bytes) -> None:
        """Write the file in one step: it has all of `data`, or what it had before."""
        *parents, name = parts
        if len(data) > LARGEST_FILE:
            raise ValueError(f"it would have {len(data):,} bytes; a file can have {LARGEST_FILE:,}")
        missing, size = _way(top, parts)
        require_room(top, missing, len(data) - size)
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


def _found(top: int, parts: Parts) -> os.stat_result | None:
    real = resolved(top, parts)
    if not real:
        return os.fstat(top)
    with below(top, real[:-1]) as parent:
        found = status(parent, real[-1])
    return found if found and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)) else None


def _way(top: int, parts: Parts) -> tuple[int, int]:
    """Return how many parts of the path are missing, and the size of the file at its end."""
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


def grants(granted: Files | None) -> dict[str, HostFunction]:
    """Return the functions that the mode allows, by name.

    Paths are relative to the folder. Raises: ValueError; PermissionError for links that lead outside; TimeoutError.
    """
    if granted is None:
        return {}
    files = Folder(Path(settings.TOOL_FILES_DIR), granted.folder)

    async def read(path: str) -> str:
        return await _done("read", path, files.read, parts_of(path))

    async def list_(folder: str = "") -> list[str]:
        return await _done("list", folder, files.listing, parts_of(folder) if folder else ())

    async def info(path: str) -> dict[str, Any] | None:
        return await _done("info", path, files.info, parts_of(path))

    async def write(path: str, text: str) -> None:
        await _done("write", path, files.write, parts_of(path), _text(text))

    async def append(path: str, text: str) -> None:
        await _done("append", path, files.append, parts_of(path), _text(text))

    async def delete(path: str) -> bool:
        return await _done("delete", path, files.delete, parts_of(path))

    reading: dict[str, HostFunction] = {"files.read": read, "files.list": list_, "files.info": info}
    writing: dict[str, HostFunction] = {"files.write": write, "files.append": append, "files.delete": delete}
    return reading | writing if granted.mode == "write" else reading


async def _done(name: str, path: str, work: Callable[..., T], *args: Parts | str) -> T:
    """Return the result of `work`, done in a thread; its errors are raised in words for the tool."""
    try:
        return await asyncio.to_thread(work, *args)
    except Outside as error:
        raise PermissionError(f"files.{name}: {path!r}: {error}") from None
    except TimeoutError as error:
        raise TimeoutError(f"files.{name}: {error}") from None
    except ValueError as error:
        raise ValueError(f"files.{name}: {path!r}: {error}") from None
    except FileNotFoundError:
        raise ValueError(f"files.{name}: there is no {path!r}") from None
    except NotADirectoryError:
        raise ValueError(f"files.{name}: {path!r}: a part of it is no folder, or a link") from None
    except OSError as error:
        logger.warning("files.%s failed: %s", name, error.strerror)
        if error.errno == errno.ELOOP:
            raise PermissionError(f"files.{name}: {path!r}: it is a link, and that is not followed") from None
        raise ValueError(f"files.{name}: {path!r}: {os.strerror(error.errno or errno.EIO)}") from None


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError("files: the content must be a text")
    return text
