"""What no linter holds: the length of functions, and where anything may be caught. Read from the syntax tree."""

import ast

from tests.architecture.allowed import BROAD_EXCEPTS
from tests.architecture.source import functions, program_files, tree
from tests.tables import each_row

FUNCTION_LINES = 40


def test_functions_stay_short() -> None:
    every = ((path, node) for path in program_files() for node in functions(tree(path)))
    assert [f"{path}: {said}" for path, node in every if (said := too_long(node))] == []


def test_what_is_caught_broadly_is_caught_where_that_is_right() -> None:
    """And nowhere is it granted in vain."""
    found = {
        path for path in program_files() for each in handlers(tree(path)) if is_broad(each) and not raises_on(each)
    }
    assert found == BROAD_EXCEPTS.keys()


# -- The checks themselves, on snippets ------------------------------------------------------------------------------


@each_row("caught", ["", " Exception", " BaseException as e", " (OSError, Exception)", " builtins.Exception"])
def test_a_broad_except_is_seen(caught: str) -> None:
    handler = handlers(ast.parse(f"try: f()\nexcept{caught}: g()"))[0]
    assert is_broad(handler)
    assert not raises_on(handler)


def test_what_raises_on_is_seen() -> None:
    assert raises_on(handlers(ast.parse("try: f()\nexcept Exception:\n close()\n raise"))[0])


def test_a_docstring_does_not_count() -> None:
    body = "\n".join(["  1"] * (FUNCTION_LINES - 1))
    (fits,) = functions(ast.parse(f'def f():\n  """One\n  two."""\n{body}'))
    (too_big,) = functions(ast.parse(f"def f():\n{body}\n  1"))
    assert not too_long(fits)
    assert too_long(too_big)


# -- How they see it -------------------------------------------------------------------------------------------------

Function = ast.FunctionDef | ast.AsyncFunctionDef


def too_long(node: Function) -> str:
    first = node.body[0]
    documented = ast.get_docstring(node, clean=False) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    lines = (node.end_lineno or 0) - node.lineno + 1 - docstring
    return f"{node.name} has {lines} lines (line {node.lineno})" if lines > FUNCTION_LINES else ""


def handlers(module: ast.Module) -> list[ast.ExceptHandler]:
    return [node for node in ast.walk(module) if isinstance(node, ast.ExceptHandler)]


def is_broad(handler: ast.ExceptHandler) -> bool:
    match handler.type:
        case None:
            return True
        case ast.Tuple(elts=caught):
            pass
        case single:
            caught = [single]
    return any(ast.unparse(each).rpartition(".")[2] in {"Exception", "BaseException"} for each in caught)


def raises_on(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None
