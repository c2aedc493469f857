"""Conditions of tools, as they are written: what is wrong with one is said when it is saved, not when it is needed."""

import ast
import builtins
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hitlchat import sandbox
from hitlchat.base import schemas
from hitlchat.base.schema_words import shown
from hitlchat.base.sentences import translatable

# What a condition may use, and what of the caller.
ARGUMENTS: Final = "args"
CALLER: Final = {"kind": "chat", "user": "ann", "conversation": None, "groups": ["staff"]}
_METHODS: Final = {"copy", "get", "items", "keys", "values"}
# Faults of the condition itself, whatever the values are.
_OWN_FAULTS: Final = ("AttributeError: ", "NameError: ", "TypeError: ")
_UNKNOWN: Final = "…"
_VALUES: Final[Mapping[str, Any]] = {"string": "12", "integer": 12, "number": 1.5, "boolean": True}
_LONGEST: Final = 300


def source(condition: str, names: str) -> str:
    """Return the code that evaluates a condition, with the parameters `names`."""
    return f"def run({names}):\n    return (\n{condition}\n)"


def misread(condition: str, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with a condition by its text alone, in a sentence; empty if it may be fine.

    `schema`: that of the arguments.
    """
    if not condition.strip():
        return ""
    try:
        tree = ast.parse(f"(\n{condition}\n)", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        return translatable(f"Not a Python expression: {said[:_LONGEST]}.")
    return next(filter(None, _misread(tree, schema)), "")


async def fault_in(condition: str, schema: Mapping[str, Any]) -> str:
    """Return what is wrong with a condition: by its text, and by how it runs with arguments as `schema` has them."""
    if not condition.strip():
        return ""
    if said := misread(condition, schema):
        return said
    problems = await sandbox.check(source(condition, f"{ARGUMENTS}: dict, caller: dict"))
    if found := next((each.message for each in problems if each.line is not None), ""):
        return _failing(found)
    return await _tried(condition, schema)


async def _tried(condition: str, schema: Mapping[str, Any]) -> str:
    arguments, is_known = _sample(schema)
    report = await sandbox.run(source(condition, f"{ARGUMENTS}, caller"), {ARGUMENTS: arguments, "caller": CALLER})
    if report.fault is None:
        if isinstance(report.result, bool) or not is_known:
            return ""
        return translatable(f"Expected True or False, not {shown(report.result)}.")
    is_own = report.fault.kind in {"syntax", "denied"} or report.fault.message.startswith(_OWN_FAULTS)
    return _failing(report.fault.message) if is_own and is_known else ""


def _failing(message: str) -> str:
    return translatable(f"It would fail: {message[:_LONGEST].rstrip('.')}.")


def _misread(tree: ast.Expression, schema: Mapping[str, Any]) -> Iterator[str]:
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="args" | "caller" as of), attr=attr):
                if not (node in called and attr in _METHODS):
                    yield translatable(f'Write {of}["{attr}"], not {of}.{attr}.')
            case ast.Subscript(value=ast.Name(id="args" | "caller" as of), slice=ast.Constant(value=str(name))):
                yield _no_member(of, name, schema)
            case ast.Name(id=name) if name not in {*own, *dir(builtins), ARGUMENTS, "caller"}:
                yield _no_name(name, schema)


def _names(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return [*properties] if isinstance(properties, dict) else []


def _no_member(of: str, name: str, schema: Mapping[str, Any]) -> str:
    known = _names(schema) if of == ARGUMENTS else [*CALLER]
    is_open = of == ARGUMENTS and schema.get("additionalProperties") is not False
    if is_open or name in known:
        return ""
    return translatable(f"There is no {of}[{shown(name)}]; expected {_one_of(known)}.")


def _no_name(name: str, schema: Mapping[str, Any]) -> str:
    if name in _names(schema):
        return translatable(f'Write args["{name}"], not {name}.')
    return translatable(f"There is no {name} in a condition; expected args or caller.")


def _one_of(names: list[str]) -> str:
    return f"one of {', '.join(map(shown, names))}" if names else "none"


def _sample(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return arguments that a call may have, and whether the schema says of all of them what they are."""
    samples = {name: _value(schema["properties"][name], schema) for name in _names(schema)}
    return samples, _UNKNOWN not in samples.values()


def _value(part: Any, schema: Mapping[str, Any]) -> Any:
    found = schemas.plain(part if isinstance(part, dict) else {}, schema)
    if found.choices:
        return found.choices[0][0]
    match found.schema.get("type"):
        case "array":
            return [_value(found.schema.get("items"), schema)] if "$ref" not in str(found.schema.get("items")) else []
        case "object":
            return {}
        case str(kind):
            return _VALUES.get(kind, _UNKNOWN)
    return _UNKNOWN
