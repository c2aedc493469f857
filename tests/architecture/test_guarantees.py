"""Every promise has a test, and every test of a promise has a promise."""

import ast
from functools import cache

from tests.architecture.source import ROOT
from tests.guarantees import GUARANTEES, PENDING


@cache
def covered() -> dict[str, list[str]]:
    """Which test files name which guarantee."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for identity in named(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(identity, []).append(path.relative_to(ROOT).as_posix())
    return found


def named(module: ast.Module) -> set[str]:
    """The ids in `@pytest.mark.guarantee("…")`, on a test or in `pytestmark`."""
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    marks = (call for call in calls if ast.unparse(call.func) == "pytest.mark.guarantee")
    return {ast.literal_eval(argument) for mark in marks for argument in mark.args}


def test_each_guarantee_has_a_test_that_names_it() -> None:
    assert sorted(GUARANTEES.keys() - covered().keys() - PENDING.keys()) == []


def test_each_named_guarantee_is_one() -> None:
    assert {identity: paths for identity, paths in covered().items() if identity not in GUARANTEES} == {}


def test_what_is_pending_is_a_guarantee_with_a_reason() -> None:
    assert PENDING.keys() - GUARANTEES.keys() == set()
    assert [identity for identity, reason in PENDING.items() if not reason.strip()] == []


def test_a_mark_is_seen_on_a_test_and_on_a_module() -> None:
    on_test = "@pytest.mark.guarantee('gate:a')\ndef test_it(): pass"
    on_module = "pytestmark = [pytest.mark.guarantee('gate:b', 'gate:c')]"
    assert named(ast.parse(f"{on_test}\n{on_module}")) == {"gate:a", "gate:b", "gate:c"}
