"""Who writes a status? Found in the syntax tree, since no import contract can see it.

A heuristic, on the strict side: within a model's scope (its app, and every file that names it) a write counts as the
model's unless the code names another class as the receiver. In the file that owns another model's status, an unnamed
receiver is taken for that other model.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FIELD: Final = "status"
WRITERS: Final = {
    *("create", "update", "get_or_create", "update_or_create", "bulk_create", "bulk_update", "save"),
    *("acreate", "aupdate", "aget_or_create", "aupdate_or_create", "abulk_create", "abulk_update", "asave"),
}


@dataclass(frozen=True)
class Owned:
    """`model`, whose status only the file `owner` may write."""

    model: str
    app: str
    owner: str


@dataclass(frozen=True)
class Write:
    line: int
    receiver: str | None  # the class that the code names, if it names one
    code: str


def violations(path: str, module: ast.Module, owned: Owned, others: tuple[Owned, ...] = ()) -> list[str]:
    """Writes of `owned.model`'s status in the file at `path`, which is not allowed to."""
    if path == owned.owner or not (path.startswith(f"{owned.app}/") or owned.model in _names(module)):
        return []
    owns_another = any(path == other.owner for other in others)
    return [
        f"{path}:{write.line} writes the status of {owned.model}, which only {owned.owner} may: {write.code}"
        for write in writes(module)
        if write.receiver == owned.model or (write.receiver is None and not owns_another)
    ]


def writes(module: ast.Module) -> list[Write]:
    """Everything in `module` that may set a field called status."""
    return [
        Write(node.lineno, receiver, ast.unparse(node).splitlines()[0])
        for node, receiver in _writes(module, inside=None)
    ]


def _writes(node: ast.AST, *, inside: str | None) -> Iterator[tuple[ast.stmt | ast.expr, str | None]]:
    if isinstance(node, ast.ClassDef):
        inside = node.name
    if isinstance(node, ast.Attribute) and node.attr == FIELD and isinstance(node.ctx, ast.Store | ast.Del):
        yield node, _receiver(node.value, inside)
    elif isinstance(node, ast.Call) and _call_writes(node):
        yield node, _receiver(node.func, inside)
    elif isinstance(node, ast.Constant) and _sql_writes(node.value):
        yield node, None
    for child in ast.iter_child_nodes(node):
        yield from _writes(child, inside=inside)


def _call_writes(call: ast.Call) -> bool:
    name = _called(call.func)
    if name in {"setattr", "__setattr__"}:
        return any(_is_field(argument) for argument in call.args)
    if name in WRITERS:
        return _sets_field(call)
    return _is_class(name) and _has_keyword(call)


def _sets_field(call: ast.Call) -> bool:
    """`update(status=…)`, `**{"status": …}`, `defaults=dict(status=…)`, `update_fields=["status"]`, and so on."""
    values = [*call.args, *(word.value for word in call.keywords)]
    inner = [node for value in values for node in ast.walk(value)]
    return _has_keyword(call) or any(
        _is_field(node) or (isinstance(node, ast.Call) and _called(node.func) == "dict" and _has_keyword(node))
        for node in inner
        if isinstance(node, ast.expr)
    )


def _has_keyword(call: ast.Call) -> bool:
    return any(word.arg == FIELD for word in call.keywords)


def _sql_writes(value: object) -> bool:
    return isinstance(value, str) and bool(re.search(rf"(?is)\bupdate\s+\S+\s+set\b.*\b{FIELD}\b", value))


def _receiver(node: ast.expr, inside: str | None) -> str | None:
    """The class at the root of `Model.objects.filter(…).update`, or of `self` in its own methods; else None."""
    while True:
        match node:
            case ast.Attribute(attr=name) if _is_class(name):
                return name
            case ast.Attribute(value=value):
                node = value
            case ast.Call(func=value) | ast.Subscript(value=value) | ast.Await(value=value):
                node = value
            case ast.Name(id="self"):
                return inside
            case ast.Name(id=name) if _is_class(name):
                return name
            case _:
                return None


def _called(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _is_class(name: str) -> bool:
    return name[:1].isupper() and not name.isupper()


def _is_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == FIELD


def _names(module: ast.Module) -> set[str]:
    found = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    found |= {node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute)}
    return found | {alias.name for node in ast.walk(module) if isinstance(node, ast.ImportFrom) for alias in node.names}
