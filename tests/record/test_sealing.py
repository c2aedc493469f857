"""Sealing: everything once, in whatever order it was committed, whoever seals, and however they end."""

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, Seal
from hitlchat.record import keys, sealing
from hitlchat.record.checking import check
from hitlchat.record.exporting import export
from hitlchat.record.proofs import ids_of
from hitlchat.record.rows import batches_of, body_of
from hitlchat.record.sealing import MOST, RecordWorker, seal, seal_all, work
from tests.architecture.source import ROOT
from tests.clock import travel
from tests.gate.racing import together
from tests.record.conftest import found, happen, report, sealed

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("audit:complete"),
]
SERVERS = pytest.mark.servers("row locks tell two at a time apart")

INSERT = "INSERT INTO gate_auditevent (name, means, data, at) VALUES ('test.slow', 'system', '{}', now()) RETURNING id"


def every_sealed_id() -> list[int]:
    return sorted(event_id for each in Seal.objects.all() for event_id in ids_of(body_of(each)))


def test_batches_follow_each_other_without_overlap_and_hold_at_most_so_many() -> None:
    AuditEvent.objects.bulk_create(AuditEvent(name="test.event", means="system") for _ in range(MOST + 5))
    assert seal_all() == 2
    assert [each.count for each in Seal.objects.all()] == [MOST, 5]
    assert every_sealed_id() == list(AuditEvent.objects.values_list("pk", flat=True))
    assert seal_all() == 0
    assert found() == []


async def test_what_a_dead_process_left_is_sealed_at_once_by_the_next_one(settings: Settings) -> None:
    settings.HITL_RECORD_SECONDS = 3600
    await in_db(happen)(3)
    keeping_house = asyncio.create_task(work())
    while not await in_db(Seal.objects.exists)():  # noqa: ASYNC110 - another task's work, bounded by the test's limit
        await asyncio.sleep(0)
    keeping_house.cancel()
    assert (await in_db(report)()).tail == 0


@pytest.mark.postgres
@pytest.mark.guarantee("SR-45")
def test_what_commits_out_of_order_is_sealed_once_and_never_taken_for_put_in(tmp_path: Path) -> None:
    with open_transaction() as slow:
        (before,) = happen(1)
        late = begin(slow)
        (after,) = happen(1)
        assert before < late < after
        assert seal() is not None
        # Still open after more batches, however many.
        sealed(2, 2, 2)
        assert found() == []
        slow.commit()
        assert found() == []
    assert (sealed_as_late(), found()) == ([late], [])
    assert every_sealed_id() == list(AuditEvent.objects.order_by("pk").values_list("pk", flat=True))
    assert report().late == 1
    assert batches_of([before, late]) == {before: 1, late: 5}
    export(tmp_path / "file", SYSTEM)
    assert check((tmp_path / "file").read_bytes().splitlines(keepends=True)).wrong == ""
    # Dropped with the batch that has it, and not with the one that its id is in the middle of.
    with travel(timezone.now() + timedelta(days=3)):
        sealed(1, 1)
        gone = sealing.drop(1, SYSTEM)
    assert (gone, found(), AuditEvent.objects.filter(pk__in=[before, late]).count()) == (6, [], 0)


@pytest.mark.postgres
def test_an_event_put_where_nobody_could_be_any_more_is_one_that_was_put_in() -> None:
    with open_transaction() as slow:
        happen(1)
        gap = begin(slow)
        with travel(timezone.now() - timedelta(hours=1)):
            sealed(1)
        slow.rollback()
    sealed(1)
    assert Seal.objects.latest("number").watch == 2
    assert found() == []
    with connection.cursor() as cursor:
        cursor.execute(INSERT.replace("(name", "(id, name").replace("('test", f"({gap}, 'test"))
    assert found() == [("inserted", 1, gap)]
    sealed(1)
    assert found() == [("inserted", 1, gap)]


@pytest.mark.postgres
@pytest.mark.parametrize("minutes", [-20, 20])
def test_a_process_with_a_wrong_clock_seals_what_commits_late(minutes: int) -> None:
    with open_transaction() as slow:
        late = begin(slow)
        with time_machine.travel(timezone.now() + timedelta(minutes=minutes)):
            sealed(1, 1)
        slow.commit()
    assert (sealed_as_late(), found()) == ([late], [])


@pytest.mark.postgres
def test_an_event_of_a_process_whose_clock_is_behind_does_not_count_as_overdue() -> None:
    sealed(1)
    with time_machine.travel(timezone.now() - timedelta(minutes=4)):
        happen(1)
        assert sealing.unsealed_seconds() < timedelta(minutes=1).total_seconds()
    assert sealing.unsealed_seconds() < timedelta(minutes=1).total_seconds()


def sealed_as_late() -> list[int]:
    made = seal()
    assert made is not None
    return list(made.late)


def open_transaction() -> Any:
    """As of another process."""
    given = connection.settings_dict
    named = {"host": given["HOST"], "port": given["PORT"], "user": given["USER"], "password": given["PASSWORD"]}
    return psycopg.connect(dbname=given["NAME"], **{name: value for name, value in named.items() if value})


def begin(slow: Any) -> int:
    """Take an id, and do not commit."""
    return int(slow.execute(INSERT).fetchone()[0])


@pytest.mark.guarantee("SR-45")
@SERVERS
def test_of_many_that_seal_at_once_each_event_is_sealed_by_one() -> None:
    ids = happen(40)
    ends = together(*[seal_all] * 6)
    assert [each for each in ends if isinstance(each, BaseException)] == []
    assert every_sealed_id() == ids
    assert found() == []


@pytest.mark.guarantee("SR-45")
@pytest.mark.parametrize(
    "where", ["before", pytest.param("after", marks=pytest.mark.slow("a second process that dies"))]
)
@pytest.mark.servers("what a killed process leaves is what was committed")
def test_a_process_killed_while_it_seals_leaves_a_chain_to_go_on_from(settings: Settings, where: str) -> None:
    # However long the process takes.
    settings.HITL_RECORD_SECONDS = 600
    sealed(2)
    ids = happen(3)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.record.dying", str(connection.settings_dict["NAME"]), where],
        cwd=ROOT,
        env={**os.environ, "HITLCHAT_DATA": str(settings.DATA_DIR)},
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert found() == []
    assert Seal.objects.count() == (1 if where == "before" else 2)
    assert sealed(1) == [[ids[-1] + 1]]
    assert (found(), report().tail) == ([], 0)


def test_the_keeper_seals_what_was_there_a_look_before(settings: Settings) -> None:
    settings.HITL_RECORD_SECONDS = 0
    keeper = RecordWorker()
    first = happen(2)
    keeper.look(0.0)
    assert not Seal.objects.exists()
    happen(1)
    keeper.look(1.0)
    assert every_sealed_id() == first
    keeper.look(2.0)
    assert (report().tail, found()) == (0, [])
    keeper.look(3.0)
    assert Seal.objects.count() == 2


def test_a_keeper_leaves_to_another_one_what_that_has_just_begun(settings: Settings) -> None:
    settings.HITL_RECORD_SECONDS = 600
    sealed(1)
    keeper = RecordWorker()
    happen(2)
    for look in range(3):
        keeper.look(float(look))
    assert Seal.objects.count() == 1


def test_a_keeper_with_another_key_seals_nothing_and_says_so_once(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.HITL_RECORD_SECONDS = 0
    sealed(1)
    keys.file().unlink()
    keeper = RecordWorker()
    happen(1)
    for look in range(4):
        keeper.look(float(look))
    assert Seal.objects.count() == 1
    said = [each.getMessage() for each in caplog.records if "is sealed with the key" in each.getMessage()]
    assert len(said) == 1


def test_a_look_with_nothing_to_do_costs_few_statements(settings: Settings) -> None:
    settings.HITL_RECORD_SECONDS = 0
    sealed(3, 3)
    keeper = RecordWorker()
    for look in range(2):
        keeper.look(float(look))
    with CaptureQueriesContext(connection) as statements:
        keeper.look(2.0)
    assert len(statements) <= 10


@pytest.mark.embedded
def test_the_batch_of_an_event_is_found_by_an_index() -> None:
    ids = [event_id for batch in sealed(2, 1) for event_id in batch]
    with CaptureQueriesContext(connection) as statements:
        assert batches_of(ids) == dict(zip(ids, (1, 1, 2), strict=True))
    assert len(statements) == 2
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statements[0]['sql']}")
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "seal_by_last" in plan
