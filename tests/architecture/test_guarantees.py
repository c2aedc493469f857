"""Every promise has a test in `make test`, and every test of a promise has a promise."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tests.architecture.source import ROOT, read
from tests.guarantees import GUARANTEES


@dataclass(frozen=True)
class Held:
    """A guarantee that a test holds; `path`: of its file, from the root of the repository."""

    identity: str
    is_slow: bool
    test: str
    path: str


def guarantees(module: ast.Module, path: str) -> Iterator[Held]:
    """Yield each guarantee that a test or the module names."""
    of_all = [mark for node in module.body if isinstance(node, ast.Assign) for mark in marks([node.value])]
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found = [*of_all, *marks(node.decorator_list)]
            is_slow = any(name == "slow" for name, _ in found)
            for name, arguments in found:
                if name == "guarantee":
                    yield from (Held(identity, is_slow, node.name, path) for identity in arguments)


def marks(nodes: Iterable[ast.expr]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the arguments of each `pytest.mark.name(...)` that is not of a single row of a table."""
    for node in nodes:
        if isinstance(node, ast.List):
            yield from marks(node.elts)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("pytest.mark."):
            constants = [each.value for each in node.args if isinstance(each, ast.Constant)]
            yield ast.unparse(node.func).removeprefix("pytest.mark."), [str(each) for each in constants]


@cache
def in_all_files() -> list[Held]:
    paths = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    codes = ((path, read(path)) for path in paths)
    return [each for path, code in codes if "mark.guarantee(" in code for each in guarantees(ast.parse(code), path)]


def test_each_guarantee_has_a_test_that_is_not_slow() -> None:
    assert sorted(GUARANTEES.keys() - {each.identity for each in in_all_files() if not each.is_slow}) == []


def test_each_named_guarantee_is_one() -> None:
    assert {each.identity for each in in_all_files()} - GUARANTEES.keys() == set()


def test_marks_of_tests_and_modules_are_seen() -> None:
    module = """
pytestmark = [pytest.mark.django_db, pytest.mark.guarantee("a", "b")]
@pytest.mark.slow("reason")
@pytest.mark.guarantee("c")
def test_slow(): pass
def test_fast(): pass
"""
    expected = {("a", True), ("b", True), ("c", True), ("a", False), ("b", False)}
    assert {(each.identity, each.is_slow) for each in guarantees(ast.parse(module), "")} == expected
