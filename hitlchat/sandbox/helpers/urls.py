"""`urllib.parse`, and `urls` for the parts of an address."""

from typing import Any
from urllib import parse

from hitlchat.sandbox.helpers.module import HelperModule


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

PARSE = HelperModule(
    "urllib.parse",
    {name: getattr(parse, name) for name in NAMES.split()} | {"urlencode": urlencode},
    """from typing import Any, NamedTuple

class _Split(NamedTuple):
    scheme: str
    netloc: str
    path: str
    query: str
    fragment: str

class _Parsed(NamedTuple):
    scheme: str
    netloc: str
    path: str
    params: str
    query: str
    fragment: str

class _Defragged(NamedTuple):
    url: str
    fragment: str

def parse_qs(
    qs: str, keep_blank_values: bool = False, strict_parsing: bool = False, encoding: str = "utf-8",
    errors: str = "replace", max_num_fields: int | None = None, separator: str = "&",
) -> dict[str, list[str]]: ...
def parse_qsl(
    qs: str, keep_blank_values: bool = False, strict_parsing: bool = False, encoding: str = "utf-8",
    errors: str = "replace", max_num_fields: int | None = None, separator: str = "&",
) -> list[tuple[str, str]]: ...
def quote(
    string: str | bytes, safe: str | bytes = "/", encoding: str | None = None, errors: str | None = None
) -> str: ...
def quote_from_bytes(bs: bytes, safe: str | bytes = "/") -> str: ...
def quote_plus(
    string: str | bytes, safe: str | bytes = "", encoding: str | None = None, errors: str | None = None
) -> str: ...
def unquote(string: str | bytes, encoding: str = "utf-8", errors: str = "replace") -> str: ...
def unquote_plus(string: str, encoding: str = "utf-8", errors: str = "replace") -> str: ...
def unquote_to_bytes(string: str | bytes) -> bytes: ...
def urldefrag(url: str) -> _Defragged: ...
def urlencode(
    query: Any, doseq: bool = False, safe: str = "", encoding: str | None = None, errors: str | None = None
) -> str: ...
def urljoin(base: str, url: str, allow_fragments: bool = True) -> str: ...
def urlparse(url: str, scheme: str = "", allow_fragments: bool = True) -> _Parsed: ...
def urlsplit(url: str, scheme: str = "", allow_fragments: bool = True) -> _Split: ...
def urlunparse(components: Any) -> str: ...
def urlunsplit(components: Any) -> str: ...
""",
)
URLS = HelperModule(
    "urls",
    {"parts": parts},
    '''from typing import Any

def parts(url: str) -> dict[str, Any]:
    """scheme, username, password, host, port, path, query (a dict) and fragment of `url`."""
''',
)
