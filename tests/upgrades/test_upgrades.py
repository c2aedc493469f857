"""Databases of earlier releases migrate, and landed migrations stay as they landed."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import DjangoAssertNumQueries

from hitlchat import health as migrations
from tests.ports import free_port
from tests.processes import Installation, Servers, installation, migrated, servers, unmigrated
from tests.upgrades import landed
from tests.upgrades.fill import POLICIES, SECRET_KEY
from tests.upgrades.loading import RELEASES, unpack
from tests.waiting import until

ON_SERVERS = pytest.mark.servers("the SQL differs between the databases")

__all__ = ["installation", "migrated", "servers", "unmigrated"]

OF_RELEASE = {"SECRET_KEY": SECRET_KEY, "HITL_POLICIES": POLICIES, "ALLOWED_HOSTS": "testserver"}
NEWER = "INSERT INTO django_migrations (app, name, applied) VALUES ('gate', '9999_newer', '2030-01-01 00:00:00')"

# Reads all that people read of a call, as the administrator; prints how many have which status.
READ = """
import collections, json
from django.contrib.auth.models import User
from django.test import Client
from hitlchat.gate.models import ToolCall
from hitlchat.agent.models import Conversation, Run
for chat in Conversation.objects.exclude(runs=None):
    rows, at = dict(chat.runs.values_list("pk", "parent")), chat.tip_id
    while at is not None:
        at = rows.pop(at)
    assert not rows, "a run is on no branch"
assert Run.objects.exists()
counted = collections.Counter()
client = Client()
client.force_login(User.objects.get(username="alice"))
for path in ("/history/", "/api/calls", "/api/audit"):
    assert client.get(path).status_code == 200, path
for call in ToolCall.objects.all():
    read = client.get(f"/api/calls/{call.pk}").json()
    assert read["toolName"] == call.tool_name and read["status"] == call.status, read
    assert client.get(f"/history/{call.pk}").status_code == 200, call.pk
    counted[read["status"]] += 1
print(json.dumps(counted))
"""
COPY = "from pathlib import Path; from tests.upgrades.loading import copy_rows; copy_rows(Path({!r}))"


def test_landed_migrations_stay_as_they_landed() -> None:
    tree = landed.in_tree()
    changed = [name for name, entry in landed.on_record().items() if tree.get(name) != entry]
    assert not changed, f"landed, and changed or removed since: {changed}. Write a new migration instead."


def test_no_migration_goes_before_one_that_landed() -> None:
    """A migration that runs before an applied one makes the history of every database inconsistent."""
    found = MigrationLoader(None).disk_migrations
    ours = [migration for migration in found.values() if migration.__module__.startswith(landed.APPS)]
    assert [str(migration) for migration in ours if migration.run_before] == []


def test_the_digest_of_a_migration_sees_code_and_no_layout() -> None:
    source = 'class Migration:\n    operations = [\n        Add("a"),\n    ]\n'
    assert landed.digest(source) == landed.digest('# made today\nclass Migration:\n    operations = [Add("a")]\n')
    assert landed.digest(source) != landed.digest(source.replace('"a"', '"b"'))


def test_what_landed_is_never_written_anew() -> None:
    entries = {"gate.0001_initial": {"after": [], "digest": "0"}}
    assert json.loads(landed.written(landed.in_tree() | entries))["gate.0001_initial"] == entries["gate.0001_initial"]


@pytest.mark.slow("migrates an installation")
@pytest.mark.embedded
@pytest.mark.parametrize("release", [pytest.param(path, id=path.name.partition(".")[0]) for path in RELEASES])
def test_a_filled_installation_of_a_release_migrates_and_reads_well(
    release: Path, tmp_path: Path, migrated: Installation
) -> None:
    database = unpack(release, tmp_path)
    before = _statuses(database)
    home = Installation(tmp_path, environment=OF_RELEASE)
    home.manage("migrate", "-v", "0")
    assert _schema(database) == _schema(migrated.folder / "hitlchat.sqlite3")
    home.manage("audit", "verify", "--plain")
    assert json.loads(home.manage("shell", "-v", "0", "-c", READ).splitlines()[-1]) == before
    assert len(before) == 12


@pytest.mark.slow("migrates an installation")
@ON_SERVERS
@pytest.mark.postgres
@pytest.mark.parametrize("release", [pytest.param(path, id=path.name.partition(".")[0]) for path in RELEASES])
def test_rows_of_a_release_migrate_on_postgresql_and_read_well(
    release: Path, unmigrated: Installation, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    database = unpack(release, tmp_path / "old")
    for kept in ("record_key", "record_mark"):
        if (tmp_path / "old" / kept).exists():
            (tmp_path / "old" / kept).rename(unmigrated.folder / kept)
    home = Installation(unmigrated.folder, unmigrated.database, OF_RELEASE)
    home.manage("shell", "-v", "0", "-c", COPY.format(str(database)))
    home.manage("migrate", "-v", "0")
    home.manage("audit", "verify", "--plain")
    assert json.loads(home.manage("shell", "-v", "0", "-c", READ).splitlines()[-1]) == _statuses(database)


@pytest.mark.slow("migrates an installation")
@pytest.mark.embedded
def test_an_index_of_the_operators_own_survives_migrating(installation: Installation) -> None:
    database = installation.folder / "hitlchat.sqlite3"
    with closing(sqlite3.connect(database)) as here, here:
        here.execute("CREATE INDEX my_own ON gate_toolcall (tool_name)")
    installation.manage("migrate", "-v", "0")
    assert any("my_own" in line for line in _schema(database))


@ON_SERVERS
def test_the_server_refuses_a_database_that_is_not_migrated(unmigrated: Installation) -> None:
    with pytest.raises(AssertionError, match=r"The database is not migrated\. Run `manage\.py migrate` first"):
        unmigrated.manage("serve", "--port", str(free_port()))


@pytest.mark.slow("starts a server")
@pytest.mark.embedded
def test_a_running_server_whose_database_was_migrated_further_is_not_ready(servers: Servers) -> None:
    server = servers.start()
    _migrate_further(servers.home)
    person = server.sign_in("bob")
    until(lambda: person.get("/readyz").status_code == 503, "the server says that it is not ready", seconds=20)
    assert person.get("/readyz").json() == {"status": "unavailable", "database": "migrated by a newer version"}
    assert person.get("/healthz").status_code == 200


@pytest.fixture
def newer(db: None) -> Iterator[MigrationRecorder]:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("gate", "9999_newer")
    yield recorder
    recorder.record_unapplied("gate", "9999_newer")


@ON_SERVERS
def test_readiness_and_migrate_tell_newer_from_older_from_right(newer: MigrationRecorder) -> None:
    fault, sentence = migrations.migration_fault()
    assert fault == "migrated by a newer version"
    assert "by a newer version of hitlchat (gate.9999_newer is unknown" in sentence
    with pytest.raises(CommandError, match=f"{re.escape(sentence)}$"):
        call_command("migrate")
    newer.record_unapplied("gate", "9999_newer")
    assert migrations.migration_fault()[0] == ""
    for name in ("0002_squashed", "0025_last_statement"):
        newer.record_unapplied("gate", name)
    fault, sentence = migrations.migration_fault()
    assert fault == "older than the migrations of this version"
    with pytest.raises(CommandError, match=f"{re.escape(sentence)}$"):
        call_command("migrate")
    steps = sorted(migrations.of_code()["gate", "0002_squashed"])
    for _, name in steps:
        newer.record_unapplied("gate", name)
    assert migrations.migration_fault()[0] == "not migrated"
    for name in ("0002_squashed", *(name for _, name in steps)):
        newer.record_applied("gate", name)
    assert migrations.migration_fault()[0] == ""


def test_migrations_of_an_app_that_was_taken_out_do_not_count(newer: MigrationRecorder) -> None:
    newer.record_unapplied("gate", "9999_newer")
    newer.record_applied("once_a_project_app", "0001_initial")
    assert migrations.migration_fault()[0] == ""


def test_readiness_is_cheap(db: None, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    migrations.migration_fault()
    with django_assert_max_num_queries(2):
        assert migrations.migration_fault()[0] == ""


def _migrate_further(home: Installation) -> None:
    with closing(sqlite3.connect(home.folder / "hitlchat.sqlite3", timeout=20)) as here, here:
        here.execute(NEWER)


def _statuses(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as here:
        return dict(Counter(status for (status,) in here.execute("SELECT status FROM gate_toolcall")))


def _schema(database: Path) -> list[str]:
    """Tables with their columns in any order, indexes and triggers."""
    with closing(sqlite3.connect(database)) as here:
        found = here.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return sorted(
        line
        for kind, name, table, sql in found
        for line in (_lines(table, sql) if kind == "table" else [f"{kind} {name} {table}: {sql}"])
    )


def _lines(table: str, sql: str) -> list[str]:
    """Each column and constraint: what commas outside of brackets and quotes set apart."""
    inside = sql.partition("(")[2].rpartition(")")[0]
    parts = re.findall(r"(?:'(?:[^']|'')*'|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|[^,('])+", inside)
    return [f"{table}: {part.strip()}" for part in parts]
