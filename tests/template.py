"""The database that tests begin with: migrated once for each state of the migrations, and copied from then on.

`make clean` removes that of SQLite; PostgreSQL keeps its own until there is a newer one. What handlers of
`post_migrate` write is brought up to date in each copy, by a migration that has nothing left to do.
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

import psycopg
import pytest
from django.conf import settings
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
ON_POSTGRES: Final = "hitlchat_template_"
FROM_OUTSIDE: Final = ("DATABASE_URL", "REDIS_URL")


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool, django_db_modify_db_settings: None) -> Iterator[bool]:
    """Put the copy where pytest-django would make a test database; it finds nothing left to migrate."""
    if django_db_keepdb:
        yield django_db_keepdb
        return
    if connection.vendor == "postgresql":
        name = connection.creation._get_test_db_name()  # type: ignore[attr-defined]
        postgres(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        postgres(f'CREATE DATABASE "{name}" TEMPLATE "{on_postgres()}"')
        yield True
        postgres(f'DROP DATABASE "{name}" WITH (FORCE)')
        return
    copy = connection.settings_dict["TEST"]["NAME"]
    _remove(copy)
    copy_to(Path(copy))
    yield True
    _remove(copy)


def copy_to(path: Path) -> None:
    """Copy the migrated database to `path`, and migrate it first where nobody has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(on_sqlite(), path)
    path.chmod(0o600)


def on_sqlite() -> Path:
    """Return the migrated database, and migrate it first where nobody has."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _alone():
        made = FOLDER / f"{digest(ROOT)}.sqlite3"
        if not made.exists():
            for old in FOLDER.glob("*.sqlite3"):
                old.unlink()
            _migrate(made)
    return made


def on_postgres() -> str:
    """Return the name of the migrated database, and migrate it first where nobody has; empty on SQLite."""
    if connection.vendor != "postgresql":
        return ""
    name, server = ON_POSTGRES + digest(ROOT), settings.DATABASE_URL.rpartition("/")[0]
    with psycopg.connect(f"{server}/postgres", autocommit=True, connect_timeout=5) as there:
        # Other workers wait, so that one of them makes it for all. The lock ends with the connection.
        there.execute("SELECT pg_advisory_lock(hashtext(%s))", [ON_POSTGRES])
        rows = there.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [ON_POSTGRES]).fetchall()
        if (name,) not in rows:
            for (old,) in rows:
                there.execute(f'DROP DATABASE "{old}" WITH (FORCE)'.encode())
            there.execute(f'CREATE DATABASE "{name}.new"'.encode())
            with tempfile.TemporaryDirectory(prefix="hitlchat-template-") as folder:
                _run_migrate(HITLCHAT_DATA=folder, DATABASE_URL=f"{server}/{name}.new")
            # In one step: a run that is killed leaves no half of one.
            there.execute(f'ALTER DATABASE "{name}.new" RENAME TO "{name}"'.encode())
    return name


def postgres(statement: str) -> None:
    """Run a statement at the server of the test run, in no transaction."""
    maintenance = settings.DATABASE_URL.rpartition("/")[0] + "/postgres"
    with psycopg.connect(maintenance, autocommit=True, connect_timeout=5) as there:
        there.execute(statement.encode())


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
        _run_migrate(HITLCHAT_DATA=folder)
        database = Path(folder) / "hitlchat.sqlite3"
        with closing(sqlite3.connect(database)) as there:
            there.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        # In one step: a run that is killed leaves no half of one.
        shutil.copyfile(database, made.with_suffix(".new"))
        made.with_suffix(".new").replace(made)


def _run_migrate(**environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in FROM_OUTSIDE}
    command = [sys.executable, "manage.py", "migrate", "--no-input", "-v", "0"]
    subprocess.run(command, cwd=ROOT, env=kept | environment, check=True, timeout=200)


def _remove(database: str) -> None:
    for ending in BESIDE:
        with suppress(FileNotFoundError):
            Path(f"{database}{ending}").unlink()


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "hitlchat.settings"
    on_postgres() or on_sqlite()
