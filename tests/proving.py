"""Tests as they are named in tables, by a path below tests/ and a function: no table can name what is not there."""

import ast
from collections.abc import Iterable
from functools import cache

from tests.architecture.source import ROOT


@cache
def functions(path: str) -> frozenset[str]:
    """The test functions of tests/`path`; none if there is no such file."""
    file = ROOT / "tests" / path
    if not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def missing(tests: Iterable[str]) -> list[str]:
    """Those of `tests` (“gate/test_decide.py::test_…”) that do not exist."""
    parted = ((test, *test.partition("::")[::2]) for test in tests)
    return [test for test, path, name in parted if not name.startswith("test_") or name not in functions(path)]
