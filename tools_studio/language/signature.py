"""The signature of a tool's `run` is the schema of its arguments; reading it runs nothing of the tool."""

import ast
import inspect
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from tools_studio.language import annotations, records
from tools_studio.language.annotations import Types
from tools_studio.language.coercion import Schema
from tools_studio.language.snippet import SignatureError, cut

_FIELD = re.compile(r"(\s*):param\s+(?:\S+\s+){0,3}?(\w+)\s*:\s*(.*)")
_PLAIN = re.compile(r"(\s*)(?:[-*]\s+)?`{0,2}(\w+)`{0,2}(?:\s*\([^()]*\))?\s*:\s*(.*)")
_HEADING = re.compile(r"\s*(?:args|arguments|parameters|params)\s*:?\s*", re.IGNORECASE)


@dataclass
class Text:
    """The prose of a docstring, and the description of each parameter it mentions."""

    prose: list[str] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The first line."""
        return self.prose[0].strip() if self.prose else ""

    @property
    def description(self) -> str:
        """All of it but the parameters."""
        return "\n".join(self.prose).strip()


def read_docstring(docstring: str, names: Collection[str]) -> Text:
    """Split `docstring` into prose and the parameters among `names`: Google, reST or plain `name: text` lines.

    A line that is indented deeper than the parameter above it continues that parameter.
    """
    text = Text()
    current, margin = "", 0
    for line in inspect.cleandoc(docstring).splitlines():
        match = _FIELD.fullmatch(line) or _PLAIN.fullmatch(line)
        indent = len(line) - len(line.lstrip())
        if match and match[2] in names:
            current, margin = match[2], indent
            text.parameters[current] = match[3].strip()
        elif current and line.strip() and indent > margin:
            text.parameters[current] = f"{text.parameters[current]} {line.strip()}".strip()
        else:
            current = ""
            if not _HEADING.fullmatch(line):
                text.prose.append(line.rstrip())
    return text


Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAME_CAP = 64  # what the providers of models accept as the name of a property


@dataclass(frozen=True)
class Signature:
    """The signature that callers, approvers and models are told of.

    `title_line` is the first line of the docstring, `description` all of it but the parameters. `output_schema` is
    None if the tool does not say what it returns.
    """

    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    title_line: str
    description: str
    is_async: bool
    records: tuple[str, ...] = ()

    @property
    def glue(self) -> str:
        """Lines to run after the author's, when arguments of `run` are records; see `records.glue`."""
        return self.glue_for("run")

    def glue_for(self, name: str) -> str:
        return records.glue(name, self.input_schema, self.records, is_async=self.is_async)


def read(source: str, name: str = "run") -> Signature:
    """The signature of the one top-level `name` of `source`, or SignatureError with the line to look at."""
    snippet = cut(source, name)
    types = Types(records.read(source))
    types.read_records()
    try:
        signature = _signature(snippet.function, types)
        _check_storable(signature)
    except SignatureError as error:
        raise SignatureError(str(error), error.line + snippet.offset) from error
    except RecursionError as error:
        raise SignatureError(f"the header of `{name}` is nested too deeply", snippet.offset + 1) from error
    return signature


@lru_cache(maxsize=256)
def runnable(source: str, name: str = "run") -> tuple[str, str]:
    """The code to run and the name of the function to call: `name`, or what makes its records first."""
    glue = read(source, name).glue_for(name) if "dataclass" in source else ""
    return source + glue, records.entry_of(name) if glue else name


def _signature(function: Function, types: Types) -> Signature:
    _check_shape(function.args)
    parameters = list(_parameters(function.args))
    text = read_docstring(ast.get_docstring(function) or "", [argument.arg for argument, _ in parameters])
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
        title_line=text.title,
        description=text.description,
        is_async=isinstance(function, ast.AsyncFunctionDef),
        records=tuple(types.records),
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
    """Refuse text that a database or a wire refuses later: lone surrogates and null characters."""
    text = json.dumps(asdict(signature), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SignatureError("a text in the header of `run` has a lone surrogate") from error
    if "\\u0000" in text:
        raise SignatureError("a text in the header of `run` has a null character")
