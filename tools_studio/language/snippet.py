"""Cut the header of `run` or `preview`, and the dataclasses, out of a tool's source, without parsing the rest of it.

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
MOST_RECORDS = 20

Tokens = list[tokenize.TokenInfo]
_LAYOUT = {tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


class SignatureError(ValueError):
    """No schema can be made from the source; `line` counts from 1 in the author's source."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Snippet:
    """The header of a function, parsed. A node's `lineno` plus `offset` is the line in the author's source.

    `last_row` is the last line that can belong to the function, None if it goes to the end.
    """

    function: ast.FunctionDef | ast.AsyncFunctionDef
    offset: int
    last_row: int | None


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


def cut(source: str, name: str = "run") -> Snippet:
    """Return the one top-level function `name`, its body reduced to the docstring. Raises: SignatureError"""
    if len(source) > SOURCE_CAP or len(source.encode("utf-8", "replace")) > SOURCE_CAP:
        raise SignatureError(f"the source is larger than {SOURCE_CAP // 1024} KB")
    text = plain(source)
    lines = list(logical_lines(text))
    found = [number for number, line in enumerate(lines) if _defines(name, line)]
    if not found:
        raise SignatureError(f"expected a top-level `def {name}(...)` or `async def {name}(...)`")
    if len(found) > 1:
        raise SignatureError(f"expected one `{name}`, but here is a second one", lines[found[1]].row)
    number, header = found[0], lines[found[0]]
    if header.words[:2] != ["def", name] and header.words[:3] != ["async", "def", name]:
        raise SignatureError(f"expected `def {name}(...)` or `async def {name}(...)`", header.row)
    if number and lines[number - 1].words[0] == "@":
        raise SignatureError(f"expected `{name}` without a decorator", header.row)
    colon = _colon(header, name)
    body = header.tokens[colon + 1 :] or next((line.tokens for line in _body(lines, number)), [])
    if not body:
        raise SignatureError(f"expected an indented body after the header of `{name}`", header.row)
    code = between(text, header.tokens[0], header.tokens[colon]) + "\n " + (_docstring(body) or "pass")
    if len(code.encode("utf-8", "replace")) > SNIPPET_CAP:
        raise SignatureError(
            f"the header and docstring of `{name}` are larger than {SNIPPET_CAP // 1024} KB", header.row
        )
    row = next((line.row for line in lines[number + 1 :] if line.depth == 0), None)
    return Snippet(_parse(code, header.row, name), header.row - 1, row and row - 1)


def plain(source: str) -> str:
    """Return the source with the line ends that `tokenize` knows, which a lone carriage return is not."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def logical_lines(text: str) -> Iterator[Line]:
    """Yield the logical lines, without comments. Raises: SignatureError, the source is no complete Python"""
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


def _defines(name: str, line: Line) -> bool:
    if line.depth:
        return False
    return any(
        (following == name and word in ("def", "class", "as", "import")) or (word == name and following in ("=", ":"))
        for word, following in _outside_brackets(line.words)
    )


def _outside_brackets(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of neighbouring words outside of brackets: `call(run=1)` defines nothing."""
    depth = 0
    for word, following in pairwise(words):
        if depth == 0:
            yield word, following
        depth += (word in "([{") - (word in ")]}")


def _colon(header: Line, name: str) -> int:
    """Return where the header ends: its first colon outside brackets."""
    depth = 0
    for number, token in enumerate(header.tokens):
        if token.string == ":" and depth == 0:
            return number
        depth += (token.string in "([{") - (token.string in ")]}")
    raise SignatureError(f"expected a `:` after the header of `{name}`", header.row)


def _docstring(body: Tokens) -> str:
    """Return the string literals that the body starts with; empty if there are none."""
    parts: list[str] = []
    for token in body:
        if token.string == ";":
            break
        if token.type != tokenize.STRING:
            return ""
        parts.append(token.string)
    return " ".join(parts)


def between(text: str, first: tokenize.TokenInfo, last: tokenize.TokenInfo) -> str:
    """Return the text from the beginning of `first` to the end of `last`."""
    rows = text.split("\n")[first.start[0] - 1 : last.end[0]]
    rows[-1] = rows[-1][: last.end[1]]
    rows[0] = rows[0][first.start[1] :]
    return "\n".join(rows)


def _parse(code: str, row: int, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    try:
        (node,) = ast.parse(code).body
    except SyntaxError as error:
        raise SignatureError(f"expected a Python header: {error.msg}", row - 1 + (error.lineno or 1)) from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise SignatureError(
            f"the header of `{name}` cannot be read: it is nested too deeply or malformed", row
        ) from error
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        raise SignatureError(f"expected `def {name}(...)`", row)
    return node


@dataclass(frozen=True)
class Record:
    """A dataclass: its fields in order, each with its annotation and default; lines count as in the author's source."""

    name: str
    description: str
    fields: tuple[ast.AnnAssign, ...]
    line: int


def records(source: str) -> dict[str, Record]:
    """Return the dataclasses of `source` by name. Raises: SignatureError"""
    text = plain(source)
    lines = list(logical_lines(text))
    starts = [number for number, line in enumerate(lines) if _is_dataclass(lines, number, line)]
    if len(starts) > MOST_RECORDS:
        raise SignatureError(f"at most {MOST_RECORDS} dataclasses can be read", lines[starts[MOST_RECORDS]].row)
    found = [_record(text, lines, number) for number in starts]
    return {record.name: record for record in found}


def _is_dataclass(lines: list[Line], number: int, line: Line) -> bool:
    decorator = lines[number - 1].words if number else []
    return line.depth == 0 and line.words[0] == "class" and decorator[:1] == ["@"] and "dataclass" in decorator


def _record(text: str, lines: list[Line], number: int) -> Record:
    header = lines[number]
    name = header.words[1] if len(header.words) > 1 else ""
    body = [
        line
        for line in _body(lines, number)
        if len(line.words) > 2 and line.words[0].isidentifier() and line.words[1] == ":"
    ]
    written = [between(text, line.tokens[0], line.tokens[-1]) for line in body]
    if len("\n".join(written).encode("utf-8", "replace")) > SNIPPET_CAP:
        raise SignatureError(f"the fields of {name} take more than {SNIPPET_CAP // 1024} KB", header.row)
    fields = tuple(_field(code, line.row) for code, line in zip(written, body, strict=True))
    return Record(name, _record_docstring(lines, number), fields, header.row)


def _body(lines: list[Line], number: int) -> Iterator[Line]:
    for line in lines[number + 1 :]:
        if line.depth == 0:
            return
        if line.depth == 1:
            yield line


def _field(code: str, row: int) -> ast.AnnAssign:
    try:
        (node,) = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SignatureError("expected a field such as `count: int = 1`", row) from error
    if not isinstance(node, ast.AnnAssign):
        raise SignatureError("expected a field such as `count: int = 1`", row)
    ast.increment_lineno(node, row - 1)
    return node


def _record_docstring(lines: list[Line], number: int) -> str:
    first = next(_body(lines, number), None)
    if first is None or len(first.tokens) != 1 or first.words[0][-1:] not in ("'", '"'):
        return ""
    try:
        value = ast.literal_eval(first.tokens[0].string)
    except (ValueError, SyntaxError):
        return ""
    return " ".join(value.split()) if isinstance(value, str) else ""
