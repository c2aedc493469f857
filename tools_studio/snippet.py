"""Cut the header and the docstring of `run` out of a tool's source, without parsing the rest of it.

Hostile text can crash the parser of CPython, so the whole module goes only through `tokenize`; what reaches `ast.parse`
is a few kilobytes at most.
"""

import ast
import io
import tokenize
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

SOURCE_CAP = 64 * 1024
SNIPPET_CAP = 8 * 1024

Tokens = list[tokenize.TokenInfo]
_LAYOUT = {tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_DEFINES = {("def", "run"), ("class", "run"), ("run", "="), ("run", ":"), ("as", "run"), ("import", "run")}


class SignatureError(ValueError):
    """The source has no signature that a schema can be made from; `line` counts from 1 in the author's source."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Snippet:
    """The header of `run`, parsed. A node's `lineno` plus `offset` is the line in the author's source."""

    function: ast.FunctionDef | ast.AsyncFunctionDef
    offset: int


@dataclass(frozen=True)
class Line:
    """One logical line: its tokens without layout, and how deep it is indented."""

    depth: int
    tokens: Tokens

    @property
    def row(self) -> int:
        return self.tokens[0].start[0]

    @property
    def words(self) -> list[str]:
        """The tokens' text, with names as Python compares them."""
        return [unicodedata.normalize("NFKC", token.string) for token in self.tokens]


def cut(source: str) -> Snippet:
    """Return the one top-level `run` of `source`, its body reduced to the docstring, or raise SignatureError."""
    if len(source) > SOURCE_CAP or len(source.encode("utf-8", "replace")) > SOURCE_CAP:
        raise SignatureError(f"the source is larger than {SOURCE_CAP // 1024} KB")
    # A lone carriage return ends a line for Python and for the sandbox, but not for `tokenize`.
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = list(_lines(text))
    found = [number for number, line in enumerate(lines) if _defines_run(line)]
    if not found:
        raise SignatureError("expected a top-level `def run(...)` or `async def run(...)`")
    if len(found) > 1:
        raise SignatureError("expected one `run`, but here is a second one", lines[found[1]].row)
    return _snippet(text, lines, found[0])


def _snippet(text: str, lines: list[Line], number: int) -> Snippet:
    header = lines[number]
    if header.words[:2] != ["def", "run"] and header.words[:3] != ["async", "def", "run"]:
        raise SignatureError("expected `def run(...)` or `async def run(...)`", header.row)
    if number and lines[number - 1].words[0] == "@":
        raise SignatureError("expected `run` without a decorator", header.row)
    colon = _colon(header)
    body = header.tokens[colon + 1 :] or _next_body(lines, number)
    code = _between(text, header.tokens[0], header.tokens[colon]) + "\n " + (_docstring(body) or "pass")
    if len(code.encode("utf-8", "replace")) > SNIPPET_CAP:
        raise SignatureError(f"the header and docstring of `run` are larger than {SNIPPET_CAP // 1024} KB", header.row)
    return Snippet(_parse(code, header.row), header.row - 1)


def _lines(text: str) -> Iterator[Line]:
    depth = 0
    tokens: Tokens = []
    for token in _tokens(text):
        if token.type == tokenize.INDENT:
            depth += 1
        elif token.type == tokenize.DEDENT:
            depth -= 1
        elif token.type == tokenize.NEWLINE and tokens:
            yield Line(depth, tokens)
            tokens = []
        elif token.type not in _LAYOUT:
            tokens.append(token)


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except tokenize.TokenError as error:
        raise SignatureError(f"expected complete Python, but: {error.args[0]}", error.args[1][0]) from error
    except SyntaxError as error:
        raise SignatureError(f"expected Python, but: {error.msg}", error.lineno or 1) from error


def _defines_run(line: Line) -> bool:
    return line.depth == 0 and not _DEFINES.isdisjoint(_outside_brackets(line.words))


def _outside_brackets(words: list[str]) -> Iterator[tuple[str, str]]:
    """The neighbouring words that are in no brackets: `call(run=1)` defines nothing."""
    depth = 0
    for word, following in pairwise(words):
        if depth == 0:
            yield word, following
        depth += (word in "([{") - (word in ")]}")


def _colon(header: Line) -> int:
    """Where the header ends: its first colon outside brackets."""
    depth = 0
    for number, token in enumerate(header.tokens):
        if token.string == ":" and depth == 0:
            return number
        depth += (token.string in "([{") - (token.string in ")]}")
    raise SignatureError("expected a `:` after the header of `run`", header.row)


def _next_body(lines: list[Line], number: int) -> Tokens:
    following = lines[number + 1 : number + 2]
    if not following or following[0].depth == 0:
        raise SignatureError("expected an indented body after the header of `run`", lines[number].row)
    return following[0].tokens


def _docstring(body: Tokens) -> str:
    """The string literals that the body starts with, one after the other, or nothing."""
    parts: list[str] = []
    for token in body:
        if token.string == ";":
            break
        if token.type != tokenize.STRING:
            return ""
        parts.append(token.string)
    return " ".join(parts)


def _between(text: str, first: tokenize.TokenInfo, last: tokenize.TokenInfo) -> str:
    rows = text.split("\n")[first.start[0] - 1 : last.end[0]]
    rows[-1] = rows[-1][: last.end[1]]
    rows[0] = rows[0][first.start[1] :]
    return "\n".join(rows)


def _parse(code: str, row: int) -> ast.FunctionDef | ast.AsyncFunctionDef:
    try:
        (node,) = ast.parse(code).body
    except SyntaxError as error:
        raise SignatureError(f"expected a Python header: {error.msg}", row - 1 + (error.lineno or 1)) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise SignatureError("the header of `run` cannot be read: it is nested too deeply or malformed", row) from error
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        raise SignatureError("expected `def run(...)`", row)
    return node
