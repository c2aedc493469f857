"""Compares the database's migrations with those of the running code: older, newer, or the same.

The running code's own are read once: files that a newer version puts beside a running server are not what it runs.
"""

from functools import cache
from typing import Final

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

BEHIND: Final = "not migrated"
AHEAD: Final = "migrated by a newer version"

Name = tuple[str, str]


@cache
def known() -> dict[Name, frozenset[Name]]:
    """Map each migration of the running code to those it replaces."""
    found = MigrationLoader(None, ignore_no_migrations=True).disk_migrations or {}
    return {(app, name): frozenset(found[app, name].replaces) for app, name in found}


def fault() -> tuple[str, str]:
    """Return the fault and a sentence for the operator; both empty where the database fits.

    Raises: DatabaseError
    """
    applied = {*MigrationRecorder(connection).applied_migrations()}
    if newer := _newer(applied):
        return AHEAD, (
            f"The database was migrated by a newer version of hitlchat ({'.'.join(newer[0])} is unknown to this one)."
            " Start that version, or restore a backup made before it."
        )
    if any(name not in applied and not (replaced and replaced <= applied) for name, replaced in known().items()):
        return BEHIND, "The database is not migrated. Run `manage.py migrate` first (`make run` does it by itself)."
    return "", ""


def _newer(applied: set[Name]) -> list[Name]:
    """Applied migrations that are unknown, of apps that are here: an operator's app may have been removed."""
    apps = {app for app, _ in known()}
    once = frozenset[Name]().union(*known().values())
    return sorted(name for name in applied - {*known()} - once if name[0] in apps)
