"""The database of a backup: as it is at one moment, read beside a running server, and put into an empty one.

SQLite is copied by its backup API. PostgreSQL is read table by table with COPY, in one transaction that sees one
moment; its tables are made by the migrations that the backup names. So no other program is needed, the version of
PostgreSQL may be another one, and a restore is one transaction, which is there whole or not at all.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from hitlchat.backup import Damaged, Unfit
from hitlchat.backup.archive import Manifest, Sequence, Writer
from hitlchat.health import Name, of_code

FOLDER: Final = "database"
FILE: Final = f"{FOLDER}/hitlchat.sqlite3"
BESIDE: Final = ("", "-wal", "-shm")
PIECE: Final = 2**23
ONE_MOMENT: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# An operator may have bounded what statements of requests take.
UNBOUNDED: Final = "SET LOCAL statement_timeout = 0"
# Else a table with rows whose references are still to be checked could not be altered.
AT_ONCE: Final = "SET CONSTRAINTS ALL IMMEDIATE"
AT_THE_END: Final = "SET CONSTRAINTS ALL DEFERRED"


@dataclass(frozen=True)
class Snapshot:
    """The database at one moment. `file`: its copy, on SQLite; `others`: tables that are none of the program's."""

    migrations: set[Name]
    counts: dict[str, int]
    columns: dict[str, list[str]]
    sequences: list[Sequence]
    others: list[str]
    attachments: set[str]
    file: Path | None

    def write(self, archive: Writer) -> None:
        if self.file is not None:
            with self.file.open("rb") as file:
                archive.add(FILE, file, self.file.stat().st_size)
            return
        for table, columns in self.columns.items():
            for number, piece in enumerate(_copied(table, columns)):
                archive.add_bytes(f"{FOLDER}/{table}/{number:06}", piece)


def is_empty() -> bool:
    return not connection.introspection.table_names()


@contextmanager
def snapshot(folder: Path) -> Iterator[Snapshot]:
    """Give the database as it is now; on SQLite as a copy in `folder`. Raises: Damaged."""
    if connection.vendor == "sqlite":
        file = folder / "hitlchat.sqlite3"
        connection.ensure_connection()
        with closing(sqlite3.connect(file)) as copy:
            connection.connection.backup(copy)
        with connected_to(file):
            found = _look(file)
        yield found
        for ending in BESIDE:
            file.with_name(file.name + ending).unlink(missing_ok=True)
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ONE_MOMENT)
        cursor.execute(UNBOUNDED)
        yield _look(None)


def counts(tables: Iterable[str]) -> dict[str, int]:
    with connection.cursor() as cursor:
        found = {}
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM {_quoted(table)}")  # noqa: S608 - a quoted name
            found[table] = int(cursor.fetchone()[0])
    return found


def tables_of(migrations: set[Name]) -> list[str]:
    loader = MigrationLoader(None, ignore_no_migrations=True)
    models = loader.project_state(_last(loader, migrations)).apps.get_models(include_auto_created=True)
    found = {model._meta.db_table for model in models if model._meta.managed}  # noqa: SLF001 - Django documents it
    return sorted({*found, "django_migrations"})


def place(folder: Path, name: str) -> Path:
    """Return where the member of this name is written to: for SQLite beside the database, else in `folder`."""
    return _staged() if connection.vendor == "sqlite" else folder / name


@contextmanager
def loaded(folder: Path, manifest: Manifest) -> Iterator[None]:
    """Have the database of the backup be the program's within; it stays so if no exception is raised.

    Raises: Unfit
    """
    if connection.vendor == "sqlite":
        target, staged = _target(), _staged()
        with connected_to(staged):
            yield
        for ending in BESIDE[1:]:
            target.with_name(target.name + ending).unlink(missing_ok=True)
        staged.replace(target)
        return
    with transaction.atomic():
        _load(folder, manifest)
        yield


def clear() -> None:
    """Remove what a restore has written beside the database."""
    if connection.vendor == "sqlite":
        for ending in BESIDE:
            _staged().with_name(_staged().name + ending).unlink(missing_ok=True)


@contextmanager
def connected_to(file: Path) -> Iterator[None]:
    """Have the connection be to this file of SQLite within."""
    before = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = str(file)
    try:
        yield
    finally:
        # Puts what is in its log into the file.
        connection.close()
        connection.settings_dict["NAME"] = before


def _target() -> Path:
    return Path(connection.settings_dict["NAME"])


def _staged() -> Path:
    return _target().with_name(f"{_target().name}.restoring")


def _look(file: Path | None) -> Snapshot:
    migrations = {*MigrationRecorder(connection).applied_migrations()}
    there = connection.introspection.table_names()
    columns, sequences = dict[str, list[str]](), list[Sequence]()
    with connection.cursor() as cursor:
        if file is not None:
            cursor.execute("PRAGMA quick_check(1)")
            if (found := cursor.fetchone()[0]) != "ok":
                raise Damaged(f"The database is damaged, so it was not backed up: {found}")
            tables = there
        else:
            tables = [table for table in tables_of(migrations) if table in there]
            for table in tables:
                described = connection.introspection.get_table_description(cursor, table)
                columns[table] = [column.name for column in described]
                sequences += _sequences(cursor, table)
        digests: set[str] = set()
        if "agent_attachment" in tables:
            cursor.execute("SELECT DISTINCT digest FROM agent_attachment")
            digests = {digest for (digest,) in cursor.fetchall()}
    others = sorted({*there} - {*tables})
    return Snapshot(migrations, counts(tables), columns, sequences, others, digests, file)


def _quoted(*names: str) -> str:
    return ", ".join(connection.ops.quote_name(name) for name in names)


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def _sequences(cursor: Any, table: str) -> Iterator[Sequence]:
    for found in connection.introspection.get_sequences(cursor, table):
        cursor.execute(f"SELECT last_value, is_called FROM {_quoted(found['name'])}")  # noqa: S608 - a quoted name
        last, is_used = cursor.fetchone()
        yield Sequence(table=table, column=found["column"], last=last, is_used=is_used)


def _copied(table: str, columns: list[str]) -> Iterator[bytes]:
    """Yield the rows in the text format of COPY, some MiB at a time."""
    piece = bytearray()
    statement = f"COPY {_quoted(table)} ({_quoted(*columns)}) TO STDOUT"
    with connection.cursor() as cursor, cursor.copy(statement) as rows:
        for row in rows:
            piece += row
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece.clear()
    if piece:
        yield bytes(piece)


def _load(folder: Path, manifest: Manifest) -> None:
    migrations = {*manifest.migrations}
    if missing := sorted({*manifest.counts} - {*tables_of(migrations)}):
        raise Unfit(
            f"The backup has the table {missing[0]!r}, which no app here has. Set PROJECT_APPS as it was, and install "
            "these apps."
        )
    with connection.cursor() as cursor:
        cursor.execute(UNBOUNDED)
        cursor.execute(AT_ONCE)
        executor = MigrationExecutor(connection)
        executor.migrate(_last(executor.loader, migrations))
        cursor.execute(AT_THE_END)
        for table in manifest.columns:
            # What migrations have written is in the backup, too.
            cursor.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608 - a quoted name
        for table, columns in manifest.columns.items():
            with cursor.copy(f"COPY {_quoted(table)} ({_quoted(*columns)}) FROM STDIN") as rows:
                for piece in sorted((folder / FOLDER / table).glob("*")):
                    rows.write(piece.read_bytes())
        for each in manifest.sequences:
            place: list[str | int] = [_quoted(each.table), each.column, each.last, each.is_used]
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s, %s)", place)
        cursor.execute(AT_ONCE)


def _last(loader: MigrationLoader, migrations: set[Name]) -> list[Name]:
    """Return the last of these migrations in each line of them, by the names that they have here."""
    done = {name for name, replaced in of_code().items() if name in migrations or (replaced and replaced <= migrations)}
    nodes = loader.graph.node_map
    return [name for name in nodes if name in done and not any(child.key in done for child in nodes[name].children)]
