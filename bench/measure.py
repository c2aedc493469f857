"""Stopwatches, and what to make of many readings."""

import os
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection


@dataclass
class Stopwatch:
    """CPU of all threads of this process, time on the wall, and bytes written; may be paused."""

    cpu: float = 0.0
    wall: float = 0.0
    written: int = 0
    _from: tuple[int, float, float] = field(default=(0, 0.0, 0.0))

    def __enter__(self) -> "Stopwatch":
        self._from = (bytes_written(), time.perf_counter(), time.process_time())
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu += time.process_time() - self._from[2]
        self.wall += time.perf_counter() - self._from[1]
        self.written += bytes_written() - self._from[0]


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def percentile(values: Iterable[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def bytes_written() -> int:
    """By this process to files, as the kernel counts them (SQLite); by the database to its log (PostgreSQL)."""
    if connection.vendor == "postgresql":
        return _wal_position()
    io = Path("/proc/self/io")
    if not io.exists():
        return 0
    return int(io.read_text(encoding="ascii").split("wchar: ")[1].split()[0])


def _wal_position() -> int:
    row = _aside().execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])


@cache
def _aside() -> psycopg.Connection:
    """A connection of its own, since Django's may not be used from an event loop. Ends with the process."""
    return psycopg.connect(settings.DATABASE_URL, autocommit=True)


def database_bytes() -> int:
    """What the stored rows and their indexes take."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
        figures = []
        for name in ("page_count", "freelist_count", "page_size"):
            cursor.execute(f"PRAGMA {name}")
            figures.append(int(cursor.fetchone()[0]))
        pages, free, size = figures
        return (pages - free) * size


def rss(pid: int) -> int:
    """Resident memory of a process, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def cpu(pid: int) -> float:
    """What a process, with all its threads, has used so far, in seconds; to a hundredth."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
