"""Ports for servers of tests: each is one test's alone, also while its server is down between two starts.

The passes of `make test`, and their workers, start servers at the same time. A port that the system names is anybody's
again before the server listens on it, and whoever gets it then answers in that server's place.
"""

import secrets
import socket
from typing import Final

# Below those that systems give to connections.
FIRST, COUNT = 12_000, 18_000
TRIES: Final = 1_000

_held: list[socket.socket] = []


def free_port() -> int:
    """Return a port of this machine that nobody listens on, and that no other process of tests is given."""
    for _ in range(TRIES):
        port = FIRST + secrets.randbelow(COUNT)
        if _is_free(port) and (holder := _hold(port)) is not None:
            _held.append(holder)
            return port
    raise AssertionError(f"none of {TRIES} ports was free")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _hold(port: int) -> socket.socket | None:
    """Take a name that the system lets one process have at a time, and frees with the end of that process."""
    holder = socket.socket(socket.AF_UNIX)
    try:
        holder.bind(f"\0hitlchat-port-{port}")
    except OSError:
        holder.close()
        return None
    return holder
