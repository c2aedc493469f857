"""There is no way to change or remove what is recorded: not by the models, not by a command, not by SQL."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction

from hitlchat.base import append_only
from hitlchat.gate.models import AuditEvent, Drop, RecordKey, Seal
from hitlchat.record import sealing
from tests.record.conftest import found, sealed

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.guarantee("audit:complete"),
    pytest.mark.servers("each database has triggers of its own"),
]


def refused(work: Callable[[], Any], *, by: type[Exception]) -> None:
    with pytest.raises(by), transaction.atomic():
        work()


@pytest.mark.guarantee("SR-45")
def test_no_row_of_the_record_is_changed_deleted_or_replaced(subtests: pytest.Subtests) -> None:
    sealed(2)
    for model in (AuditEvent, Seal, RecordKey):
        with subtests.test(model.__name__):
            _by_its_model(model)
            _past_its_model(model)
    assert found() == []


def _by_its_model(model: Any) -> None:
    row = model.objects.first()
    for work in (
        row.save,
        row.delete,
        lambda: model.objects.update(pk=9),
        lambda: model.objects.all().delete(),
        lambda: model.objects.bulk_update([row], [next(iter(_columns(model)))]),
    ):
        refused(work, by=PermissionError)


def _past_its_model(model: Any) -> None:
    table, key, columns = model._meta.db_table, model._meta.pk.column, _columns(model)
    values = ", ".join([key, *columns])
    row = f"SELECT {values} FROM {table} ORDER BY {key} LIMIT 1"
    how = "INSERT OR REPLACE INTO" if connection.vendor == "sqlite" else "INSERT INTO"
    refused(lambda: model._base_manager.all()._raw_delete(connection.alias), by=IntegrityError)
    for statement in (
        f"UPDATE {table} SET {columns[0]} = {columns[0]}",
        f"DELETE FROM {table}",
        f"{how} {table} ({values}) {row}",
    ):
        refused(partial(_run, statement), by=IntegrityError)


def test_a_migration_that_takes_them_off_with_its_table_leaves_them_on(caplog: pytest.LogCaptureFixture) -> None:
    assert append_only.missing() == []
    for statement in append_only.off(connection.vendor)[:4]:
        _run(statement)
    assert len(append_only.missing()) == 4
    sealing.RecordWorker().look(0.0)
    assert sealing.BOLTS_OFF in caplog.messages
    call_command("migrate", verbosity=0)
    assert append_only.missing() == []
    sealed(1)
    refused(lambda: _run("DELETE FROM gate_auditevent"), by=IntegrityError)


@pytest.mark.guarantee("SR-45")
def test_nor_by_emptying_the_whole_database() -> None:
    sealed(2)
    with pytest.raises(CommandError, match="couldn't be flushed"):
        call_command("flush", interactive=False, verbosity=0)
    assert found() == []


def test_a_drop_that_is_on_record_frees_the_events_of_its_batch_and_no_others() -> None:
    first, second = sealed(2, 2)
    key = RecordKey.objects.get()
    Drop(seal=Seal.objects.get(pk=1), key=key, signature="0" * 128).save(force_insert=True)
    refused(lambda: _run("DELETE FROM gate_auditevent WHERE id = %s", second[0]), by=IntegrityError)
    _run("DELETE FROM gate_auditevent WHERE id = %s", first[0])
    # And whoever says so without the key is found out.
    assert found() == [("missing", 1, None)]


def _columns(model: Any) -> list[str]:
    return [field.column for field in model._meta.concrete_fields if not field.primary_key]


def _run(sql: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
