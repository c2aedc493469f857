"""From one open folder to what is below it, name by name, so that nothing that is swapped meanwhile leads outside."""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tools_studio.filing.paths import Parts

MOST_LINKS = 8
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NOT_FOLLOWED = "it is a link, and that is not followed"
# Not to be kept waiting by a pipe that nobody writes to.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Outside(Exception):
    """The path leads out of the folder, or over a link where none is followed; the message says so."""


@contextmanager
def below(top: int, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder `parts` below the folder `top`, over no link. OSError: there is none.

    With `make` what is missing is created.
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
    """`parts` with every link replaced by what it leads to. Outside; FileNotFoundError: there is no such thing."""
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
    """Where a link leads; None if it is none."""
    with below(top, folder) as parent:
        try:
            return os.readlink(name, dir_fd=parent)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return None
            raise


def status(parent: int, name: str) -> os.stat_result | None:
    """Of the thing itself, also if it is a link; None if there is nothing."""
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    return None


def content(parent: int, name: str, most: int) -> bytes:
    """What a regular file holds. ValueError: it is none, or larger than `most`. OSError."""
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
    """Outside: it is a link. ValueError: it is no regular file."""
    if stat.S_ISLNK(found.st_mode):
        raise Outside(NOT_FOLLOWED)
    if stat.S_ISDIR(found.st_mode):
        raise ValueError("it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no regular file")
