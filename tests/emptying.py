"""Emptying the database after a test that committed, at a tenth of the cost: only tables that hold something are
emptied, and what `migrate` leaves in an empty database stays where the test has not touched it.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import close_old_connections, connection, transaction
from django.db.models import Model
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from hitlchat.base import append_only
from tests import clock

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        clock.make_movable()
        emptying = Emptying()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _test: emptying.empty())
        patch.setattr(TransactionTestCase, "_should_reload_connections", _is_spent)
        patch.setattr("channels.db.close_old_connections", _close_old_connections)
        yield
    with django_db_blocker.unblock():
        _end_sessions()


def _end_sessions() -> None:
    """End what threads of this process have left open until they are garbage: with it PostgreSQL drops no database."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


def _close_old_connections() -> None:
    """Close what is too old, as Channels does, but not the one transaction of a test that is rolled back."""
    if not connection.in_atomic_block:
        close_old_connections()


def _is_spent(_test: TransactionTestCase) -> bool:
    """Return whether the next test needs a connection of its own, as Django gives one to each.

    To end SQLite's last one writes the log into the database, and a new one reads the schema: as long as a small test.
    """
    return connection.vendor != "sqlite" or connection.in_atomic_block or not connection.is_usable()


class Emptying:
    """Does what Django's `flush` does, for a database that is as it is when this is made once it is empty."""

    def __init__(self) -> None:
        models = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}
        self._left = {table: list(model._base_manager.all()) for table, model in models.items()}
        self._left = {table: rows for table, rows in self._left.items() if rows}
        self._rows = {table: _rows(table) for table in self._left}
        tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
        each = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for table in tables if table not in self._left)
        self._filled = " UNION ALL ".join(each)

    def empty(self) -> None:
        # In one transaction, at whose end references are checked: so the order does not matter.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(self._filled)
            filled = {table for (table,) in cursor.fetchall()}
            touched = {table for table, rows in self._rows.items() if _rows(table) != rows}
            # The record's own triggers keep even this from emptying it: so they come off for the moment that it takes.
            has_record = not filled.isdisjoint(append_only.TABLES)
            deleting = [f"DELETE FROM {table}" for table in filled | touched]
            off, on = append_only.off(connection.vendor), append_only.on(connection.vendor)
            if has_record and connection.vendor == "sqlite":
                # The record of the next test begins with 1: what is missing before its first event would be named.
                names = ", ".join(f"'{table}'" for table in append_only.TABLES)
                deleting.append(f"DELETE FROM sqlite_sequence WHERE name IN ({names})")
            for statement in [*off, *deleting, *on] if has_record else deleting:
                cursor.execute(statement)
            for table in touched:
                _put_back(self._left[table])


def _rows(table: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1")
        return [tuple(row) for row in cursor.fetchall()]


def _put_back(rows: list[Model]) -> None:
    type(rows[0])._base_manager.bulk_create(rows)
