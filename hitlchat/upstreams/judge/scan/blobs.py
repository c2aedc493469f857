"""Stretches that are no text: encoded, stuffed with white space, or too long to be read."""

import re
from collections.abc import Iterator

from hitlchat.upstreams.judge.scan.unseen import Match

LONG_TEXT = 5_000
_ENCODED = (
    re.compile(r"[A-Za-z0-9+/]{80,}|[A-Za-z0-9_-]{100,}"),
    re.compile(r"(?:[0-9a-fA-F]{2}){65,}"),
    re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|&#x?[0-9a-fA-F]{1,6};){8,}"),
)
_DATA = re.compile(r"\bdata:[a-z]{1,20}/[a-z0-9.+-]{1,60};base64,", re.IGNORECASE)
_PADDING = re.compile(r"\s{80,}|(?:\n[ \t]{0,40}){15,}")


def blobs(text: str) -> Iterator[Match]:
    """At most one match per kind."""
    if match := _encoded(text):
        sentence = "Has an encoded stretch that a person cannot read and a model may decode."
        yield Match("encoded", "warn", sentence, match.start(), match.end())
    if match := _PADDING.search(text):
        sentence = "Pushes its text out of view with white space."
        yield Match("padding", "warn", sentence, max(0, match.start() - 1), match.end())
    if len(text) > LONG_TEXT:
        sentence = f"Is {len(text):,} characters long: more than most people read."
        yield Match("overlong", "warn", sentence, 0, 0)


def _encoded(text: str) -> re.Match[str] | None:
    plain, *others = _ENCODED
    found = (match for match in plain.finditer(text) if _looks_encoded(match[0]))
    return next(found, None) or next(filter(None, (each.search(text) for each in (*others, _DATA))), None)


def _looks_encoded(run: str) -> bool:
    """Words run together have few digits or one case; encodings have everything."""
    return any(map(str.isupper, run)) and any(map(str.islower, run)) and any(map(str.isdigit, run))
