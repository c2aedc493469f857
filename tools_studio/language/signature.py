"""The signature of a tool's `run`, and of its `preview`, as the schema of its arguments; reading it runs nothing."""

import ast
import json
import re
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from hitlchat.base import docstrings
from tools_studio.language import annotations
from tools_studio.language.annotations import Schema, Types
from tools_studio.language.snippet import SignatureError, Snippet, cut, records

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAME_CAP = 64  # what the providers of models accept as the name of a property
PREVIEW = "preview"
_LOOKS_LIKE_IT = re.compile(rf"^(?:async[ \t]+)?def[ \t]+{PREVIEW}\b", re.MULTILINE)


@dataclass(frozen=True)
class Signature:
    """The signature as callers, approvers and models see it.

    `description` is all of the docstring but the parameters; `output_schema` is None if the tool does not say what it
    returns.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    description: str
    is_async: bool
    records: tuple[str, ...] = ()

    def glue(self, name: str = "run") -> str:
        """Return the code to append where arguments of `name` are records; see `annotations.glue`."""
        return annotations.glue(name, self.input_schema, self.records, is_async=self.is_async)


def read(source: str, name: str = "run", *, sections: bool = True) -> Signature:
    """Return the signature of the one top-level function `name`. Raises: SignatureError, with the line

    `sections`: of the docstring, see docstrings.read.
    """
    snippet = cut(source, name)
    types = Types(records(source))
    types.read_records()
    try:
        signature = _signature(snippet.function, types, sections=sections)
        _check_storable(signature)
    except SignatureError as error:
        raise SignatureError(str(error), error.line + snippet.offset) from error
    except RecursionError as error:
        raise SignatureError(f"the header of `{name}` is nested too deeply", snippet.offset + 1) from error
    return signature


@lru_cache(maxsize=256)
def runnable(source: str, name: str = "run") -> tuple[str, str]:
    """Return the code to run and the function to call: `name`, or the generated one that makes its records."""
    glue = read(source, name).glue(name) if "dataclass" in source else ""
    return source + glue, annotations.entry_of(name) if glue else name


def _signature(function: Function, types: Types, *, sections: bool) -> Signature:
    arguments = function.args
    # Every argument must have a name of its own: a call is an object of named values.
    for extra, stars in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if extra:
            written = f"{stars}{extra.arg}"
            raise SignatureError(f"expected named parameters only, not `{written}`", extra.lineno)
    if arguments.posonlyargs:
        first = arguments.posonlyargs[0]
        raise SignatureError(f"the parameter {first.arg!r} is positional-only: remove the `/`", first.lineno)
    missing = [None] * (len(arguments.args) - len(arguments.defaults))
    parameters: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(arguments.args, [*missing, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    names = [argument.arg for argument, _ in parameters]
    text = docstrings.read(ast.get_docstring(function) or "", names, docstrings.AUTHORED, sections=sections)
    properties = {
        argument.arg: _property(argument, default, types, text.parameters.get(argument.arg, ""))
        for argument, default in parameters
    }
    return Signature(
        input_schema={
            "type": "object",
            "properties": properties,
            "required": [argument.arg for argument, default in parameters if default is None],
            "additionalProperties": False,
        },
        output_schema=(types.schema_of(function.returns) or None) if function.returns else None,
        description=text.description,
        is_async=isinstance(function, ast.AsyncFunctionDef),
        records=tuple(types.records),
    )


def _property(argument: ast.arg, default: ast.expr | None, types: Types, description: str) -> Schema:
    name = argument.arg
    if not name.isascii() or len(name) > _NAME_CAP:
        raise SignatureError(
            f"expected a parameter name of at most {_NAME_CAP} letters a-z, digits and _", argument.lineno
        )
    if argument.annotation is None:
        raise SignatureError(f"the parameter {name!r} has no type: expected `{name}: str` or the like", argument.lineno)
    try:
        schema = types.schema_of(argument.annotation)
    except SignatureError as error:
        raise SignatureError(f"parameter {name!r}: {error}", error.line) from error
    if description:
        schema["description"] = schema.get("description", description) if "title" not in schema else description
    if default is not None:
        schema["default"] = annotations.of_parameter(name, default, schema)
    return schema


def _check_storable(signature: Signature) -> None:
    """Refuse lone surrogates and null characters, which cannot be stored or sent."""
    text = json.dumps(asdict(signature), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SignatureError("a text in the header of `run` has a lone surrogate") from error
    if "\\u0000" in text:
        raise SignatureError("a text in the header of `run` has a null character")


@lru_cache(maxsize=64)
def preview_of(code: str) -> Snippet | None:
    """Return the top-level function `preview`; None if there is none that can be called."""
    if not _LOOKS_LIKE_IT.search(code):
        return None
    try:
        return cut(code, PREVIEW)
    except SignatureError:
        return None


def check_preview(code: str, run: Signature) -> None:
    """Require that a `preview` takes the parameters of `run`. Raises: SignatureError"""
    if _LOOKS_LIKE_IT.search(code) and _parameters_of(read(code, PREVIEW)) != _parameters_of(run):
        raise SignatureError(
            "expected `preview` with the parameters of `run`: the same names, types and defaults in the same order",
            cut(code, PREVIEW).offset + 1,
        )


def _parameters_of(found: Signature) -> list[tuple[str, dict[str, object]]]:
    """Return the parameters' names and types, without descriptions."""
    properties = found.input_schema["properties"].items()
    return [(name, {key: value for key, value in part.items() if key != "description"}) for name, part in properties]
