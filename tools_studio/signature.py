"""The signature of a tool's `run` is the schema of its arguments; reading it runs nothing of the tool."""

import ast
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from . import docstrings
from .annotations import Schema, schema_of
from .coercion import coerce, problem
from .snippet import SignatureError, cut

__all__ = ["Signature", "SignatureError", "coerce", "read"]

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAME_CAP = 64  # what the providers of models accept as the name of a property


@dataclass(frozen=True)
class Signature:
    """What callers, approvers and models are told about a tool.

    `title_line` is the first line of the docstring, `description` all of it but the parameters. `output_schema` is
    None if the tool does not say what it returns.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    title_line: str
    description: str
    is_async: bool


def read(source: str) -> Signature:
    """The signature of the one top-level `run` of `source`, or SignatureError with the line to look at."""
    snippet = cut(source)
    try:
        signature = _signature(snippet.function)
        _check_storable(signature)
    except SignatureError as error:
        raise SignatureError(str(error), error.line + snippet.offset) from error
    except RecursionError as error:
        raise SignatureError("the header of `run` is nested too deeply", snippet.offset + 1) from error
    return signature


def _signature(function: Function) -> Signature:
    _check_shape(function.args)
    parameters = list(_parameters(function.args))
    text = docstrings.read(ast.get_docstring(function) or "", [argument.arg for argument, _ in parameters])
    properties = {
        argument.arg: _property(argument, default, text.parameters.get(argument.arg, ""))
        for argument, default in parameters
    }
    return Signature(
        input_schema={
            "type": "object",
            "properties": properties,
            "required": [argument.arg for argument, default in parameters if default is None],
            "additionalProperties": False,
        },
        output_schema=(schema_of(function.returns) or None) if function.returns else None,
        title_line=text.title,
        description=text.description,
        is_async=isinstance(function, ast.AsyncFunctionDef),
    )


def _check_shape(arguments: ast.arguments) -> None:
    """Every argument must have a name of its own: a call is an object of named values."""
    for extra, stars in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if extra:
            raise SignatureError(f"expected named parameters only, not `{stars}{extra.arg}`", extra.lineno)
    if arguments.posonlyargs:
        first = arguments.posonlyargs[0]
        raise SignatureError(f"the parameter {first.arg!r} is positional-only: remove the `/`", first.lineno)


def _parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Every parameter with its default, in the author's order."""
    missing = [None] * (len(arguments.args) - len(arguments.defaults))
    yield from zip(arguments.args, [*missing, *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def _property(argument: ast.arg, default: ast.expr | None, description: str) -> Schema:
    name = argument.arg
    if not name.isascii() or len(name) > _NAME_CAP:
        raise SignatureError(
            f"expected a parameter name of at most {_NAME_CAP} letters a-z, digits and _", argument.lineno
        )
    if argument.annotation is None:
        raise SignatureError(f"the parameter {name!r} has no type: expected `{name}: str` or the like", argument.lineno)
    try:
        schema = schema_of(argument.annotation)
    except SignatureError as error:
        raise SignatureError(f"parameter {name!r}: {error}", error.line) from error
    if description:
        schema.setdefault("description", description)
    if default is not None:
        schema["default"] = _default(name, default, schema)
    return schema


def _default(name: str, node: ast.expr, schema: Schema) -> Any:
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


def _check_storable(signature: Signature) -> None:
    """Refuse text that a database or a wire refuses later: lone surrogates and null characters."""
    text = json.dumps(asdict(signature), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SignatureError("a text in the header of `run` has a lone surrogate") from error
    if "\\u0000" in text:
        raise SignatureError("a text in the header of `run` has a null character")
