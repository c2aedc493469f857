"""Texts that others wrote, cut to what a status line or an error can hold."""

from collections.abc import Callable

from pydantic import ValidationError

LONGEST = 500


def short(text: str, limit: int = LONGEST) -> str:
    """On one line, at most `limit` characters, and nothing in it that a terminal or a page would obey."""
    line = "".join(map(_seen, " ".join(text[: 4 * limit].split())))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def told(text: str, hide: Callable[[str], str], limit: int = LONGEST) -> str:
    """`short`, of what `hide` leaves. In this order: of a secret that was cut, the first half would not be known."""
    read = text[: 8 * limit]
    return short(hide(read if len(read) == len(text) else f"{read}… ({len(text) - len(read)} more)"), limit)


def _seen(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def where(error: ValidationError) -> str:
    """The first thing that does not fit, without what stood there."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return short(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 200)
