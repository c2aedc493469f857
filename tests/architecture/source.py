"""Our own source, as text and as syntax trees."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tools import messages

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = ("hitlchat", "tools_studio")
TEXT: Final = {
    "",
    ".cfg",
    ".css",
    ".html",
    ".js",
    ".json",
    ".lock",
    ".md",
    ".py",
    ".sh",
    ".toml",
    ".txt",
    ".yaml",
    ".yml",
}


@cache
def program_files() -> list[str]:
    """The paths of the program's modules, without migrations."""
    paths = (path for folder in PROGRAM for path in (ROOT / folder).rglob("*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in paths if "migrations" not in path.parts)


@cache
def text_files() -> list[str]:
    """The paths of everything that we wrote: tracked or about to be, and not of another project."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    paths = (path for path in listed if path and (ROOT / path).is_file() and Path(path).suffix in TEXT)
    return sorted(path for path in paths if not path.startswith("static/vendor/"))


@cache
def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def tree(path: str) -> ast.Module:
    return messages.tree(ROOT / path)


def functions(module: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
