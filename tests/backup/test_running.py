"""Backups of a server that writes meanwhile, and restores elsewhere; both killed in the middle."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import processes
from tests.outside import Outside, outside
from tests.processes import ROOT, Installation, Servers
from tests.scripted_model import Gate, ScriptedModel, calls, scripted_model, text
from tests.upgrades.loading import RELEASES, unpack
from tests.upgrades.test_upgrades import COPY, OF_RELEASE
from tests.waiting import until

__all__ = ["outside", "scripted_model"]

pytestmark = [
    pytest.mark.slow("starts servers and commands, and kills some of them"),
    pytest.mark.timeout(240),
    pytest.mark.servers("each database is backed up and loaded in its own way"),
]

ORDER = ("order", {"what": "a lamp"})
# Enough that neither is over before it is killed.
MANY = """
import secrets
from hitlchat.gate.models import AuditEvent
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.transition import note_all
note_all("test.event", ({"text": secrets.token_hex(3000)} for _ in range(6000)), actor=SYSTEM)
"""


@pytest.fixture
def elsewhere(unmigrated: Installation) -> Installation:
    """An empty folder and an empty database."""
    return unmigrated


@pytest.fixture
def busy(servers: Servers) -> Iterator[None]:
    """Somebody begins conversations all the time."""
    server, over = servers.start(), threading.Event()
    alice, begun = server.sign_in("alice"), list[str]()

    def write() -> None:
        while not over.is_set():
            answer = alice.post("/api/conversations", {})
            assert answer.status_code == 201, answer.text
            begun.append(answer.json()["id"])

    writer = threading.Thread(target=write)
    writer.start()
    yield
    over.set()
    writer.join(60)
    assert begun


def verified(home: Installation) -> bool:
    return bool(json.loads(home.manage("audit", "verify", "--json"))["whole"])


def killed(home: Installation, *arguments: str, once: Path, pattern: str) -> None:
    """Run a command and kill it once a file of this pattern is in the folder `once`."""
    command = [sys.executable, "manage.py", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=home.variables(), stdin=subprocess.DEVNULL) as process:

        def is_there() -> bool:
            assert process.poll() is None, "the command ended before it could be killed"
            return any(path.stat().st_size > 0 for path in once.glob(pattern) if path.is_file())

        until(is_there, f"{arguments[0]} writes")
        process.send_signal(signal.SIGKILL)


@pytest.mark.guarantee("run:survives")
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_call_that_waits_is_answered_where_the_backup_was_restored_and_runs_once(
    servers: Servers, elsewhere: Installation, outside: Outside, scripted_model: ScriptedModel, tmp_path: Path
) -> None:
    server = servers.start(**scripted_model.environment)
    server.sign_in("alice").add_tool(hitlMode="REQUIRED", **outside.tool)
    bob = server.sign_in("bob")
    scripted_model.enqueue(calls(ORDER), text("It is ordered."))
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "waiting")
    file = str(tmp_path / "one.backup")
    servers.home.manage("backup", file)
    server.kill()
    elsewhere.manage("restore", file, "--with-findings")
    others = Servers(elsewhere)
    try:
        bob = others.start(**scripted_model.environment).sign_in("bob")
        (approval,) = bob.pending()
        assert outside.orders == []
        answer = bob.post(f"/api/approvals/{approval['id']}/approve", {"consentDigest": approval["consentDigest"]})
        assert answer.status_code == 200, answer.text
        bob.wait_for_answer(conversation, "It is ordered.")
        assert outside.orders == ['"a lamp"']
    finally:
        others.close()


@pytest.mark.guarantee("gate:at-most-once")
def test_a_call_that_was_executing_is_unknown_where_the_backup_was_restored(
    servers: Servers, elsewhere: Installation, outside: Outside, scripted_model: ScriptedModel, tmp_path: Path
) -> None:
    server = servers.start(**scripted_model.environment)
    server.sign_in("alice").add_tool(hitlMode="DISABLED", **outside.tool)
    bob = server.sign_in("bob")
    outside.gate = Gate()
    scripted_model.enqueue(calls(ORDER), text("It is not known."))
    conversation = bob.begin("Order a lamp")
    bob.wait_for_call(conversation, "executing")
    until(lambda: outside.orders, "the tool is at it")
    servers.home.manage("backup", str(tmp_path / "one.backup"))
    server.kill()
    outside.gate.open()
    elsewhere.manage("restore", str(tmp_path / "one.backup"), "--with-findings")
    others = Servers(elsewhere)
    try:
        bob = others.start(**scripted_model.environment).sign_in("bob")
        bob.wait_for_call(conversation, "unknown")
        bob.wait_for_answer(conversation, "It is not known.")
        assert len(outside.orders) == 1
    finally:
        others.close()


def test_a_server_that_writes_meanwhile_is_backed_up_at_one_moment(
    busy: None, servers: Servers, elsewhere: Installation, tmp_path: Path
) -> None:
    for number in range(3):
        servers.home.manage("backup", str(tmp_path / f"{number}.backup"))
    elsewhere.manage("restore", str(tmp_path / "2.backup"))
    assert verified(elsewhere)
    assert not any(elsewhere.folder.glob("hitlchat-*-locked-*"))


def test_a_backup_that_is_killed_leaves_the_last_one_and_no_half_one(servers: Servers, tmp_path: Path) -> None:
    file = tmp_path / "one.backup"
    servers.home.manage("backup", str(file))
    before = file.read_bytes()
    servers.home.manage("shell", "-v", "0", "-c", MANY)
    killed(servers.home, "backup", str(file), "--overwrite", once=tmp_path, pattern="one.backup.*")
    assert file.read_bytes() == before
    servers.home.manage("backup", str(file), "--overwrite")
    servers.home.manage("restore", str(file), "--check")
    assert not any(servers.home.folder.glob("hitlchat-*"))


def test_a_restore_that_is_killed_leaves_nothing_that_keeps_it_from_being_made_again(
    servers: Servers, elsewhere: Installation, tmp_path: Path
) -> None:
    servers.home.manage("shell", "-v", "0", "-c", MANY)
    file = str(tmp_path / "one.backup")
    servers.home.manage("backup", file)
    pattern = "hitlchat-restore-*/database/*/*" if elsewhere.database else "hitlchat.sqlite3.restoring"
    killed(elsewhere, "restore", file, once=elsewhere.folder, pattern=pattern)
    with pytest.raises(AssertionError, match="The database is not migrated"):
        elsewhere.manage("serve")
    elsewhere.manage("restore", file, "--with-findings")
    elsewhere.manage("migrate", "--check")
    assert not any(elsewhere.folder.glob("hitlchat-*-*"))


@pytest.mark.embedded
def test_a_backup_of_an_older_version_is_migrated(tmp_path: Path) -> None:
    old = Installation(tmp_path / "old", environment=OF_RELEASE)
    old.folder.mkdir()
    unpack(RELEASES[-1], old.folder)
    old.manage("backup", str(tmp_path / "one.backup"))
    new = Installation(tmp_path / "new", environment=OF_RELEASE)
    new.manage("restore", str(tmp_path / "one.backup"))
    new.manage("migrate", "--check")
    assert verified(new)


@pytest.mark.postgres
def test_a_backup_of_an_older_version_is_migrated_on_postgresql(unmigrated: Installation, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    database = unpack(RELEASES[-1], tmp_path / "old")
    for kept in ("record_key", "record_mark"):
        if (tmp_path / "old" / kept).exists():
            (tmp_path / "old" / kept).rename(unmigrated.folder / kept)
    old = Installation(unmigrated.folder, unmigrated.database, OF_RELEASE)
    old.manage("shell", "-v", "0", "-c", COPY.format(str(database)))
    old.manage("backup", str(tmp_path / "one.backup"))
    new = Installation(tmp_path / "new", processes._new_database(like=""), OF_RELEASE)
    try:
        new.manage("restore", str(tmp_path / "one.backup"))
        new.manage("migrate", "--check")
        assert verified(new)
    finally:
        processes._drop_database(new.database)


@pytest.mark.postgres
def test_ids_go_on_after_the_last_one_of_postgresql(servers: Servers, elsewhere: Installation, tmp_path: Path) -> None:
    ask = (
        "from django.db import connection; c = connection.cursor();"
        'c.execute("SELECT last_value, is_called FROM gate_auditevent_id_seq"); print(c.fetchone())'
    )
    before = servers.home.manage("shell", "-v", "0", "-c", ask)
    servers.home.manage("backup", str(tmp_path / "one.backup"))
    elsewhere.manage("restore", str(tmp_path / "one.backup"), "--with-findings")
    # The restore itself is an event.
    assert int(elsewhere.manage("shell", "-v", "0", "-c", ask).strip("()\n").split(",")[0]) == (
        int(before.strip("()\n").split(",")[0]) + 1
    )
