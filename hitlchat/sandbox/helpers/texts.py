"""`html`, `string` and `textwrap`."""

import html
import re
import string
import textwrap
from typing import Any

from hitlchat.sandbox.helpers.module import HelperModule

WRAPPED_CHARS = 64 * 1024
INDENT_CHARS = 1000
INDENTED_CHARS = 4 * 1024 * 1024
TAB_SIZE = 100


def wrap(text: str, width: int = 70, **options: Any) -> list[str]:
    return textwrap.wrap(_wrappable(text, options), width, **options)


def fill(text: str, width: int = 70, **options: Any) -> str:
    return textwrap.fill(_wrappable(text, options), width, **options)


def shorten(text: str, width: int, **options: Any) -> str:
    return textwrap.shorten(_wrappable(text, options), width, **options)


def dedent(text: str) -> str:
    # the common indent becomes a pattern
    if isinstance(text, str) and re.search(rf"^[ \t]{{{INDENT_CHARS + 1}}}", text, re.MULTILINE):
        raise ValueError(f"dedent() takes lines that are indented by at most {INDENT_CHARS} characters")
    return textwrap.dedent(text)


def indent(text: str, prefix: str) -> str:
    if isinstance(text, str) and isinstance(prefix, str) and (text.count("\n") + 1) * len(prefix) > INDENTED_CHARS:
        raise ValueError(f"indent() adds at most {INDENTED_CHARS} characters")
    return textwrap.indent(text, prefix)


def _wrappable(text: str, options: dict[str, Any]) -> str:
    if isinstance(text, str) and len(text) > WRAPPED_CHARS:
        raise ValueError(f"textwrap takes texts of at most {WRAPPED_CHARS} characters")
    if any(isinstance(value, str) and len(value) > INDENT_CHARS for value in options.values()):
        raise ValueError(f"textwrap takes indents and placeholders of at most {INDENT_CHARS} characters")
    if isinstance(size := options.get("tabsize", 8), int) and size > TAB_SIZE:
        raise ValueError(f"textwrap takes a tabsize of at most {TAB_SIZE}")
    return text


HTML = HelperModule(
    "html",
    {"escape": html.escape, "unescape": html.unescape},
    """def escape(s: str, quote: bool = True) -> str: ...
def unescape(s: str) -> str: ...
""",
)
CONSTANTS = "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation whitespace"
STRING = HelperModule(
    "string",
    {"capwords": string.capwords},
    "def capwords(s: str, sep: str | None = None) -> str: ...\n"
    + "".join(f"{name}: str\n" for name in CONSTANTS.split()),
    {name: getattr(string, name) for name in CONSTANTS.split()},
)
_OPTIONS = """expand_tabs: bool = True,
    replace_whitespace: bool = True, fix_sentence_endings: bool = False, break_long_words: bool = True,
    drop_whitespace: bool = True, break_on_hyphens: bool = True, tabsize: int = 8, max_lines: int | None = None,
    placeholder: str = " [...]","""
TEXTWRAP = HelperModule(
    "textwrap",
    {"dedent": dedent, "fill": fill, "indent": indent, "shorten": shorten, "wrap": wrap},
    f"""def dedent(text: str) -> str: ...
def fill(
    text: str, width: int = 70, *, initial_indent: str = "", subsequent_indent: str = "", {_OPTIONS}
) -> str: ...
def indent(text: str, prefix: str) -> str: ...
def shorten(
    text: str, width: int, *, initial_indent: str = "", subsequent_indent: str = "", {_OPTIONS}
) -> str: ...
def wrap(
    text: str, width: int = 70, *, initial_indent: str = "", subsequent_indent: str = "", {_OPTIONS}
) -> list[str]: ...
""",
)
