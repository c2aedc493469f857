"""Dataclasses in a tool's code as types of its arguments: their fields are schemas of objects.

Like the header of `run`, a class is cut out of the source and parsed alone. Calls carry JSON, so a record is made
inside the sandbox, by a few lines that are put after the author's.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools_studio.language.snippet import SNIPPET_CAP, Line, SignatureError, between, logical_lines, plain

MOST = 20


@dataclass(frozen=True)
class Record:
    """A dataclass: its fields in order, each with its annotation and default; lines count as in the author's source."""

    name: str
    description: str
    fields: tuple[ast.AnnAssign, ...]
    line: int


def read(source: str) -> dict[str, Record]:
    """The dataclasses of `source` by name. SignatureError: one cannot be read."""
    text = plain(source)
    lines = list(logical_lines(text))
    starts = [number for number, line in enumerate(lines) if _is_dataclass(lines, number, line)]
    if len(starts) > MOST:
        raise SignatureError(f"at most {MOST} dataclasses can be read", lines[starts[MOST]].row)
    found = [_record(text, lines, number) for number in starts]
    return {record.name: record for record in found}


def _is_dataclass(lines: list[Line], number: int, line: Line) -> bool:
    decorator = lines[number - 1].words if number else []
    return line.depth == 0 and line.words[0] == "class" and decorator[:1] == ["@"] and "dataclass" in decorator


def _record(text: str, lines: list[Line], number: int) -> Record:
    header = lines[number]
    name = header.words[1] if len(header.words) > 1 else ""
    body = [line for line in _body(lines, number) if _is_field(line)]
    written = "\n".join(between(text, line.tokens[0], line.tokens[-1]) for line in body)
    if len(written.encode("utf-8", "replace")) > SNIPPET_CAP:
        raise SignatureError(f"the fields of {name} take more than {SNIPPET_CAP // 1024} KB", header.row)
    fields = tuple(_field(text, line) for line in body)
    return Record(name, _docstring(lines, number), fields, header.row)


def _body(lines: list[Line], number: int) -> Iterator[Line]:
    for line in lines[number + 1 :]:
        if line.depth == 0:
            return
        if line.depth == 1:
            yield line


def _is_field(line: Line) -> bool:
    return len(line.words) > 2 and line.words[0].isidentifier() and line.words[1] == ":"


def _field(text: str, line: Line) -> ast.AnnAssign:
    code = between(text, line.tokens[0], line.tokens[-1])
    try:
        (node,) = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SignatureError("expected a field such as `count: int = 1`", line.row) from error
    if not isinstance(node, ast.AnnAssign):
        raise SignatureError("expected a field such as `count: int = 1`", line.row)
    ast.increment_lineno(node, line.row - 1)
    return node


def _docstring(lines: list[Line], number: int) -> str:
    first = next(_body(lines, number), None)
    if first is None or len(first.tokens) != 1 or first.words[0][-1:] not in ("'", '"'):
        return ""
    try:
        value = ast.literal_eval(first.tokens[0].string)
    except (ValueError, SyntaxError):
        return ""
    return " ".join(value.split()) if isinstance(value, str) else ""


def entry_of(function: str) -> str:
    """Return what is to be called in place of `function`, which takes records."""
    return f"_hitl_{function}"


def glue(function: str, schema: Mapping[str, Any], records: Collection[str], *, is_async: bool) -> str:
    """Lines to put after the author's code: its `entry_of`, which makes the records and then calls `function`.

    `schema` is the input schema; a part of it whose title is in `records` is one. Empty when there is none.
    """
    used = {part["title"]: part for part in _parts(schema) if part.get("title") in records}
    if not used:
        return ""
    makers = "".join(_maker(f"_hitl_make_{name}", part, f"{name}(**value)", used) for name, part in used.items())
    call = f"{'await ' * is_async}{function}(**value)"
    entry = _maker(entry_of(function), schema, call, used).replace("(value)", "(**value)", 1)
    return f"\n\n{makers}{'async ' * is_async}{entry}"


def _maker(function: str, schema: Mapping[str, Any], last: str, records: Collection[str]) -> str:
    lines = [f"def {function}(value):", "    value = dict(value)"]
    for key, part in schema.get("properties", {}).items():
        if made := _made(part, f"value[{key!r}]", records):
            lines += [f"    if {key!r} in value:", f"        value[{key!r}] = {made}"]
    return "\n".join([*lines, f"    return {last}"]) + "\n\n\n"


def _made(schema: Mapping[str, Any], value: str, records: Collection[str]) -> str:
    """An expression for `value` with its records made; empty when it holds none."""
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


_MANY = {"items": "[{0} for item in {1}]", "additionalProperties": "{{key: {0} for key, item in {1}.items()}}"}


def _parts(schema: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from _parts(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _parts(part)
