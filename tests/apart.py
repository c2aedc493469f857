"""Each worker of pytest-xdist works on its own: a data folder and a Redis database that no other worker uses.

Loaded by name before all others and before Django's settings are read (`-p tests.apart` in pyproject.toml). The
databases are told apart by pytest-django, which appends the worker's name, and ports are whatever the machine has free.

Also keeps the garbage collector still until all tests are collected, of which it would find nothing to take away.
"""

import gc
import os
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

# Objects that come before garbage is looked for: with Python's 700, that takes a twentieth of the tests' time.
AT_A_TIME: Final = 50_000
WORKER: Final = os.environ.get("PYTEST_XDIST_WORKER", "")
# Removed when the worker ends, with everything that its tests left in it.
_folder: Final = tempfile.TemporaryDirectory(prefix="hitlchat-worker-") if WORKER else None


def redis_database(url: str, worker: str) -> str:
    """Return the address of the Redis database of this worker: gw0 has that of the run, the others the next ones."""
    there = urlsplit(url)
    first = int(there.path.strip("/") or 0)
    return there._replace(path=f"/{first + int(worker.removeprefix('gw'))}").geturl()


if _folder is not None:
    os.environ["HITLCHAT_DATA"] = str(Path(_folder.name) / "var")
    if address := os.environ.get("REDIS_URL"):
        os.environ["REDIS_URL"] = redis_database(address, WORKER)

# Not the one in the folder of whoever develops.
os.environ["HITLCHAT_ENV"] = os.devnull

gc.disable()


def pytest_collection_finish() -> None:
    """Begin to collect garbage, without ever again looking at modules and tests."""
    gc.freeze()
    gc.set_threshold(AT_A_TIME)
    gc.enable()
