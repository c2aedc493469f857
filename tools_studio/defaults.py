"""Default values, as syntax, to JSON."""

import ast
import json
from typing import Any

from tools_studio.coercion import problem
from tools_studio.formats import Schema
from tools_studio.snippet import SignatureError

_EMPTY: dict[str, Any] = {"list": [], "dict": {}}


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
