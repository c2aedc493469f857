"""What the runs of the tests need: databases and Redis databases of their own."""

import sqlite3
from contextlib import closing
from pathlib import Path

from django.db.migrations.loader import MigrationLoader

from tests import template
from tests.apart import redis_database


def test_each_worker_has_a_redis_database_of_its_own() -> None:
    assert [redis_database("redis://:pw@127.0.0.1:6379/12", f"gw{n}")[-3:] for n in range(3)] == ["/12", "/13", "/14"]
    assert redis_database("redis://127.0.0.1:6379", "gw1") == "redis://127.0.0.1:6379/1"


def test_a_changed_migration_has_the_database_of_the_tests_made_anew(tmp_path: Path) -> None:
    migration = tmp_path / "hitlchat" / "gate" / "migrations" / "0001_initial.py"
    migration.parent.mkdir(parents=True)
    states = set()
    for text in ("", "operations = []"):
        migration.write_text(text, encoding="utf-8")
        states.add(template.digest(tmp_path))
    (migration.parent / "0002_more.py").touch()
    states.add(template.digest(tmp_path))
    (tmp_path / "hitlchat" / "views.py").touch()
    assert template.digest(tmp_path) in states
    assert len(states) == 3


def test_the_copied_database_has_nothing_left_to_migrate(tmp_path: Path) -> None:
    template.copy_to(tmp_path / "copy.sqlite3")
    with closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as copy:
        done = set(copy.execute("SELECT app, name FROM django_migrations"))
    assert done >= set(MigrationLoader(None).disk_migrations)
