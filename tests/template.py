"""The SQLite database that tests begin with: migrated once for each state of the migrations, and copied from then on.

`make clean` removes it. What handlers of `post_migrate` write is brought up to date in each copy, by a migration that
has nothing left to do.
"""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from django.db import connection

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / ".pytest_cache" / "database"
# What a migrated database depends on: a change of any of these has it made anew.
SOURCES: Final = (
    "hitlchat/*/migrations/*.py",
    "tools_studio/migrations/*.py",
    "hitlchat/base/append_only.py",
    "hitlchat/settings.py",
    "requirements-dev.lock",
)
BESIDE: Final = ("", "-wal", "-shm")
FROM_OUTSIDE: Final = ("DATABASE_URL", "REDIS_URL")


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool, django_db_modify_db_settings: None) -> Iterator[bool]:
    """Put the copy where pytest-django would make a test database; it finds nothing left to migrate."""
    if connection.vendor != "sqlite" or django_db_keepdb:
        yield django_db_keepdb
        return
    copy = connection.settings_dict["TEST"]["NAME"]
    _remove(copy)
    copy_to(Path(copy))
    yield True
    _remove(copy)


def copy_to(path: Path) -> None:
    """Copy the migrated database to `path`, and migrate it first where nobody has."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _alone():
        made = FOLDER / f"{digest(ROOT)}.sqlite3"
        if not made.exists():
            for old in FOLDER.glob("*.sqlite3"):
                old.unlink()
            _migrate(made)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, path)
        path.chmod(0o600)


def digest(root: Path) -> str:
    """Return what tells one state of the migrations from another."""
    total = hashlib.sha256()
    for path in sorted(path for pattern in SOURCES for path in root.glob(pattern)):
        total.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:24]


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other workers waiting, so that one of them makes it for all."""
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _migrate(made: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="hitlchat-template-") as folder:
        kept = {name: value for name, value in os.environ.items() if name not in FROM_OUTSIDE}
        command = [sys.executable, "manage.py", "migrate", "--no-input", "-v", "0"]
        subprocess.run(command, cwd=ROOT, env=kept | {"HITLCHAT_DATA": folder}, check=True, timeout=200)
        database = Path(folder) / "hitlchat.sqlite3"
        with closing(sqlite3.connect(database)) as there:
            there.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # In one step: a run that is killed leaves no half of one.
        shutil.copyfile(database, made.with_suffix(".new"))
        made.with_suffix(".new").replace(made)


def _remove(database: str) -> None:
    for ending in BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{database}{ending}").unlink()
