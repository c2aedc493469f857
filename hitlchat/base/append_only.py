"""Rows that are written once: no code changes or removes them, and triggers of the database refuse it.

Only the events of a batch whose drop is on record (hitlchat/record/sealing.py) can be removed. The triggers are a bolt
against mistakes and other programs: the owner of the database can take it off.

A migration that rebuilds one of these tables (on SQLite, any change of a column) takes them off with the table: so
`migrate` puts missing ones on at its end.
"""

from typing import Any, Final, NoReturn

from django.db import connections, models, transaction

from hitlchat.base.rows import Row


class AppendOnlyQuerySet(models.QuerySet[Any]):
    def update(self, **_: object) -> NoReturn:
        raise PermissionError("these rows are never changed")

    def delete(self) -> NoReturn:
        raise PermissionError("these rows are never deleted")


class AppendOnly(Row):
    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True

    # Not domain flow, but a bolt: both would go past the query set.
    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise PermissionError("this row is never changed")
        super().save(*args, **kwargs)

    def delete(self, *_: object, **__: object) -> NoReturn:
        raise PermissionError("this row is never deleted")


EVENTS = "gate_auditevent"
FOREVER = ("gate_seal", "gate_drop", "gate_recordkey")
TABLES = (EVENTS, *FOREVER)
# SQLite's INSERT OR REPLACE removes the row that was there without asking triggers about deletions.
KEYS: Final = {EVENTS: ("id",), "gate_seal": ("number",), "gate_drop": ("seal_id",), "gate_recordkey": ("id", "number")}
KINDS: Final = {"sqlite": ("update", "delete", "insert"), "postgresql": ("update", "delete", "truncate")}
ON_SQLITE: Final = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
ON_POSTGRESQL: Final = """
SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
 WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND pg_table_is_visible(tgrelid)
"""

_IS_DROPPED = (
    "EXISTS (SELECT 1 FROM gate_drop JOIN gate_seal ON gate_seal.number = gate_drop.seal_id"
    " WHERE gate_seal.first <= OLD.id AND gate_seal.last >= OLD.id)"
)
_REFUSE = """
CREATE OR REPLACE FUNCTION gate_record_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the record is neither changed nor deleted' USING ERRCODE = 'restrict_violation';
END $$
"""
# A trigger's own condition cannot ask other tables.
_REFUSE_UNLESS_DROPPED = f"""
CREATE OR REPLACE FUNCTION gate_event_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF {_IS_DROPPED} THEN RETURN OLD; END IF;
  RAISE EXCEPTION 'the record is neither changed nor deleted' USING ERRCODE = 'restrict_violation';
END $$
"""


def on(vendor: str) -> list[str]:
    if vendor == "sqlite":
        refuse = "BEGIN SELECT RAISE(ABORT, 'the record is neither changed nor deleted'); END"
        found = [f"CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} {refuse}" for table in TABLES]
        found += [f"CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} {refuse}" for table in FOREVER]
        for table, keys in KEYS.items():
            same = " OR ".join(f"{key} = NEW.{key}" for key in keys)
            there = f"EXISTS (SELECT 1 FROM {table} WHERE {same})"  # noqa: S608 - names of our own
            found.append(f"CREATE TRIGGER {table}_insert BEFORE INSERT ON {table} WHEN {there} {refuse}")
        return [*found, f"CREATE TRIGGER {EVENTS}_delete BEFORE DELETE ON {EVENTS} WHEN NOT {_IS_DROPPED} {refuse}"]
    found = [_REFUSE, _REFUSE_UNLESS_DROPPED]
    for table in TABLES:
        row = "gate_event_stays" if table == EVENTS else "gate_record_stays"
        found += [
            f"CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION gate_record_stays()",
            f"CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {row}()",
            f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION gate_record_stays()",
        ]
    return found


def off(vendor: str) -> list[str]:
    """Take the triggers off, for tests and benches, which empty the tables; the program itself never does."""
    on_table = "" if vendor == "sqlite" else " ON {0}"
    drop = "DROP TRIGGER IF EXISTS {0}_{1}" + on_table
    return [drop.format(table, kind) for table in TABLES for kind in KINDS[vendor]]


def missing(using: str = "default") -> list[str]:
    """The names of those that are not on, or are switched off."""
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(ON_SQLITE if connection.vendor == "sqlite" else ON_POSTGRESQL)
        there = {name for (name,) in cursor.fetchall()}
    every = (f"{table}_{kind}" for table in TABLES for kind in KINDS[connection.vendor])
    return [name for name in every if name not in there]


def put_on_again(*, using: str, **_: Any) -> None:
    """Put the triggers on at the end of `migrate`."""
    connection = connections[using]
    if not missing(using) or not {*TABLES} <= {*connection.introspection.table_names()}:
        return
    with transaction.atomic(using=using):
        _carry_out([*off(connection.vendor), *on(connection.vendor)], connection)


def put_on(_: Any, editor: Any) -> None:
    _carry_out(on(editor.connection.vendor), editor.connection)


def take_off(_: Any, editor: Any) -> None:
    _carry_out(off(editor.connection.vendor), editor.connection)


def _carry_out(statements: list[str], connection: Any) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
