"""Statements that are compiled once, from a QuerySet with names where values will be.

Django builds and compiles a QuerySet at each use. For a union of a few parts that takes ten times as long as the
database's answer, and some are needed for every page.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Field, QuerySet, Value


class Given(Value):
    """Stands for a value that comes with each sending of the statement."""

    def __init__(self, name: str, output_field: "Field[Any, Any]") -> None:
        super().__init__(name, output_field=output_field)

    def as_sql(self, *_compiler_and_connection: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return "%s", [self]


@dataclass(frozen=True)
class _Statement:
    sql: str
    parameters: tuple[Any, ...]
    columns: tuple[Any, ...]

    def values(self, given: dict[str, Any]) -> list[Any]:
        """Raises: KeyError: a value is missing."""
        return [
            each.output_field.get_db_prep_value(given[each.value], connection) if isinstance(each, Given) else each
            for each in self.parameters
        ]


class Compiled:
    """A QuerySet of tuples, compiled when it is first asked. `build` names its values by `Given`.

    Settings and the time must not be in it, as both would stay what they were: the clock is the database's, by Now().
    """

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._of_vendor: dict[str, _Statement] = {}

    def rows(self, **given: Any) -> list[tuple[Any, ...]]:
        """Return the rows, as the QuerySet would."""
        statement = self._statement()
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, statement.values(given))
            found = cursor.fetchall()
        readers = [
            [*connection.ops.get_db_converters(column), *column.get_db_converters(connection)]
            for column in statement.columns
        ]
        return [tuple(map(_read, row, readers, statement.columns)) for row in found]

    def count(self, **given: Any) -> int:
        """Return how many rows there are."""
        statement = self._statement()
        with connection.cursor() as cursor:
            counting = f"SELECT COUNT(*) FROM ({statement.sql}) counted"  # noqa: S608 - as Django compiled it
            cursor.execute(counting, statement.values(given))
            return int(cursor.fetchone()[0])

    def _statement(self) -> _Statement:
        if connection.vendor not in self._of_vendor:
            first, again = self._compiled(), self._compiled()
            if first.parameters != again.parameters:
                raise TypeError("a compiled statement would keep the moment it was built in: expected Now() or a Given")
            self._of_vendor[connection.vendor] = again
        return self._of_vendor[connection.vendor]

    def _compiled(self) -> _Statement:
        compiler = self._build().query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        columns = (column for column, _sql, _alias in compiler.select[: compiler.col_count])
        return _Statement(sql, tuple(parameters), tuple(columns))


def _read(value: Any, readers: list[Callable[..., Any]], column: Any) -> Any:
    for reader in readers:
        value = reader(value, column, connection)
    return value
