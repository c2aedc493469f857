"""The power is cut at every moment: what was told to a person is still so, and no tool runs a second time.

What a process wrote and what it waited for is read from its system calls. A cut leaves of each file what was synced
last, and of what was written since any beginning, also half a page.
"""

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from hitlchat.gate import perform
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from tests import forks
from tests.architecture.source import ROOT
from tests.gate.asking import ask, say_yes, status
from tests.processes import Installation
from tests.services import strace_path

pytestmark = [
    pytest.mark.guarantee("gate:at-most-once"),
    pytest.mark.servers("what a killed process leaves is what was committed"),
]

CALLS: Final = "pwrite64,write,ftruncate,fsync,fdatasync,unlink"
LINE: Final = re.compile(r"[\d.]+ (\w+)\((.*)\) += (\d+)$")
FILE: Final = re.compile(r"\d+<([^>]*)>|\"([^\"]*)\"")
# What a database must say, from the moment on that its mark was made.
HOLDS: Final = {
    "ran": ("gate_toolcall", "status IN ('executing', 'succeeded')"),
    "approved": ("gate_toolcall", "status NOT IN ('waiting')"),
    "declined": ("gate_toolcall", "status = 'declined'"),
    "withdrawn": ("gate_toolcall", "status = 'withdrawn'"),
    "revoked": ("gate_grant", "\"end\" = 'revoked'"),
}


class Write(NamedTuple):
    file: str
    at: int
    data: bytes | None  # None: cut off there


class Cut(NamedTuple):
    """What a disk may hold after the power was cut, and the marks that were made before."""

    files: dict[str, bytes]
    marks: tuple[str, ...]


@dataclass
class Disk:
    synced: dict[str, bytes]
    pending: list[Write] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)

    def sync(self, file: str) -> None:
        for write in self.pending:
            if write.file == file:
                _apply(self.synced, write)
        self.pending = [write for write in self.pending if write.file != file]

    def cuts(self) -> Iterator[Cut]:
        """After each write that was not waited for, and in the middle of the next."""
        files, marks = dict(self.synced), tuple(self.marks)
        yield Cut(dict(files), marks)
        for write in self.pending:
            if write.data:
                half = dict(files)
                _apply(half, write._replace(data=write.data[: len(write.data) // 2]))
                yield Cut(half, marks)
            _apply(files, write)
            yield Cut(dict(files), marks)


def _apply(files: dict[str, bytes], write: Write) -> None:
    before = files.get(write.file, b"")
    if write.data is None:
        files[write.file] = before[: write.at].ljust(write.at, b"\0")
    else:
        end = write.at + len(write.data)
        files[write.file] = before[: write.at].ljust(write.at, b"\0") + write.data + before[end:]


def _literal(text: str) -> str:
    return bytes.fromhex(text.replace("\\x", "")).decode("latin-1")


def _cuts(disk: Disk, trace: list[str], effects: Path) -> Iterator[Cut]:
    """Every cut from the first mark on: at each mark, and before each wait for the disk."""
    for line in trace:
        if (found := LINE.match(line)) is None or (named := FILE.search(found[2])) is None:
            continue
        call, file = found[1], _literal(named[1] or named[2])
        if file == str(effects):
            disk.marks.extend(_literal(found[2].split('"')[1]).split("\n")[:-1])
            yield from disk.cuts()
        elif file in disk.synced or file.endswith("-wal"):
            if call in ("fsync", "fdatasync"):
                yield from disk.cuts() if disk.marks else ()
                disk.sync(file)
            else:
                disk.pending.append(_write(call, file, found[2]))
    yield from disk.cuts()


def _write(call: str, file: str, arguments: str) -> Write:
    if call == "unlink":
        return Write(file, 0, None)
    if call == "ftruncate":
        return Write(file, int(arguments.rpartition(", ")[2]), None)
    assert call == "pwrite64", call
    _, text, rest = arguments.split('"')
    return Write(file, int(rest.rpartition(", ")[2]), bytes.fromhex(text.replace("\\x", "")))


def _variables(home: Installation, effects: Path) -> dict[str, str]:
    return home.variables(EFFECTS=str(effects), DJANGO_SETTINGS_MODULE="hitlchat.settings")


def _put(cut: Cut, database: Path, folder: Path) -> Path:
    for file, content in cut.files.items():
        there = folder / (database.name + file.removeprefix(str(database)))
        there.write_bytes(content)
        if not content:
            there.unlink()
    (folder / f"{database.name}-shm").unlink(missing_ok=True)
    return folder / database.name


def _read(database: Path) -> sqlite3.Connection:
    """As a start would, but for the copying of the log into the database at the end, a thousand times."""
    return sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)


def _broken(there: sqlite3.Connection, marks: tuple[str, ...]) -> list[str]:
    """The marks that the database does not hold with."""
    queries = ((mark, *HOLDS[mark.split()[1]], mark.split()[0]) for mark in marks)
    return [
        mark
        for mark, table, holds, key in queries
        if not there.execute(f"SELECT 1 FROM {table} WHERE id = ? AND {holds}", [key]).fetchone()
    ]


def _left(there: sqlite3.Connection, marks: tuple[str, ...]) -> frozenset[str]:
    """How the database has those calls whose tools ran."""
    ran = {mark.split()[0] for mark in marks if mark.endswith(" ran")}
    return frozenset(status for key, status in there.execute("SELECT id, status FROM gate_toolcall") if key in ran)


@pytest.mark.slow("cuts the power at every moment")
@pytest.mark.embedded
def test_after_a_power_cut_at_any_moment_what_was_told_holds_and_nothing_runs_twice(
    installation: Installation, tmp_path: Path
) -> None:
    if (strace := strace_path()) is None:
        pytest.skip("needs strace")
    database, effects = installation.folder / "hitlchat.sqlite3", tmp_path / "effects"
    disk = Disk({str(database): database.read_bytes()})
    # With the filter, calls that nobody asked about do not wait for strace.
    traced = (strace, "-ff", "--seccomp-bpf", "-ttt", "-y", "-xx", "-s", "100000", "-e", f"trace={CALLS}")
    command = [*traced, "-o", str(tmp_path / "trace"), sys.executable, "-m", "tests.gate.powered", "act"]
    subprocess.run(command, cwd=ROOT, env=_variables(installation, effects), timeout=200, check=True)
    trace = sorted(line for file in tmp_path.glob("trace.*") for line in file.read_text("ascii").splitlines())
    states: dict[frozenset[str], Cut] = {}
    folder, count = tmp_path / "cut", 0
    folder.mkdir()
    for count, cut in enumerate(_cuts(disk, trace, effects), 1):
        with closing(_read(_put(cut, database, folder))) as there:
            assert _broken(there, cut.marks) == [], f"cut {count}"
            states[_left(there, cut.marks)] = cut
    assert disk.marks == effects.read_text("ascii").splitlines()
    assert count > 100
    for number, cut in enumerate(states.values()):
        _starts_again(installation, cut, tmp_path / f"again-{number}")


def _starts_again(home: Installation, cut: Cut, folder: Path) -> None:
    shutil.copytree(home.folder, folder)
    database = home.folder / "hitlchat.sqlite3"
    for file in folder.glob("hitlchat.sqlite3*"):
        file.unlink()
    _put(cut, database, folder)
    effects = folder / "effects"
    effects.write_text("".join(f"{mark}\n" for mark in cut.marks), "ascii")
    variables = _variables(Installation(folder), effects)
    code, _, errors = forks.run(("tests/gate/powered.py", "again"), variables, timeout=200)
    assert code == 0, errors
    ran = [mark for mark in effects.read_text("ascii").splitlines() if mark.endswith(" ran")]
    assert len(ran) == len(set(ran)), "a tool ran twice"


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("setting, waits", [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")])
def test_postgres_waits_for_the_disk_at_a_decision_and_a_claim_whatever_it_is_set_to(
    setting: str, waits: str, bob: User, tool: Tool
) -> None:
    seen = []

    def look(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith('INSERT INTO "gate_auditevent"'):
            with connection.cursor() as cursor:
                seen.append(cursor.execute("SHOW synchronous_commit").fetchone()[0])
        return execute(sql, *rest)

    call = ask(bob, tool)
    with connection.cursor() as cursor:
        cursor.execute(f"SET synchronous_commit TO {setting}")
    with connection.execute_wrapper(look):
        say_yes(bob, call)
        assert perform.claim(call.pk)
    assert seen == [waits, waits]
    with connection.cursor() as cursor:
        assert cursor.execute("SHOW synchronous_commit").fetchone()[0] == setting
        cursor.execute("RESET synchronous_commit")


@pytest.mark.django_db(transaction=True)
def test_a_decision_within_a_transaction_that_is_not_durable_is_refused(bob: User, waiting: ToolCall) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        say_yes(bob, waiting)
    assert status(waiting) == Status.WAITING
