"""The commands of README.md and docs/: those in blocks, whole, and those that sentences name."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.architecture.source import ROOT, read

PAGES: Final = ("README.md", "SECURITY.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
BLOCK: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
SHELL: Final = ("sh", "bash", "console", "shell")
HEREDOC: Final = re.compile(r"<<'?(\w+)'?$")
PLACEHOLDER: Final = re.compile(r"<([a-z ]+)>")
MANAGE: Final = re.compile(r"\bmanage\.py ([a-z].*)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """`commands`: each may have several lines, as a here-document has."""

    page: str
    line: int
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks() -> Iterator[Block]:
    """Yield every block of a shell, in the order of the pages."""
    for page in PAGES:
        text = read(page)
        for found in BLOCK.finditer(text):
            if found[2] in SHELL:
                yield Block(page, text[: found.start()].count("\n") + 1, tuple(_commands(found[3])))


def mentions() -> Iterator[tuple[str, str]]:
    """Yield the page and the text of everything that a sentence sets as code."""
    for page in PAGES:
        for code in re.findall(r"`([^`]+)`", BLOCK.sub("", read(page))):
            yield page, " ".join(code.split())


def arguments(command: str) -> list[list[str]]:
    """Return what a command gives to `manage.py`, each time it calls that: not what is beyond a pipe or bracket."""
    found = []
    for text in re.split(r"(?=\bmanage\.py )", command.replace("\\\n", " ")):
        if match := MANAGE.match(text):
            words = shlex.shlex(match[1], posix=True, punctuation_chars="();|&")
            words.whitespace_split = True
            found.append([*_until_punctuation(words)])
    return found


def _until_punctuation(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word[0] in "();|&":
            return
        yield word


def _commands(text: str) -> Iterator[str]:
    """Yield the commands of a block, without lines that are only a comment."""
    command = ""
    for line in text.splitlines():
        command = f"{command}\n{line}" if command else line.strip()
        if not command or command.startswith("#"):
            command = ""
        elif _is_whole(command):
            yield command
            command = ""
    assert not command, f"a command without its end: {command}"


def _is_whole(command: str) -> bool:
    lines = command.splitlines()
    if heredoc := HEREDOC.search(lines[0]):
        return len(lines) > 1 and lines[-1] == heredoc[1]
    if command.endswith("\\"):
        return False
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True
