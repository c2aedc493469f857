"""What one folder of tools' files may hold, and that one at a time writes to it."""

import fcntl
import os
import time

from tools_studio.filing.paths import UNFINISHED
from tools_studio.filing.walking import status

MOST_ENTRIES = 1000
MOST_BYTES = 64 * 1024 * 1024
LOCK_SECONDS = 5.0
PAUSE_SECONDS = 0.01


def require_room(top: int, more_entries: int, more_bytes: int) -> None:
    """ValueError: the folder is full. Only whoever is alone may call it."""
    entries, size = _usage(top)
    if entries + more_entries > MOST_ENTRIES:
        raise ValueError(f"the tool's folder is full: it can hold {MOST_ENTRIES:,} files and folders")
    if more_bytes > 0 and size + more_bytes > MOST_BYTES:
        raise ValueError(f"the tool's folder is full: it can hold {MOST_BYTES:,} bytes")


def _usage(top: int) -> tuple[int, int]:
    """Entries and bytes, counted no further than the quota. Only whoever is alone may call it: what another process
    left unfinished is removed."""
    entries = size = 0
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
    return entries, size


def seize(lock: int) -> None:
    """TimeoutError: another one kept it for too long."""
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError(f"others kept the tool's folder busy for {LOCK_SECONDS:g} s") from None
            time.sleep(PAUSE_SECONDS)
        else:
            return
