"""PostgreSQL, Redis and Chromium: where the tests find them, and what is said when they are not there.

A pytest plugin too, loaded by conftest.py: it skips what cannot run, and says so plainly at the end.
With TEST_REQUIRE_SERVICES=1 a missing one is an error instead, so that CI cannot pass by skipping.
"""

import getpass
import os
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import psycopg
import pytest
import redis
from django.db import connection

# How to start Chromium on a machine without a network: the switches stop it from looking up its maker's hosts.
CHROMIUM_ARGS: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    *(("--no-sandbox",) if os.geteuid() == 0 else ()),
)

MISSING: Final = {
    "PostgreSQL": "gate, agent, websocket and API tests ran on SQLite only. Set TEST_DATABASE_URL or start one.",
    "Redis": "gate, agent, websocket and API tests ran in one process only. Set TEST_REDIS_URL or start one.",
    "strace": "no power was cut. Install it to have that tried.",
    "Chromium": "browser tests did not run. `make chromium` installs one, CHROMIUM names one.",
}


class ServiceMissing(RuntimeError):
    """A server or program that TEST_REQUIRE_SERVICES=1 or an address in the environment promised is not there."""


@cache
def postgres_url() -> str | None:
    """A PostgreSQL in which databases may be created: TEST_DATABASE_URL, else one on its usual port, else None."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        if not _answers_postgres(url):
            raise ServiceMissing("TEST_DATABASE_URL names a PostgreSQL that lets nobody in, or create a database")
        return url
    people = ("postgres", "postgres:postgres", getpass.getuser())
    urls = (f"postgresql://{person}@127.0.0.1:5432/hitlchat" for person in people)
    return _found("PostgreSQL", next(filter(_answers_postgres, urls), None))


@cache
def redis_url() -> str | None:
    """A Redis: TEST_REDIS_URL, else the last four databases of one on its usual port, else None.

    It names the first of several databases: each worker takes one.
    """
    if url := os.environ.get("TEST_REDIS_URL"):
        if not _answers_redis(url):
            raise ServiceMissing("TEST_REDIS_URL names a Redis that does not answer")
        return url
    url = "redis://127.0.0.1:6379/12"
    return _found("Redis", url if _answers_redis(url) else None)


@cache
def chromium_path() -> str | None:
    """A Chromium to start: CHROMIUM, else one on the path, else Playwright's own, else None."""
    return _found("Chromium", _find_chromium())


@cache
def strace_path() -> str | None:
    """A strace, which tells what a process waited for to be on the disk."""
    return _found("strace", shutil.which("strace"))


def _found(name: str, place: str | None) -> str | None:
    if place is None and os.environ.get("TEST_REQUIRE_SERVICES") == "1":
        raise ServiceMissing(f"{name} is not here, and TEST_REQUIRE_SERVICES=1 forbids to go on without it")
    return place


def _answers_postgres(url: str) -> bool:
    maintenance = url.rpartition("/")[0] + "/postgres"
    may_create = "SELECT rolcreatedb OR rolsuper FROM pg_roles WHERE rolname = current_user"
    try:
        with psycopg.connect(maintenance, connect_timeout=3) as there:
            row = there.execute(may_create).fetchone()
    except psycopg.OperationalError:
        return False
    return bool(row and row[0])


def _answers_redis(url: str) -> bool:
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as there:
            return bool(there.ping())
    except redis.RedisError:
        return False


def _find_chromium() -> str | None:
    if named := os.environ.get("CHROMIUM"):
        return named
    # The first is the engine without the windows around it, which cost as much again.
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    if found := next(filter(None, map(shutil.which, names)), None):
        return found
    places = (
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH", ""),
        Path.home() / ".cache/ms-playwright",
        Path.home() / "Library/Caches/ms-playwright",
    )
    binaries = ("chrome-linux*/chrome", "chrome-mac*/*.app/Contents/MacOS/*")
    builds = (path for place in places if place for binary in binaries for path in _builds(Path(place), binary))
    return next((str(path) for path in builds if os.access(path, os.X_OK)), None)


def _builds(place: Path, binary: str) -> list[Path]:
    return sorted(place.glob(f"chromium-*/{binary}"), reverse=True)


def missing() -> list[str]:
    """A line for each service that was looked for in vain, saying what that means."""
    found = {"PostgreSQL": postgres_url(), "Redis": redis_url(), "Chromium": chromium_path(), "strace": strace_path()}
    return [f"{name}: not found, {MISSING[name]}" for name, place in found.items() if place is None]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_postgres = connection.vendor == "postgresql"
    for item in items:
        if item.get_closest_marker("postgres") and not on_postgres:
            item.add_marker(pytest.mark.skip(reason="needs PostgreSQL (DATABASE_URL)"))
        if item.get_closest_marker("browser") and chromium_path() is None:
            item.add_marker(pytest.mark.skip(reason="needs Chromium"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = missing()
    if lines:
        terminalreporter.section("not tested", yellow=True)
        for line in lines:
            terminalreporter.line(line, yellow=True)


def main() -> int:
    """`python -m tests.services chromium`: where is it? Silence and 1 if nowhere."""
    finders: dict[str, Callable[[], str | None]]
    finders = {"chromium": _find_chromium, "postgres": postgres_url, "redis": redis_url}
    found = finders[sys.argv[1]]()
    if found:
        sys.stdout.write(f"{found}\n")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
