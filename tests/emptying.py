"""Emptying the database after a test that committed, at a tenth of the cost: what `migrate` leaves in an empty database
is put back row by row, instead of having its handlers find out again what to write.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.core.management.commands import flush
from django.core.management.sql import sql_flush
from django.db import connection, transaction
from django.db.models import Model
from pytest_django import DjangoDbBlocker

from hitlchat.gate import bolts

Rows = list[tuple[type[Model], list[Model]]]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        left = _all_rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flush, "emit_post_migrate_signal", _putting_back(left))
        patch.setattr(flush, "sql_flush", _without_bolts(sql_flush))
        yield


def _all_rows() -> Rows:
    models = apps.get_models(include_auto_created=True)
    rows = ((model, list(model._base_manager.all())) for model in models)
    return [(model, found) for model, found in rows if found]


def _without_bolts(emptying: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """The record's own triggers keep even this from emptying it: so they come off for the moment that it takes."""
    off, on = bolts.off(connection.vendor), bolts.on(connection.vendor)
    return lambda *arguments, **how: [*off, *emptying(*arguments, **how), *on]


def _putting_back(left: Rows) -> Callable[..., None]:
    def put_back(verbosity: int, interactive: bool, db: str, **_: Any) -> None:
        # In one transaction, at whose end references are checked: so the order does not matter.
        with transaction.atomic(using=db):
            for model, rows in left:
                model._base_manager.using(db).bulk_create(rows)

    return put_back
