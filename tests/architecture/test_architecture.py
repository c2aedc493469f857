"""What no linter holds: sizes, imports at the top, broad excepts. Read from the syntax tree."""

import ast
from collections.abc import Iterator

from tests.architecture.allowed import BROAD_EXCEPTS, OPTIONAL_IMPORTS
from tests.architecture.source import functions, program_files, tree
from tests.tables import each_row

FUNCTION_LINES = 40
POSITIONAL_PARAMETERS = 5


def test_functions_stay_short() -> None:
    assert [f"{path}: {said}" for path, node in every_function() if (said := too_long(node))] == []


def test_functions_take_few_positional_parameters() -> None:
    assert [f"{path}: {said}" for path, node in every_function() if (said := too_many_parameters(node))] == []


def test_imports_stand_at_the_top() -> None:
    found = [line for path, node in every_function() if not is_ready(path, node) for line in inner_imports(path, node)]
    assert found == []


def test_what_is_caught_broadly_is_logged() -> None:
    assert [f"{path}:{handler.lineno}" for path, handler in broad_excepts() if not logs(handler)] == []


def test_nothing_is_caught_broadly_but_where_that_is_right() -> None:
    assert [f"{path}:{handler.lineno}" for path, handler in broad_excepts() if path not in BROAD_EXCEPTS] == []


def test_no_exception_is_granted_in_vain() -> None:
    assert BROAD_EXCEPTS.keys() - {path for path, _ in broad_excepts()} == set()
    assert OPTIONAL_IMPORTS.keys() - set(program_files()) == set()


# -- The checks themselves, on snippets ------------------------------------------------------------------------------


@each_row("caught", ["", " Exception", " BaseException as e", " (OSError, Exception)", " builtins.Exception"])
def test_a_broad_except_is_seen(caught: str) -> None:
    handler = handlers(ast.parse(f"try: f()\nexcept{caught}: g()"))[0]
    assert is_broad(handler)
    assert not logs(handler)
    assert not raises_on(handler)


def test_what_logs_or_raises_on_is_seen() -> None:
    logging = handlers(ast.parse("try: f()\nexcept Exception:\n if x:\n  logger.exception('no')"))[0]
    raising = handlers(ast.parse("try: f()\nexcept Exception:\n close()\n raise"))[0]
    assert logs(logging)
    assert raises_on(raising)


def test_an_import_in_a_function_is_seen_once() -> None:
    nested = ast.parse("def f():\n def g():\n  from a.b import c\n import d")
    assert sorted(line for node in functions(nested) for line in inner_imports("x.py", node)) == [
        "x.py:3 imports a.b inside g",
        "x.py:4 imports d inside f",
    ]


def test_a_docstring_does_not_count_and_self_neither() -> None:
    body = "\n".join(["  1"] * (FUNCTION_LINES - 1))
    (fits,) = functions(ast.parse(f'def f():\n  """One\n  two."""\n{body}'))
    (too_big,) = functions(ast.parse(f"def f():\n{body}\n  1"))
    (five,) = functions(ast.parse("def f(self, a, b, c, d, e, *, g): pass"))
    (six,) = functions(ast.parse("def f(a, b, c, d, e, f): pass"))
    assert not too_long(fits)
    assert too_long(too_big)
    assert not too_many_parameters(five)
    assert too_many_parameters(six)


# -- How they see it -------------------------------------------------------------------------------------------------

Function = ast.FunctionDef | ast.AsyncFunctionDef


def every_function() -> Iterator[tuple[str, Function]]:
    return ((path, node) for path in program_files() for node in functions(tree(path)))


def broad_excepts() -> Iterator[tuple[str, ast.ExceptHandler]]:
    """Those that do not raise on what they caught."""
    found = ((path, handler) for path in program_files() for handler in handlers(tree(path)))
    return ((path, handler) for path, handler in found if is_broad(handler) and not raises_on(handler))


def too_long(node: Function) -> str:
    first = node.body[0]
    documented = ast.get_docstring(node, clean=False) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    lines = (node.end_lineno or 0) - node.lineno + 1 - docstring
    return f"{node.name} has {lines} lines (line {node.lineno})" if lines > FUNCTION_LINES else ""


def too_many_parameters(node: Function) -> str:
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    count = len(names) - (names[:1] in (["self"], ["cls"]))
    return f"{node.name} takes {count} (line {node.lineno})" if count > POSITIONAL_PARAMETERS else ""


def inner_imports(path: str, function: Function) -> list[str]:
    """The imports in `function` itself, those of functions inside it left out."""
    nested = {node for inner in functions(function) if inner is not function for node in ast.walk(inner)}
    optional = OPTIONAL_IMPORTS.get(path, set())
    return [
        f"{path}:{node.lineno} imports {module} inside {function.name}"
        for node in ast.walk(function)
        if node not in nested and isinstance(node, ast.Import | ast.ImportFrom)
        for module in imported(node)
        if module not in optional
    ]


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=module):
            return [module or "."]


def is_ready(path: str, node: Function) -> bool:
    """Django's own place for imports that need the app registry."""
    return path.endswith("apps.py") and node.name == "ready"


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


def logs(handler: ast.ExceptHandler) -> bool:
    calls = (node for node in ast.walk(handler) if isinstance(node, ast.Call))
    return any(ast.unparse(call.func).endswith("logger.exception") for call in calls)
