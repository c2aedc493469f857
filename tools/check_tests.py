"""Does a test that is not marked slow bet on time? It waits for a state instead (tests/waiting.py), or is slow."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parent.parent / "tests"
# Fixed waits, clocks of real time and of processors, memory, and second tries.
BETS: Final = frozenset(
    ("sleep", "wait_for_timeout", "monotonic", "perf_counter", "process_time", "thread_time", "getrusage", "flaky")
)
SLOW: Final = "pytest.mark.slow("


def bets(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each bet outside of slow tests; none if the whole module is slow."""
    if any(text.startswith("pytestmark = ") and SLOW in text for text in map(ast.unparse, module.body)):
        return
    for node in module.body:
        # Not the marks of single rows: the others are not slow.
        if not any(ast.unparse(mark).startswith(SLOW) for mark in getattr(node, "decorator_list", [])):
            yield from _in(node)


def _in(node: ast.stmt) -> Iterator[tuple[int, str]]:
    for each in ast.walk(node):
        # `sleep(0)` lets others have their turn, and waits for nothing.
        if isinstance(each, ast.Call) and not ast.unparse(each).endswith("sleep(0)"):
            name = ast.unparse(each.func).rpartition(".")[2]
            if name in BETS:
                yield each.lineno, name


def main() -> int:
    files = sorted(TESTS.rglob("test_*.py"))
    found = [(file, *bet) for file in files for bet in bets(ast.parse(file.read_text(encoding="utf-8")))]
    for file, line, name in found:
        sys.stderr.write(f"{file.relative_to(TESTS.parent)}:{line}: {name}: wait for a state, or mark the test slow\n")
    sys.stdout.write(f"{len(files)} files of tests, {len(found)} bets on time\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
