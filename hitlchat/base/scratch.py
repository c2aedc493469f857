"""Temporary folders that are swept once their owner is dead.

The owner holds an exclusive `flock` on the folder itself for as long as it lives; no program that it starts inherits
that. A folder gets its final name only when it is locked, so a folder of that name that can be locked is nobody's.
"""

import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NAMED: Final = re.compile(r"hitlchat-[a-z]+-locked-[0-9a-f]{16}")


@dataclass(frozen=True)
class Scratch:
    """A folder for this process alone."""

    path: Path
    _lock: int | None

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)


def make(kind: str, inside: Path | None = None) -> Scratch:
    """Make an empty folder, private to this user. One that cannot be locked keeps a name that is never swept.

    `inside`: a folder for it, else the system's for temporary files.

    Raises: PermissionError if it is not this user's alone.
    """
    made = Path(tempfile.mkdtemp(prefix=f"hitlchat-{kind}-new-", dir=inside))
    try:
        lock = _locked(made)
    except PermissionError:
        raise
    except OSError:
        return Scratch(made, None)
    return Scratch(made.rename(made.with_name(f"hitlchat-{kind}-locked-{secrets.token_hex(8)}")), lock)


def sweep(inside: Path | None = None) -> list[Path]:
    """Remove this user's folders whose owner is dead, and return them."""
    with os.scandir(inside or tempfile.gettempdir()) as entries:
        found = [Path(entry.path) for entry in entries if NAMED.fullmatch(entry.name)]
    for path in found:
        with suppress(OSError):
            Scratch(path, _locked(path)).remove()
    return [path for path in found if not os.path.lexists(path)]


def _locked(path: Path) -> int:
    """Lock the folder without waiting; a symbolic link or another user's folder counts as taken.

    Raises: OSError
    """
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with ExitStack() as failed:
        failed.callback(os.close, opened)
        status = os.fstat(opened)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
            raise PermissionError("the folder is not this user's alone")
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        failed.pop_all()
    return opened
