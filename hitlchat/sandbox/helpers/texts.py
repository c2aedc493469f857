"""`html`, `string`, `textwrap`, `difflib`, `urllib.parse` and `urls`, as far as their work can be bounded."""

import difflib
import html
import re
import string
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib import parse

from hitlchat.sandbox.importable import HelperModule

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


HTML = HelperModule("html", {"escape": html.escape, "unescape": html.unescape})
CONSTANTS = "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation whitespace"
STRING = HelperModule(
    "string", {"capwords": string.capwords}, {name: getattr(string, name) for name in CONSTANTS.split()}
)
TEXTWRAP = HelperModule(
    "textwrap", {"dedent": dedent, "fill": fill, "indent": indent, "shorten": shorten, "wrap": wrap}
)


# Comparisons in the worst case; about three seconds of work.
MOST_COMPARISONS = 40_000_000


def unified_diff(a: Sequence[str], b: Sequence[str], *args: Any, **kwargs: Any) -> list[str]:
    _bound("unified_diff", [(a, b)])
    return list(difflib.unified_diff(a, b, *args, **kwargs))


def context_diff(a: Sequence[str], b: Sequence[str], *args: Any, **kwargs: Any) -> list[str]:
    _bound("context_diff", [(a, b)])
    return list(difflib.context_diff(a, b, *args, **kwargs))


def get_close_matches(word: Any, possibilities: Any, n: int = 3, cutoff: float = 0.6) -> list[Any]:
    if isinstance(possibilities, (list, tuple, set, frozenset, dict)):
        _bound("get_close_matches", [(each, word) for each in possibilities])
    return difflib.get_close_matches(word, possibilities, n, cutoff)


def _bound(name: str, pairs: list[tuple[Any, Any]]) -> None:
    """ValueError: too much work in the worst case, in which every match is found alone, among all that could match."""
    if sum(_comparisons(a, b) for a, b in pairs) > MOST_COMPARISONS:
        raise ValueError(f"{name}(): the texts are too long or too much alike inside; compare smaller parts")


def _comparisons(a: Any, b: Any) -> int:
    if not isinstance(a, (str, list, tuple)) or not isinstance(b, (str, list, tuple)):
        return 0
    counts = Counter(b)
    # what difflib leaves out as too common
    popular = len(b) // 100 + 1 if len(b) >= 200 else len(b)
    matching = sum(count for each in a if (count := counts[each]) <= popular)
    return (len(a) + matching) * min(len(a), len(b))


DIFFLIB = HelperModule(
    "difflib",
    {"context_diff": context_diff, "get_close_matches": get_close_matches, "unified_diff": unified_diff},
)


def urlencode(query: Any, doseq: bool = False, safe: str = "", encoding: Any = None, errors: Any = None) -> str:
    return parse.urlencode(query, doseq, safe, encoding, errors)


def parts(url: str) -> dict[str, Any]:
    """Everything about an address, `host` and `port` among it."""
    if not isinstance(url, str):
        raise TypeError(f"parts() takes a text, not {type(url).__name__}")
    found = parse.urlsplit(url)
    return {
        "scheme": found.scheme,
        "username": found.username,
        "password": found.password,
        "host": found.hostname,
        "port": found.port,
        "path": found.path,
        "query": dict(parse.parse_qsl(found.query, keep_blank_values=True)),
        "fragment": found.fragment,
    }


NAMES = (
    "parse_qs parse_qsl quote quote_from_bytes quote_plus unquote unquote_plus unquote_to_bytes urldefrag urljoin "
    "urlparse urlsplit urlunparse urlunsplit"
)

PARSE = HelperModule("urllib.parse", {name: getattr(parse, name) for name in NAMES.split()} | {"urlencode": urlencode})
URLS = HelperModule("urls", {"parts": parts})
