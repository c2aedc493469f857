"""Annotations of types, as syntax, to JSON Schema, with defaults and the limits that an author may put on them."""

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from hitlchat.base import expressions, schema_words
from hitlchat.base.sentences import translatable
from tools_studio.language.coercion import DECIMAL_PATTERN, Schema, problem
from tools_studio.language.snippet import Record, SignatureError

_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
# Which types a keyword says something about: anywhere else it would look like a check and never be one.
_APPLIES: dict[str, frozenset[str]] = {
    **dict.fromkeys(_NUMERIC, frozenset({"integer", "number"})),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), frozenset({"string"})),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems"), frozenset({"array"})),
}
_EMPTY: dict[str, Any] = {"list": [], "dict": {}}
SCHEMA_CAP = 32 * 1024
_KNOWN = (
    "str, int, float, bool, None, list[T], dict[str, T], Literal[...], T | None, Any, date, datetime, Decimal, a "
    'dataclass or Annotated[T, "description", {"minimum": 1}]'
)
_SIMPLE: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "list": {"type": "array"},
    "dict": {"type": "object"},
    "Any": {},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "Decimal": {"type": "string", "format": "decimal", "pattern": DECIMAL_PATTERN},
}
_CAPITALS = {"List": "list", "Dict": "dict"}
_REFUSED = {
    "tuple": "use list[T] instead: JSON has no tuples",
    "Tuple": "use list[T] instead: JSON has no tuples",
    "set": "use list[T] instead: JSON has no sets",
    "bytes": "use str instead: JSON has no bytes",
    "object": "use Any instead",
}
_LITERALS = translatable("expected texts, whole numbers, True, False or None in Literal[...]")
_JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (str, "string"),
    (type(None), "null"),
)


def check_bounds(bounds: dict[Any, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return `bounds` if all of them mean something for the type of `schema`, or raise ValueError."""
    types = {branch.get("type") for branch in schema.get("anyOf", [schema])}
    for keyword in bounds:
        if keyword not in _APPLIES:
            raise ValueError(translatable(f"unknown bound {keyword!r}: expected one of {', '.join(_APPLIES)}"))
        if types.isdisjoint(_APPLIES[keyword]):
            raise ValueError(translatable(f"the bound {keyword!r} says nothing about this type"))
    if "pattern" in bounds and "pattern" in schema:
        raise ValueError(translatable("this type has a pattern of its own"))
    try:
        Draft202012Validator.check_schema(bounds)
    except SchemaError as error:
        raise ValueError(
            f"the bound {'.'.join(map(str, error.path))!r} does not fit: {schema_words.problem(error)}"
        ) from error
    except (RecursionError, OverflowError) as error:
        raise ValueError(translatable(f"expected a valid regular expression: {error}")) from error
    pattern = bounds.get("pattern", "")
    # A costly one is refused with the whole schema. What the linear engine lacks, one that backtracks would match.
    if not expressions.is_costly(pattern) and expressions.compiled(pattern) is None:
        raise ValueError(translatable("expected a pattern without look-around or back references"))
    return bounds


def of_parameter(name: str, node: ast.expr, schema: Schema) -> Any:
    """The default that `node` writes. SignatureError: not a literal, or it does not fit `schema`."""
    value: Any = None
    try:
        value = ast.literal_eval(node)
        same = json.loads(json.dumps(value, allow_nan=False)) == value
    except (ValueError, TypeError, SyntaxError):
        same = False
    if not same:
        raise SignatureError(f"the default of {name!r} must be a literal that JSON can hold", node.lineno)
    if complaint := problem(schema, value):
        raise SignatureError(f"the default of {name!r} does not fit its type: {complaint}", node.lineno)
    return value


def of_field(name: str, node: ast.expr, schema: Schema) -> Any:
    """The same for a field of a dataclass, which may be `field(default=…)` or `field(default_factory=list)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return of_parameter(name, node, schema)
    for keyword in node.keywords:
        if keyword.arg == "default":
            return of_parameter(name, keyword.value, schema)
        if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Name) and keyword.value.id in _EMPTY:
            return _EMPTY[keyword.value.id]
    raise SignatureError(f"the default of {name!r} must be a literal, or field(default_factory=list)", node.lineno)


@dataclass
class Types:
    """The types that annotations of one tool may name: the plain ones, and the tool's own records."""

    records: Mapping[str, Record] = field(default_factory=dict)
    _made: dict[str, Schema] = field(default_factory=dict)

    def read_records(self) -> None:
        """Make the schema of every record. SignatureError, with the line in the author's source."""
        for record in self.records.values():
            self._record(record, ())

    def schema_of(self, node: ast.expr) -> Schema:
        """The schema of the values that `node` describes. SignatureError, with the line inside the snippet: unknown."""
        match node:
            case ast.Constant(value=None):
                return {"type": "null"}
            case ast.Constant(value=str()):
                raise SignatureError("expected a type without quotes", node.lineno)
            case ast.BinOp(op=ast.BitOr()):
                return self._union(_flat(node))
            case ast.Subscript():
                return self._generic(_name(node.value), node)
            case _:
                return self._named(_name(node), node)

    def _named(self, name: str, node: ast.expr) -> Schema:
        name = _CAPITALS.get(name, name)
        if name in self._made:
            return dict(self._made[name])
        if name not in _SIMPLE:
            raise SignatureError(f"unknown type {name!r}: {_REFUSED.get(name, f'expected {_KNOWN}')}", node.lineno)
        return dict(_SIMPLE[name])

    def _generic(self, name: str, node: ast.Subscript) -> Schema:
        parameters = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        build = self._builders.get(_CAPITALS.get(name, name))
        if build is None:
            self._named(name, node)
            raise SignatureError(f"the type {name!r} takes nothing in brackets", node.lineno)
        if not parameters:
            raise SignatureError(f"expected a type in the brackets of {name!r}", node.lineno)
        return build(parameters)

    def _list(self, parameters: list[ast.expr]) -> Schema:
        if len(parameters) != 1:
            raise SignatureError("expected one type, as in list[str]", parameters[0].lineno)
        return {"type": "array", "items": self.schema_of(parameters[0])}

    def _dict(self, parameters: list[ast.expr]) -> Schema:
        if len(parameters) != 2 or self.schema_of(parameters[0]) != {"type": "string"}:
            raise SignatureError("expected dict[str, T]: the keys of a JSON object are text", parameters[0].lineno)
        values = self.schema_of(parameters[1])
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}

    def _optional(self, parameters: list[ast.expr]) -> Schema:
        if len(parameters) != 1:
            raise SignatureError("expected one type, as in Optional[str]", parameters[0].lineno)
        return self._union([*parameters, ast.Constant(value=None)])

    def _union(self, parts: list[ast.expr]) -> Schema:
        """Return one schema for all of `parts`; nested unions are joined, the same type twice counts once."""
        branches: list[Schema] = []
        for part in parts:
            schema = self.schema_of(part)
            inner = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
            branches.extend(branch for branch in inner if branch not in branches)
        if {} in branches:
            return {}
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _literal(self, parameters: list[ast.expr]) -> Schema:
        values: list[str | int | bool | None] = []
        for node in parameters:
            try:
                value = ast.literal_eval(node)
            except (ValueError, TypeError) as error:
                raise SignatureError(_LITERALS, node.lineno) from error
            if value is not None and not isinstance(value, str | int):
                raise SignatureError(_LITERALS, node.lineno)
            values.append(value)
        types = {next(name for kind, name in _JSON_TYPES if isinstance(value, kind)) for value in values}
        return {"type": types.pop(), "enum": values} if len(types) == 1 else {"enum": values}

    def _annotated(self, parameters: list[ast.expr]) -> Schema:
        schema = self.schema_of(parameters[0])
        for node in parameters[1:]:
            try:
                extra = ast.literal_eval(node)
            except (ValueError, TypeError, SyntaxError):
                extra = None
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(extra, dict):
                try:
                    schema |= check_bounds(extra, schema)
                except ValueError as error:
                    raise SignatureError(str(error), node.lineno) from error
            else:
                raise SignatureError('expected Annotated[T, "description", {"minimum": 1}]', node.lineno)
        return schema

    def _record(self, record: Record, inside: tuple[str, ...]) -> None:
        if record.name in self._made:
            return
        if record.name in inside:
            raise SignatureError(f"the record {record.name} holds itself; that has no schema", record.line)
        named = {node.id for each in record.fields for node in ast.walk(each.annotation) if isinstance(node, ast.Name)}
        for name in named & self.records.keys():
            self._record(self.records[name], (*inside, record.name))
        properties = {node.target.id: self._field(node) for node in record.fields if isinstance(node.target, ast.Name)}
        schema = {
            "type": "object",
            "title": record.name,
            **({"description": record.description} if record.description else {}),
            "properties": properties,
            "required": [name for name, part in properties.items() if "default" not in part],
            "additionalProperties": False,
        }
        if len(json.dumps(schema)) > SCHEMA_CAP:
            raise SignatureError(f"the schema of {record.name} is larger than {SCHEMA_CAP // 1024} KB", record.line)
        self._made[record.name] = schema

    def _field(self, node: ast.AnnAssign) -> Schema:
        assert isinstance(node.target, ast.Name)
        schema = self.schema_of(node.annotation)
        if node.value is None:
            return schema
        return schema | {"default": of_field(node.target.id, node.value, schema)}

    @property
    def _builders(self) -> dict[str, Callable[[list[ast.expr]], Schema]]:
        return {
            "list": self._list,
            "dict": self._dict,
            "Optional": self._optional,
            "Union": self._union,
            "Literal": self._literal,
            "Annotated": self._annotated,
        }


def _name(node: ast.expr) -> str:
    """The last part of a possibly dotted name: `datetime.date` is `date`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    raise SignatureError(f"expected a type: {_KNOWN}", node.lineno)


def _flat(node: ast.expr) -> list[ast.expr]:
    parts: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        parts.insert(0, node.right)
        node = node.left
    return [node, *parts]
