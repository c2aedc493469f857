"""Repairs, before `migrate`, what earlier editions of landed migrations left behind in a database.

Before landed migrations were held to their first edition (tests/upgrades), four of them were edited: a database made in
between is marked as migrated, yet lacks a column or has an index of another shape. The schema is compared with what the
applied migrations say, for the two tables concerned, and only what differs is made again. No row is touched.
"""

from typing import Any, Final

from django.db import connections, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Index, Model

COLUMNS: Final = {"toolcall": ("rule",), "decision": ()}
# Names that an earlier edition gave to its own indexes: in the way where no applied migration makes them.
FORMER: Final = frozenset(
    {"call_waiting_for_others", "call_waiting_for_second", "decision_by_person", "decision_hurried"}
)
DEFINITIONS: Final = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = %s",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() AND tablename = %s",
}

Shape = tuple[tuple[str, ...], bool]


def repair(*, using: str, apps: Any, **_: Any) -> None:
    """Bring columns and indexes in line with the migrations that the database says it has."""
    models = [found for name in COLUMNS if (found := _model(apps, name)) is not None]
    connection = connections[using]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        there = {*connection.introspection.table_names(cursor)}
    for model in models:
        if _options(model).db_table in there:
            _repair(model, connection)


def _options(model: type[Model]) -> Any:
    return model._meta  # noqa: SLF001 - public, says Django


def _model(apps: Any, name: str) -> type[Model] | None:
    try:
        found: type[Model] = apps.get_model("gate", name)
    except LookupError:
        return None
    return found


def _repair(model: type[Model], connection: Any) -> None:
    options = _options(model)
    table = options.db_table
    with connection.cursor() as cursor:
        columns = {column.name for column in connection.introspection.get_table_description(cursor, table)}
        shapes = _shapes(connection, cursor, table)
    expected = {index.name: index for index in options.indexes}
    lacking = [name for name in COLUMNS[options.model_name] if name not in columns]
    wrong = [name for name, index in expected.items() if name in shapes and shapes[name] != _shape(model, index)]
    former = [name for name in FORMER if name in shapes and name not in expected]
    missing = [name for name in expected if name not in shapes]
    if not (lacking or wrong or former or missing):
        return
    with connection.schema_editor(atomic=True) as editor:
        for name in lacking:
            _add_column(editor, model, name)
        for name in (*wrong, *former):
            editor.remove_index(model, Index(fields=["id"], name=name))
        for name in (*wrong, *missing):
            editor.add_index(model, expected[name])


def _add_column(editor: BaseDatabaseSchemaEditor, model: type[Model], name: str) -> None:
    """Add the column in place: SQLite's editor would copy the table, and read the column that is not there."""
    options, quoted = _options(model), editor.quote_name
    field, table = options.get_field(name), quoted(options.db_table)
    sort = field.db_parameters(connection=editor.connection)["type"]
    with editor.connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(field.column)} {sort} DEFAULT '' NOT NULL")
        if editor.connection.vendor == "postgresql":
            cursor.execute(f"ALTER TABLE {table} ALTER COLUMN {quoted(field.column)} DROP DEFAULT")


def _shapes(connection: Any, cursor: Any, table: str) -> dict[str, Shape]:
    """Columns of each index, and whether it is partial."""
    cursor.execute(DEFINITIONS[connection.vendor], [table])
    definitions = dict(cursor.fetchall())
    constraints = connection.introspection.get_constraints(cursor, table)
    return {
        name: (tuple(constraints[name]["columns"]), " WHERE " in definition)
        for name, definition in definitions.items()
        if name in constraints
    }


def _shape(model: type[Model], index: Index) -> Shape:
    fields = [_options(model).get_field(name.removeprefix("-")) for name in index.fields]
    return tuple(field.column for field in fields), index.condition is not None
