"""Puts a packed release into a database: as it was on SQLite, and row by row elsewhere.

The second runs in a program of its own, `manage.py shell`, on an empty database.
"""

import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
RELEASES: Final = sorted(HERE.glob("*.tar.gz"))


def unpack(release: Path, data: Path) -> Path:
    """Lay the release's files into the data folder, its database among them; return that one."""
    with tarfile.open(release) as archive:
        archive.extractall(data, filter="data")
    sql, database = data / "hitlchat.sql", data / "hitlchat.sqlite3"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(sql.read_text(encoding="utf-8"))
    sql.unlink()
    return database


def copy_rows(database: Path) -> None:
    """Migrate the configured database as far as `database` was, then copy every row by the models of that time."""
    from django.core.management.color import no_style  # noqa: PLC0415 - these need settings
    from django.db import connection, connections, transaction  # noqa: PLC0415
    from django.db.migrations.executor import MigrationExecutor  # noqa: PLC0415
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415

    connections.settings["old"] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(database),
        "OPTIONS": {},
    }
    applied = MigrationLoader(connections["old"]).applied_migrations
    executor = MigrationExecutor(connection)
    nodes = executor.loader.graph.node_map
    targets = [
        key
        for key, node in nodes.items()
        if key in applied and not any(child.key in applied for child in node.children)
    ]
    executor.migrate(targets)
    models = executor.loader.project_state(targets).apps.get_models(include_auto_created=True)
    with transaction.atomic():
        for model in models:
            model._base_manager.bulk_create(list(model._base_manager.using("old").all()))
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), models):
                cursor.execute(statement)
