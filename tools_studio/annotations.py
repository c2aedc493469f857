"""From a type annotation, as syntax, to JSON Schema."""

import ast
from collections.abc import Callable
from typing import Any

from . import bounds
from .snippet import SignatureError

Schema = dict[str, Any]

DECIMAL_PATTERN = r"^-?[0-9]{1,28}(\.[0-9]{1,28})?$"
_KNOWN = (
    "str, int, float, bool, None, list[T], dict[str, T], Literal[...], T | None, Any, date, datetime, Decimal "
    'or Annotated[T, "description", {"minimum": 1}]'
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
_LITERALS = "expected texts, whole numbers, True, False or None in Literal[...]"
_JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (str, "string"),
    (type(None), "null"),
)


def schema_of(node: ast.expr) -> Schema:
    """The schema of the values that `node` describes; SignatureError, with the line inside the snippet, if unknown."""
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str()):
            raise SignatureError("expected a type without quotes", node.lineno)
        case ast.BinOp(op=ast.BitOr()):
            return _union(_flat(node))
        case ast.Subscript():
            return _generic(_name(node.value), node)
        case _:
            return _named(_name(node), node)


def _name(node: ast.expr) -> str:
    """The last part of a possibly dotted name: `datetime.date` is `date`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    raise SignatureError(f"expected a type: {_KNOWN}", node.lineno)


def _named(name: str, node: ast.expr) -> Schema:
    name = _CAPITALS.get(name, name)
    if name not in _SIMPLE:
        raise SignatureError(f"unknown type {name!r}: {_REFUSED.get(name, f'expected {_KNOWN}')}", node.lineno)
    return dict(_SIMPLE[name])


def _generic(name: str, node: ast.Subscript) -> Schema:
    parameters = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    build = _GENERIC.get(_CAPITALS.get(name, name))
    if build is None:
        _named(name, node)
        raise SignatureError(f"the type {name!r} takes nothing in brackets", node.lineno)
    if not parameters:
        raise SignatureError(f"expected a type in the brackets of {name!r}", node.lineno)
    return build(parameters)


def _list(parameters: list[ast.expr]) -> Schema:
    if len(parameters) != 1:
        raise SignatureError("expected one type, as in list[str]", parameters[0].lineno)
    return {"type": "array", "items": schema_of(parameters[0])}


def _dict(parameters: list[ast.expr]) -> Schema:
    if len(parameters) != 2 or schema_of(parameters[0]) != {"type": "string"}:
        raise SignatureError("expected dict[str, T]: the keys of a JSON object are text", parameters[0].lineno)
    values = schema_of(parameters[1])
    return {"type": "object", "additionalProperties": values} if values else {"type": "object"}


def _optional(parameters: list[ast.expr]) -> Schema:
    if len(parameters) != 1:
        raise SignatureError("expected one type, as in Optional[str]", parameters[0].lineno)
    return _union([*parameters, ast.Constant(value=None)])


def _flat(node: ast.expr) -> list[ast.expr]:
    parts: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        parts.insert(0, node.right)
        node = node.left
    return [node, *parts]


def _union(parts: list[ast.expr]) -> Schema:
    """One schema for all of `parts`; nested unions are joined, the same type twice counts once."""
    branches: list[Schema] = []
    for part in parts:
        schema = schema_of(part)
        inner = schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
        branches.extend(branch for branch in inner if branch not in branches)
    if {} in branches:
        return {}
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _literal(parameters: list[ast.expr]) -> Schema:
    values = [_literal_value(node) for node in parameters]
    types = {next(name for kind, name in _JSON_TYPES if isinstance(value, kind)) for value in values}
    return {"type": types.pop(), "enum": values} if len(types) == 1 else {"enum": values}


def _literal_value(node: ast.expr) -> str | int | bool | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise SignatureError(_LITERALS, node.lineno) from error
    if value is None or isinstance(value, str | int):
        return value
    raise SignatureError(_LITERALS, node.lineno)


def _annotated(parameters: list[ast.expr]) -> Schema:
    schema = schema_of(parameters[0])
    for node in parameters[1:]:
        try:
            extra = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            extra = None
        if isinstance(extra, str):
            schema["description"] = extra
        elif isinstance(extra, dict):
            schema |= _bounded(extra, schema, node.lineno)
        else:
            raise SignatureError('expected Annotated[T, "description", {"minimum": 1}]', node.lineno)
    return schema


def _bounded(extra: dict[Any, Any], schema: Schema, line: int) -> Schema:
    try:
        return bounds.check(extra, schema)
    except ValueError as error:
        raise SignatureError(str(error), line) from error


_GENERIC: dict[str, Callable[[list[ast.expr]], Schema]] = {
    "list": _list,
    "dict": _dict,
    "Optional": _optional,
    "Union": _union,
    "Literal": _literal,
    "Annotated": _annotated,
}
