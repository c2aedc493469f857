"""Triggers in the database itself: what the record holds is neither changed nor removed, whoever asks for it, save the
events of a batch whose drop is on record (hitlchat/record/retention.py). A bolt against mistakes and other programs:
who owns the database can take it off.

A migration that makes one of these tables anew (on SQLite, any change of a column) has to put the bolts on again.
"""

from typing import Any

EVENTS = "gate_auditevent"
FOREVER = ("gate_seal", "gate_drop", "gate_recordkey")
TABLES = (EVENTS, *FOREVER)

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
    """The statements that put them on."""
    return _sqlite() if vendor == "sqlite" else _postgresql()


def off(vendor: str) -> list[str]:
    """For tests and benches, which empty the tables; the program itself never does."""
    if vendor == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {table}_{what}" for table in TABLES for what in ("update", "delete")]
    each = [(table, what) for table in TABLES for what in ("update", "delete", "truncate")]
    return [f"DROP TRIGGER IF EXISTS {table}_{what} ON {table}" for table, what in each]


def put_on(_: Any, editor: Any) -> None:
    for statement in on(editor.connection.vendor):
        editor.execute(statement, params=None)


def take_off(_: Any, editor: Any) -> None:
    for statement in off(editor.connection.vendor):
        editor.execute(statement, params=None)


def _sqlite() -> list[str]:
    refuse = "BEGIN SELECT RAISE(ABORT, 'the record is neither changed nor deleted'); END"
    found = [f"CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} {refuse}" for table in TABLES]
    found += [f"CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} {refuse}" for table in FOREVER]
    return [*found, f"CREATE TRIGGER {EVENTS}_delete BEFORE DELETE ON {EVENTS} WHEN NOT {_IS_DROPPED} {refuse}"]


def _postgresql() -> list[str]:
    found = [_REFUSE, _REFUSE_UNLESS_DROPPED]
    for table in TABLES:
        row = "gate_event_stays" if table == EVENTS else "gate_record_stays"
        found += [
            f"CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION gate_record_stays()",
            f"CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {row}()",
            f"CREATE TRIGGER {table}_truncate BEFORE TRUNCATE ON {table} EXECUTE FUNCTION gate_record_stays()",
        ]
    return found
