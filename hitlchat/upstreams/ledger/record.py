"""A tool's record, laid out for reading: everything as text, nothing of it hidden."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hitlchat.base import canonical
from hitlchat.base.visible import Seen, see
from hitlchat.upstreams.judge.difference import FIELDS

LONGEST = 70_000


@dataclass(frozen=True)
class Field:
    """One member. `cut`: how many characters of it are not shown, which only happens to what cannot be offered."""

    words: str
    text: Seen
    is_code: bool
    cut: int


def fields(record: dict[str, Any]) -> tuple[Field, ...]:
    return tuple(_fields(record))


def _fields(record: dict[str, Any]) -> Iterator[Field]:
    for name, words in FIELDS.items():
        if name not in record:
            continue
        value = record[name]
        text = value if isinstance(value, str) else canonical.pretty(value, indent=2)
        shown = see(text[:LONGEST])
        yield Field(words, shown, not isinstance(value, str), max(0, len(text) - LONGEST))


def is_intact(record: dict[str, Any], digest: str) -> bool:
    """Whether what is stored still has the fingerprint that was accepted."""
    return canonical.sha256(record) == digest
