"""Statements that are compiled once: functions that return a QuerySet, whose arguments stand for values.

Django builds and compiles a QuerySet at each use, which takes ten times as long as the database's answer. Here that is
done when the function is first called; from then on its SQL is sent with other values:

    @compiled
    def _of_call(call_id: UUID) -> QuerySet[Approval]:
        return Approval.objects.select_related("call__tool").filter(call_id=call_id)

    _of_call(call.pk).one()

Settings and the time must not be in one, as both would stay what they were: the clock is the database's, by Now().
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from inspect import signature
from typing import Any, Final, Generic, ParamSpec, TypeVar, get_args, get_origin
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.db.models import (
    BooleanField,
    DateTimeField,
    Field,
    IntegerField,
    Model,
    Q,
    QuerySet,
    TextField,
    UUIDField,
    Value,
)
from django.db.models.expressions import CombinedExpression, Expression
from django.db.models.functions import Now
from django.db.models.sql import UpdateQuery

P = ParamSpec("P")
R = TypeVar("R")

# By the types of parameters.
FIELDS: Final[Mapping[type, "Field[Any, Any]"]] = {
    bool: BooleanField(),
    datetime: DateTimeField(),
    int: IntegerField(),
    str: TextField(),
    UUID: UUIDField(),
}
# A list stands for so many values, the fewest of these that hold it: it is filled up with its last one.
SIZES: Final = (1, 10, 100)
MOST: Final = SIZES[-1]

# How many rows are counted at most.
_MOST: Final = " most"

Values = dict[str, Any]
# Its name, and the time that the database writes into it.
Column = tuple[str, Expression | None]


class Definition(Generic[P]):
    """A function whose arguments stand for values."""

    def __init__(self, define: Callable[P, Any]) -> None:
        self.define: Callable[..., Any] = define
        self._types = {name: each.annotation for name, each in signature(define).parameters.items()}
        self.lists = [name for name, kind in self._types.items() if get_origin(kind) is list]

    def values(self, args: tuple[Any, ...], more: Values) -> Values:
        """Map names to the values that came with a call of the function. TypeError: too many for a list, or none."""
        found = {}
        for name, value in (dict(zip(self._types, args, strict=False)) | more).items():
            if name not in self.lists:
                found[name] = value
            elif 0 < len(value) <= MOST:
                found[name] = size = next(each for each in SIZES if each >= len(value))
                found |= {f"{name} {at}": value[min(at, len(value) - 1)] for at in range(size)}
            else:
                raise TypeError(f"{name}: expected 1 to {MOST} values, got {len(value)}")
        return found

    def sizes(self, values: Values) -> tuple[int, ...]:
        return tuple(values[name] for name in self.lists)

    def defined(self, sizes: tuple[int, ...], prefix: str = "") -> Any:
        """Call the function; names of values begin with `prefix`."""
        lists = dict(zip(self.lists, sizes, strict=True))
        return self.define(*(_placeholders(prefix + name, kind, lists.get(name)) for name, kind in self._types.items()))


class condition(Definition[P]):  # noqa: N801 - a decorator
    """A function that returns a Q, for conditions on the rows of a statement."""

    def __init__(self, define: Callable[P, Q]) -> None:
        super().__init__(define)

    def __call__(self, *args: P.args, **more: P.kwargs) -> "Where":
        return Where((self,), (self.values(args, more),))


@dataclass(frozen=True)
class Where:
    """Conditions that hold together, and the values of each; with a `rest`, an update is compiled each time."""

    conditions: tuple[condition[Any], ...] = ()
    values: tuple[Values, ...] = ()
    rest: Q = field(default_factory=Q)

    def __and__(self, other: "Where") -> "Where":
        return Where(self.conditions + other.conditions, self.values + other.values, self.rest & other.rest)


class compiled(Definition[P], Generic[P, R]):  # noqa: N801 - a decorator
    """A function that returns a QuerySet; it is compiled when it is first asked: once for each way, and for each set
    of conditions.
    """

    def __init__(self, define: Callable[P, QuerySet[Any, R]]) -> None:
        super().__init__(define)
        self._prepared: dict[Any, _Prepared] = {}

    def __call__(self, *args: P.args, **more: P.kwargs) -> "Rows[R]":
        return Rows(self, self.values(args, more))

    def prepared(self, way: str, columns: tuple[Column, ...], values: Values, where: Where) -> "_Prepared":
        """Return what is sent to ask in one way; `columns`: those that an update writes, and times for the database to
        work out.

        TypeError: a moment is in it, which would be kept.
        """
        given = zip(where.conditions, where.values, strict=True)
        sizes = (self.sizes(values), *(each.sizes(its) for each, its in given))
        key = (connection.vendor, way, columns, where.conditions, sizes)
        if key not in self._prepared:
            made, again = (_Prepared(self._rows(where.conditions, sizes), way, columns) for _ in range(2))
            if made.parameters != again.parameters:
                raise TypeError("a compiled statement would keep the moment it was built in: expected Now() or a value")
            self._prepared[key] = made
        return self._prepared[key]

    def plain(self, values: Values, where: Where) -> QuerySet[Any, R]:
        rows: QuerySet[Any, R] = self.define(**values)
        given = zip(where.conditions, where.values, strict=True)
        return rows.filter(where.rest, *(each.define(**values) for each, values in given))

    def _rows(self, conditions: tuple[condition[Any], ...], sizes: tuple[tuple[int, ...], ...]) -> QuerySet[Any, R]:
        rows: QuerySet[Any, R] = self.defined(sizes[0])
        conditioned = [each.defined(sizes[at + 1], _prefix(at)) for at, each in enumerate(conditions)]
        # A union takes no filter, not even an empty one.
        return rows.filter(*conditioned) if conditioned else rows


@dataclass(frozen=True)
class Rows(Generic[R]):
    """What a statement finds with the values that came with a call. Each method sends it.

    TypeError: a value is missing, or None, which no comparison finds.
    """

    _of: compiled[Any, R]
    _values: Values
    _where: Where = Where()

    def where(self, conditions: Where) -> "Rows[R]":
        return replace(self, _where=self._where & conditions)

    def __iter__(self) -> Iterator[R]:
        return self._prepared("all").read(self._all)

    def one(self) -> R | None:
        """Return the one row, where there can be no other, or any of them; None without it."""
        return next(self._prepared("one").read(self._all), None)

    def first(self) -> R | None:
        return next(self._prepared("first").read(self._all), None)

    def exists(self) -> bool:
        return bool(self._prepared("exists").fetched(self._all))

    def count(self, most: int) -> int:
        """Return how many there are; no more are counted than `most`."""
        return int(self._prepared("count").fetched(self._all | {_MOST: most})[0][0])

    def update(self, **columns: Any) -> int:
        """Write these values, which may be None, and return into how many rows. A time by the database's clock, as
        Now() + timedelta(…), is compiled once, and must be one of few; other expressions are compiled each time.
        """
        expressions = {name: value for name, value in columns.items() if hasattr(value, "resolve_expression")}
        if self._where.rest or not all(map(_is_of_the_clock, expressions.values())):
            return self._of.plain(self._values, self._where).update(**columns)
        written = {_new(name): value for name, value in columns.items() if name not in expressions}
        return self._prepared("update", *((name, expressions.get(name)) for name in columns)).sent(self._all | written)

    @property
    def _all(self) -> Values:
        found = self._values
        for at, values in enumerate(self._where.values):
            found = found | {_prefix(at) + name: value for name, value in values.items()}
        return found

    def _prepared(self, way: str, *columns: Column) -> "_Prepared":
        if self._where.rest:
            raise TypeError("only an update can have a condition that is compiled each time")
        return self._of.prepared(way, columns, self._values, self._where)


def prefetch(rows: Collection[Model], name: str, statement: compiled[[list[UUID]], Any], by: str) -> None:
    """As Django's `prefetch_related` of `name`, with a statement that takes the rows' ids; `by`: whose column has one
    of them.
    """
    ids, found = [row.pk for row in rows], defaultdict[UUID, list[Any]](list)
    for at in range(0, len(ids), MOST):
        for each in statement(ids[at : at + MOST]):
            found[getattr(each, by)].append(each)
    for row in rows:
        # As Django keeps them.
        related = getattr(row, name).get_queryset()
        related._result_cache = found[row.pk]  # noqa: SLF001
        row.__dict__.setdefault("_prefetched_objects_cache", {})[name] = related


class _Given(Value):
    """Stands for a value that comes with each sending."""

    def __init__(self, name: str, output_field: "Field[Any, Any]") -> None:
        super().__init__(name, output_field=output_field)

    def as_sql(self, *_compiler_and_connection: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        return "%s", [self]

    def ready(self, values: Values) -> Any:
        value = values.get(self.value)
        if self.for_save:
            return self.output_field.get_db_prep_save(value, connection)
        if value is None:
            raise TypeError(f"{self.value}: expected a value; no comparison finds None")
        return self.output_field.get_db_prep_value(value, connection)


class _Prepared:
    """A QuerySet's SQL for one way to ask."""

    def __init__(self, rows: QuerySet[Any, Any], way: str, columns: tuple[Column, ...]) -> None:
        if way in ("one", "first"):
            rows = (rows.order_by() if way == "one" else rows)[:1]
        query = rows.query
        if way == "exists":
            query = query.exists()
        elif way == "update":
            field_of = rows.model._meta.get_field  # noqa: SLF001 - public, says Django
            query = query.chain(UpdateQuery)
            query.add_update_values(  # type: ignore[attr-defined]
                {name: time or _Given(_new(name), field_of(name)) for name, time in columns}
            )
        # This connection is never opened: it knows how its database speaks, and belongs to no thread.
        compiler = query.get_compiler(connection=connections.create_connection(DEFAULT_DB_ALIAS))
        sql, parameters = compiler.as_sql()
        self.parameters: tuple[Any, ...] = tuple(parameters)
        if way == "count":
            sql = f"SELECT COUNT(*) FROM ({sql} LIMIT %s) counted"  # noqa: S608 - as Django compiled it
            self.parameters += (_Given(_MOST, IntegerField()),)
        self._sql = sql
        self._rows, self._compiler = rows, compiler
        if way in ("all", "one", "first"):
            readers = compiler.get_converters([column for column, *_ in compiler.select[: compiler.col_count]])
            compiler.get_converters = lambda _columns: readers

    def sent(self, values: Values) -> int:
        with transaction.mark_for_rollback_on_error(DEFAULT_DB_ALIAS), connection.cursor() as cursor:
            cursor.execute(self._sql, self._ready(values))
            return int(cursor.rowcount)

    def fetched(self, values: Values) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(self._sql, self._ready(values))
            return list(cursor.fetchall())

    def read(self, values: Values) -> Iterator[Any]:
        """Return rows as the QuerySet would, by Django's own readers."""
        compiler, found = copy(self._compiler), self.fetched(values)
        compiler.execute_sql = lambda *_, **__: [found]
        reader: Any = self._rows._iterable_class  # noqa: SLF001
        return iter(reader(_Read(self._rows, compiler)))

    def _ready(self, values: Values) -> list[Any]:
        return [each.ready(values) if isinstance(each, _Given) else each for each in self.parameters]


class _Read:
    """A QuerySet, and its query, whose rows were fetched already."""

    _known_related_objects: Final[Values] = {}

    def __init__(self, rows: QuerySet[Any, Any], compiler: Any) -> None:
        self._rows, self._compiler, self.query, self.db = rows, compiler, self, rows.db

    def get_compiler(self, *_: Any, **__: Any) -> Any:
        return self._compiler

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows.query if hasattr(self._rows.query, name) else self._rows, name)


def _placeholders(name: str, kind: Any, size: int | None = None) -> Any:
    if size is not None:
        return [_placeholders(f"{name} {at}", get_args(kind)[0]) for at in range(size)]
    return _Given(name, next(field for one, field in FIELDS.items() if issubclass(kind, one)))


def _is_of_the_clock(value: Any) -> bool:
    return isinstance(value.lhs if isinstance(value, CombinedExpression) else value, Now)


def _new(name: str) -> str:
    return f"new {name}"


def _prefix(at: int) -> str:
    return f"{at} "
