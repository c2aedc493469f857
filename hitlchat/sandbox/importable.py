"""Modules that tools import: `hitl` with its granted functions, helper modules, and errors for what is not granted."""

import ast
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_monty import ExternalModule

MODULE = "hitl"
STUBS = Path(__file__).parent / "helpers" / "stubs"
HostFunction = Callable[..., Awaitable[Any]]

_MISSING = (
    re.compile(rf"cannot import name '(?P<name>\w+)' from '{MODULE}(?P<inside>(?:\.\w+)*)'"),
    re.compile(rf"module '{MODULE}(?P<inside>(?:\.\w+)*)' has no attribute '(?P<name>\w+)'"),
    re.compile(rf"No module named '{MODULE}(?P<inside>(?:\.\w+)*)\.(?P<name>\w+)'"),
)
_UNDEFINED = re.compile(r"name '(\w+)' is not defined")
_DEFINITION = re.compile(r"^([ \t]*)def ", re.MULTILINE)


def names_in(stubs: str) -> list[str]:
    """The dotted names that `stubs`, our own text, declares: functions, and those of classes such as `store`."""
    return list(_names(ast.parse(stubs).body, ""))


def _names(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}"
        elif isinstance(node, ast.ClassDef):
            yield from _names(node.body, f"{prefix}{node.name}.")


def awaitable(stubs: str) -> str:
    """The same declarations as an `async def` tool sees them: every call is awaited."""
    return _DEFINITION.sub(r"\1async def ", stubs)


def module(names: Iterable[str], stubs: str | None = None) -> ExternalModule:
    """The importable module with these dotted names: `store.get` becomes `get` in the submodule `store`."""
    tree: dict[str, Any] = {}
    for name in names:
        *parents, last = name.split(".")
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})
        branch[last] = _elsewhere
    return _module(tree, stubs)


def _module(tree: dict[str, Any], stubs: str | None) -> ExternalModule:
    attributes = {k: _module(v, None) if isinstance(v, dict) else v for k, v in tree.items()}
    return ExternalModule(attributes, stubs=stubs)


def _elsewhere(*_args: object, **_kwargs: object) -> None:
    raise RuntimeError("the driver answers every call itself")


def not_granted(name: str) -> str:
    return f"{name} is not granted to this tool: switch on the capability {name.partition('.')[0]!r}"


def missing_name(error: str) -> str | None:
    """The dotted name below `hitl` that an import or attribute error is about, if it is about one."""
    found = next(filter(None, (pattern.search(error) for pattern in _MISSING)), None)
    return f"{found['inside']}.{found['name']}".lstrip(".") if found else None


def undefined_name(error: str) -> str | None:
    found = _UNDEFINED.search(error)
    return found[1] if found else None


def is_offered(name: str, offered: Collection[str]) -> bool:
    """Return whether the product has this name, or something below it."""
    return any(each == name or each.startswith(f"{name}.") for each in offered)


@dataclass(frozen=True)
class HelperModule:
    """An importable module of helpers/, declared in helpers/stubs; those in `chance` need the capability `random`."""

    name: str
    functions: Mapping[str, Callable[..., Any]]
    constants: Mapping[str, Any] = field(default_factory=dict)
    chance: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        return sorted([*self.functions, *self.constants], key=str.lower)

    def external(self, powers: frozenset[str] | None) -> ExternalModule:
        """The module as the interpreter imports it; with `powers`, declared to the type checker as they allow."""
        stubs = None if powers is None else self.stubs(powers)
        return ExternalModule({**dict.fromkeys(self.functions, _elsewhere), **self.constants}, stubs=stubs)

    def stubs(self, powers: frozenset[str]) -> str:
        """Declarations of the module for the type checker, as `powers` allow."""
        return _stubs(self.name) + (_stubs(f"{self.name}.chance") if self.chance and "random" in powers else "")


@cache
def _stubs(name: str) -> str:
    return (STUBS / f"{name}.pyi").read_text(encoding="utf-8")
