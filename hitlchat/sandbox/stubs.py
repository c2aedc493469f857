"""The declarations of the module `hitl` that a tool is checked against."""

import ast
import re
from collections.abc import Iterator

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
