"""Records to tamper with, and hands that go past the program and the database's bolts, as an intruder's would."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from hitlchat.base import append_only
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent
from hitlchat.gate.transition import note
from hitlchat.record.report import Report
from hitlchat.record.sealing import seal
from hitlchat.record.verifying import verify
from tests.gate.conftest import entered
from tests.processes import installation, migrated, servers

__all__ = ["entered", "installation", "migrated", "servers"]

Sql = Callable[..., None]


@pytest.fixture(autouse=True)
def data_folder(settings: Settings, tmp_path: Path) -> Path:
    """Where this test's key and high-water mark are."""
    settings.DATA_DIR = tmp_path
    settings.HITL_RECORD_KEY = ""
    return tmp_path


@pytest.fixture
def tamper(transactional_db: None) -> Iterator[Sql]:
    """Run a statement as somebody who owns the database."""

    def run(sql: str, *values: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)

    _switch(append_only.off)
    yield run
    _switch(append_only.on)


@contextmanager
def undone() -> Iterator[None]:
    """Take back at the end whatever was written to the database."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _switch(how: Callable[[str], list[str]]) -> None:
    with connection.cursor() as cursor:
        for statement in how(connection.vendor):
            cursor.execute(statement)


def happen(count: int, name: str = "test.event") -> list[int]:
    """So many events; their ids."""
    for number in range(count):
        note(None, name, actor=SYSTEM, data={"number": number})
    return list(AuditEvent.objects.order_by("-pk").values_list("pk", flat=True)[:count])[::-1]


def sealed(*counts: int) -> list[list[int]]:
    """A batch with so many events for each of `counts`; their ids."""
    made = []
    for count in counts:
        made.append(happen(count))
        assert seal() is not None
    return made


def found(**noted: str) -> list[tuple[str, int | None, int | None]]:
    """Kind, batch and event of what verifying finds."""
    return [(each.kind, each.batch, each.event) for each in report(**noted).findings]


def report(**noted: str) -> Report:
    return verify(**noted)
