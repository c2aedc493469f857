"""There is one way into a tool. Found in the syntax tree, since a second one would have no test of its own."""

import ast
from collections.abc import Callable
from functools import cache

import pytest

from tests.architecture.source import program_files, tree
from tests.tables import each_row

pytestmark = pytest.mark.guarantee("gate:one-funnel")

PERFORM = "hitlchat/gate/perform.py"
SOURCES = "hitlchat/gate/sources.py"
SETTLING = "hitlchat/gate/settling.py"
SANDBOX = "hitlchat/sandbox/"
DOES = (ast.Attribute, ast.ImportFrom, ast.Call)


def uses(matches: Callable[[ast.AST], bool]) -> set[tuple[str, str]]:
    """Where the program does something, and what it says there."""
    return {(path, ast.unparse(node)) for path, nodes in _nodes().items() for node in nodes if matches(node)}


def _named(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


@cache
def _nodes() -> dict[str, list[ast.AST]]:
    """The nodes of each file of the program that could do something of the kind: walking takes longer than a match."""
    paths = (path for path in program_files() if not path.startswith(SANDBOX))
    return {path: [node for node in ast.walk(tree(path)) if isinstance(node, DOES)] for path in paths}


def attribute(name: str, *not_of: str) -> Callable[[ast.AST], bool]:
    return lambda node: (
        isinstance(node, ast.Attribute) and node.attr == name and not ast.unparse(node.value).startswith(not_of)
    )


def imports(module: str, *names: str) -> Callable[[ast.AST], bool]:
    return lambda node: (
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith(module)
        and any(alias.name in names for alias in node.names)
    )


@pytest.mark.guarantee("SR-32")
def test_only_the_gates_performing_file_executes_a_tool_of_a_source() -> None:
    assert uses(attribute("execute", "cursor", "connection", "super()")) == {
        (PERFORM, "source(call.source).execute"),
        (SETTLING, "perform.execute"),
    }


def test_only_the_gates_performing_file_gets_hold_of_a_source_and_only_the_sources_file_looks() -> None:
    assert {path for path, _ in uses(imports("hitlchat.gate.sources", "source"))} == {PERFORM}
    looks = uses(lambda node: isinstance(node, ast.Call) and attribute("preview")(node.func))
    assert {path for path, _ in looks if path.startswith("hitlchat/gate/")} == {SOURCES}
    assert {path for path, _ in uses(attribute("TOOL_SOURCES"))} == {SOURCES}


@pytest.mark.guarantee("SR-32")
def test_only_the_gate_claims_and_executes_calls() -> None:
    taken = uses(lambda node: attribute("claim")(node) and ast.unparse(node).endswith("perform.claim"))
    assert taken == set()
    started = uses(lambda node: attribute("start")(node) and ast.unparse(node).endswith("perform.start"))
    assert started == {(SETTLING, "perform.start")}
    assert uses(imports("hitlchat.gate.perform", "claim", "start", "execute", "begin")) == set()


def test_only_the_gates_performing_file_begins_work_that_is_a_call_of_its_own() -> None:
    assert uses(attribute("delegate")) == {(PERFORM, "agents.delegate")}
    assert {path for path, _ in uses(imports("hitlchat.gate.sources", "delegating"))} == {"hitlchat/gate/stopping.py"}


def test_code_of_tools_is_run_by_their_source_and_conditions_by_the_policy() -> None:
    assert {path for path, code in uses(attribute("run")) if code.endswith("sandbox.run")} == {
        "hitlchat/gate/policy.py",
        "tools_studio/source.py",
    }


def test_nobody_goes_behind_the_sandboxs_door() -> None:
    assert uses(imports("hitlchat.sandbox", "run", "engine", "lend")) == set()
    assert uses(imports("hitlchat.sandbox.", "run", "lend", "workers")) == set()


def test_only_the_gate_makes_decisions_and_approvals() -> None:
    made = uses(lambda node: isinstance(node, ast.Call) and _named(node.func) in {"Decision", "Approval"})
    assert {path for path, _ in made} == {"hitlchat/gate/decide.py", "hitlchat/gate/submit.py"}
    managers = {f"{model}.objects" for model in ("Decision", "Approval", "ToolCall", "AuditEvent")}
    created = uses(lambda node: attribute("create")(node) and ast.unparse(node).rpartition(".")[0] in managers)
    assert created == {("hitlchat/gate/transition.py", "AuditEvent.objects.create")}


@each_row("code", ["source('studio').execute(call)", "run = StudioSource().execute", "await anything.execute(x)"])
@pytest.mark.guarantee("SR-32")
def test_a_second_way_in_would_be_seen(code: str) -> None:
    found = [node for node in ast.walk(ast.parse(code)) if attribute("execute", "cursor")(node)]
    assert len(found) == 1
