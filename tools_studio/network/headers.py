"""Which headers a tool may send, and which of an answer it gets to see."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE = re.compile(r"|[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")
# those that belong to the connection, or say where it goes and how long it is
OURS = re.compile(r"host|connection|keep-alive|te|trailers?|transfer-encoding|upgrade|expect|content-length|proxy-.*")
# Cookies too: whoever holds one is whom it was given to, and the tool has its own keys.
_KEPT_BACK = re.compile(r"connection|keep-alive|te|trailers?|transfer-encoding|upgrade|proxy-.*|set-cookie2?")


def headers_of(headers: Mapping[str, Any] | None) -> dict[str, str]:
    """The headers by lower-case names. ValueError: one cannot be sent."""
    if headers is not None and not isinstance(headers, Mapping):
        raise ValueError("headers must be an object of names and texts")
    for name, value in (headers or {}).items():
        if not isinstance(value, str) or not TOKEN.fullmatch(name) or not VALUE.fullmatch(value):
            raise ValueError(f"the header {name[:40]!r} has a name or value that HTTP cannot carry")
        require_free(name)
    return {name.lower(): value for name, value in (headers or {}).items()}


def require_free(name: str) -> None:
    """ValueError: the header is not for tools to set."""
    if OURS.fullmatch(name.lower()):
        raise ValueError(f"the header {name[:40]!r} cannot be set by a tool")


def shown(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """An answer's headers by lower-case names, repeated ones joined; those of the connection and cookies left out."""
    found: dict[str, str] = {}
    for key, value in raw:
        name, text = key.decode("latin-1").lower(), _text(value)
        found[name] = f"{found[name]}, {text}" if name in found else text
    named = {name.strip() for name in found.get("connection", "").lower().split(",")}
    return {name: text for name, text in found.items() if name not in named and not _KEPT_BACK.fullmatch(name)}


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
