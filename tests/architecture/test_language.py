"""Plain English where a tool can hold it: what docs/architecture.md and design ask of docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT

PACKAGES: Final = ("hitlchat", "tools_studio")
LEFT_OUT: Final = ("migrations", "library/tools")
# A docstring begins with what it is about: a noun, or the verb of what is done or returned.
PRONOUNS: Final = """
    it its he she they them their this that these those what which who whose whom both each such one ones
"""
PREPOSITIONS: Final = """
    of to for from with without by in on at as about after before behind beside between during into like near off onto
    over per since than through till under until up upon via within
"""
OTHERS: Final = "and but not or so if where when why how whether there here also yet"
FIRST: Final = frozenset(f"{PRONOUNS} {PREPOSITIONS} {OTHERS}".split())

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def documented() -> Iterator[tuple[str, Documented, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not any(part in path.as_posix() for part in LEFT_OUT):
                yield from _in_file(path)


def _in_file(path: Path) -> Iterator[tuple[str, Documented, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield f"{path.relative_to(ROOT)}:{getattr(node, 'name', '')}", node, text.partition("\n")[0]


def test_a_docstring_begins_with_what_it_is_about() -> None:
    found = []
    for place, node, line in documented():
        word = re.match(r"[\w']+", line)
        # “One message” is a noun; a function that begins so does not say what it does.
        if word and word[0].lower() in FIRST and (word[0] != "One" or isinstance(node, ast.FunctionDef)):
            found.append(f"{place}: {line}")
    assert not found, "\n".join(found)
