"""Types of a tool's arguments: annotations, as syntax, to JSON Schema with its limits, and values of JSON to Python's.

Texts become dates and decimals by their formats before the call; a record is made inside the sandbox, by a few lines
that are put after the author's.
"""

import ast
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from hitlchat.base import expressions, schemas
from hitlchat.base.sentences import translatable
from hitlchat.gate.schema import BadArguments, Validator
from tools_studio.language.snippet import Record, SignatureError

Schema = dict[str, Any]
Arguments = dict[str, Any]
DECIMAL_PATTERN = r"^-?[0-9]{1,28}(\.[0-9]{1,28})?$"
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
# Of each format what texts of it look like, what makes the value, and an example.
_FORMATS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "date": (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", date.fromisoformat, "a date like 2026-01-31"),
    "date-time": (
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].*",
        datetime.fromisoformat,
        "a date and time like 2026-01-31T10:00:00Z",
    ),
    "decimal": (DECIMAL_PATTERN, Decimal, "a decimal number like 143.00"),
}
_MANY = {"items": "[{0} for item in {1}]", "additionalProperties": "{{key: {0} for key, item in {1}.items()}}"}


def check_bounds(bounds: dict[Any, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return `bounds` if all of them apply to the type of `schema`. Raises: ValueError"""
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
            f"the bound {'.'.join(map(str, error.path))!r} does not fit: {schemas.problem(error)}"
        ) from error
    except (RecursionError, OverflowError) as error:
        raise ValueError(translatable(f"expected a valid regular expression: {error}")) from error
    pattern = bounds.get("pattern", "")
    # A costly one is refused with the whole schema. What the linear engine lacks, one that backtracks would match.
    if not expressions.is_costly(pattern) and expressions.compiled(pattern) is None:
        raise ValueError(translatable("expected a pattern without look-around or back references"))
    return bounds


def of_parameter(name: str, node: ast.expr, schema: Schema) -> Any:
    """Return the default value that `node` writes. Raises: SignatureError, no literal, or it does not fit `schema`"""
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
    """Return the default of a dataclass's field, also from `field(default=…)` or `field(default_factory=list)`."""
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
    """The types that a tool's annotations may name: plain ones and its own dataclasses (records)."""

    records: Mapping[str, Record] = field(default_factory=dict)
    _made: dict[str, Schema] = field(default_factory=dict)

    def read_records(self) -> None:
        """Make the schema of every record. Raises: SignatureError, with the line in the author's source"""
        for record in self.records.values():
            self._record(record, ())

    def schema_of(self, node: ast.expr) -> Schema:
        """Return the schema of the type that `node` names. Raises: SignatureError, with the line inside the snippet"""
        match node:
            case ast.Constant(value=None):
                return {"type": "null"}
            case ast.Constant(value=str()):
                raise SignatureError("expected a type without quotes", node.lineno)
            case ast.BinOp(op=ast.BitOr()):
                return self._union(_flat(node))
            case ast.Subscript():
                name = _name(node.value)
                parameters = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                build = self._builders.get(_CAPITALS.get(name, name))
                if build is None:
                    self._named(name, node)
                    raise SignatureError(f"the type {name!r} takes nothing in brackets", node.lineno)
                if not parameters:
                    raise SignatureError(f"expected a type in the brackets of {name!r}", node.lineno)
                return build(parameters)
            case _:
                return self._named(_name(node), node)

    def _named(self, name: str, node: ast.expr) -> Schema:
        name = _CAPITALS.get(name, name)
        if name in self._made:
            return dict(self._made[name])
        if name not in _SIMPLE:
            raise SignatureError(f"unknown type {name!r}: {_REFUSED.get(name, f'expected {_KNOWN}')}", node.lineno)
        return dict(_SIMPLE[name])

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
        """Return one schema for all of `parts`, with nested unions flattened and no type twice."""
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
            raise SignatureError(f"the dataclass {record.name} contains itself, so it has no schema", record.line)
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


def coerce(schema: Schema, arguments: Arguments) -> Arguments:
    """Turn `arguments`, which fit `schema`, into Python values.

    Text becomes a date, a datetime or a Decimal where the schema says so, and `3.0` becomes `3` for a whole number.
    Raises: BadArguments
    """
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties")
    others = rest if isinstance(rest, dict) else {}
    values = {}
    for name, value in arguments.items():
        try:
            values[name] = _coerced(properties.get(name, others), value)
        except ValueError as error:
            raise BadArguments(f"{name}: {error}", name) from error
    return values


def problem(schema: Schema, value: Any) -> str:
    """Return why `value` is not what `schema` describes, formats included; empty if it is."""
    errors = [error.message for error in Validator(schema).iter_errors(value)]
    if errors:
        return str(errors[0])
    try:
        _coerced(schema, value)
    except ValueError as error:
        return str(error)
    return ""


def entry_of(function: str) -> str:
    """Return the name of the generated function that makes the records and then calls `function`."""
    return f"_hitl_{function}"


def glue(function: str, schema: Mapping[str, Any], records: Collection[str], *, is_async: bool) -> str:
    """Return code to append to the author's: the function `entry_of(function)`. Empty without records.

    `schema` is the input schema; its parts whose titles are in `records` are records.
    """
    used = {part["title"]: part for part in _parts(schema) if part.get("title") in records}
    if not used:
        return ""
    makers = "".join(_maker(f"_hitl_make_{name}", part, f"{name}(**value)", used) for name, part in used.items())
    call = f"{'await ' * is_async}{function}(**value)"
    entry = _maker(entry_of(function), schema, call, used).replace("(value)", "(**value)", 1)
    return f"\n\n{makers}{'async ' * is_async}{entry}"


def _name(node: ast.expr) -> str:
    """Return the last part of a possibly dotted name: `date` of `datetime.date`."""
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


def _coerced(schema: Schema, value: Any) -> Any:
    if "anyOf" in schema:
        branches = [branch for branch in schema["anyOf"] if not problem(branch, value)]
        if not branches:
            _refuse(value, "any of the allowed types")
        return _coerced(branches[0], value)
    if isinstance(value, str):
        return _from_text(value, schema["format"]) if schema.get("format") in _FORMATS else value
    if isinstance(value, float) and schema.get("type") == "integer":
        return int(value)
    if isinstance(value, list) and "items" in schema:
        return [_coerced(schema["items"], item) for item in value]
    return coerce(schema, value) if isinstance(value, dict) else value


def _from_text(value: str, form: str) -> Any:
    pattern, convert, expected = _FORMATS[form]
    try:
        if re.fullmatch(pattern, value):
            return convert(value)
    except ValueError:
        pass
    return _refuse(value, expected)


def _refuse(value: Any, expected: str) -> NoReturn:
    raise ValueError(f"{value!r} is not {expected}")


def _maker(function: str, schema: Mapping[str, Any], last: str, records: Collection[str]) -> str:
    lines = [f"def {function}(value):", "    value = dict(value)"]
    for key, part in schema.get("properties", {}).items():
        if made := _made(part, f"value[{key!r}]", records):
            lines += [f"    if {key!r} in value:", f"        value[{key!r}] = {made}"]
    return "\n".join([*lines, f"    return {last}"]) + "\n\n\n"


def _made(schema: Mapping[str, Any], value: str, records: Collection[str]) -> str:
    """Return an expression that makes the records in `value`; empty if it has none."""
    if schema.get("title") in records:
        return f"_hitl_make_{schema['title']}({value})"
    for key, many in _MANY.items():
        part = schema.get(key)
        if isinstance(part, dict) and (made := _made(part, "item", records)):
            return many.format(made, value)
    for branch in schema.get("anyOf", []):
        if made := _made(branch, value, records):
            return f"({made} if isinstance({value}, {'list' if 'items' in branch else 'dict'}) else {value})"
    return ""


def _parts(schema: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from _parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _parts(part)
