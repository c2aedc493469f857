"""Masking of a tool's secrets: in results, errors, previews and printed output.

A secret is found as it is and as it usually travels: quoted for URLs, JSON, HTML and Python, in hexadecimal, in Base64
wherever in a longer text it begins, in capital or small letters, and each longer line of it. What cuts a secret into
pieces or encodes it in a way of its own is not found: against a tool that wants to give its secret away only not
letting it read the secret helps (`fetch(auth=…)`).
"""

import base64
import html
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "•••"
# No form is shorter: it would occur by chance.
SHORTEST = 6
SHORTEST_LINE = 16
# Of so many lines each is hidden by itself, the longest ones: those of a private key of 4,000 characters.
MOST_LINES = 64
# Of a secret that a limit cut off, this much must be there to be known again.
SHORTEST_BEGINNING = 4
# How often a text may be compared with a form: so often, and so often for each character that is read. A text of
# nothing but the forms of one secret takes less; a longer form counts for several.
COMPARISONS = 500_000
COMPARISONS_PER_CHARACTER = 4
COMPARED_AT_ONCE = 256
# How the sandbox ends a text that it cut.
_CUT = re.compile(r"(?:\n… \d+ more bytes of output cut[^\n]{0,80}|… \(\d+ more\))\Z")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")


class _TooMuchWork(Exception):
    """The text was made to be compared with the secrets again and again."""


class _Work:
    """Counter of the comparisons that are left."""

    def __init__(self) -> None:
        self._left = COMPARISONS

    def read(self, characters: int) -> None:
        self._left = max(self._left, 0) + COMPARISONS_PER_CHARACTER * characters

    def compare(self, characters: int) -> None:
        self._left -= 1 + characters // COMPARED_AT_ONCE
        if self._left < 0:
            raise _TooMuchWork


class Mask:
    """Hides these values; without values it changes nothing.

    Linear in the length of what it reads: a text that was made to take longer is hidden as a whole.
    """

    def __init__(self, values: Iterable[str]) -> None:
        forms = {form for value in values for form in _forms(value) if len(form) >= SHORTEST}
        # By how they begin, then by length, the longest first.
        self._forms: dict[str, dict[int, set[str]]] = {}
        for form in sorted(forms, key=len, reverse=True):
            self._forms.setdefault(form[:SHORTEST], {}).setdefault(len(form), set()).add(form)
        self._heads: re.Pattern[str] | None = None
        if forms:
            # Where some form may begin, by the characters that beginnings have first, second and so on.
            places = zip(*self._forms, strict=True)
            first, *others = (f"[{''.join(map(re.escape, sorted(set(place))))}]" for place in places)
            self._heads = re.compile(f"{first}(?={''.join(others)})")

    def text(self, text: str) -> str:
        if self._heads is None:
            return text
        work = _Work()
        if cut := _CUT.search(text):
            return self._masked(text[: cut.start()], work, is_cut=True) + cut[0]
        return self._masked(text, work)

    def value(self, value: Any) -> Any:
        """The same JSON value; a number that holds a secret becomes a text, and keys stay different from each other."""
        return value if self._heads is None else self._value(value, _Work())

    def _value(self, value: Any, work: _Work) -> Any:
        if isinstance(value, str):
            return self._masked(value, work)
        if isinstance(value, dict):
            return self._members(value, work)
        if isinstance(value, list):
            return [self._value(item, work) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            written = json.dumps(value)
            masked = self._masked(written, work)
            return value if masked == written else masked
        return value

    def _members(self, value: dict[str, Any], work: _Work) -> dict[str, Any]:
        found: dict[str, Any] = {}
        names: dict[str, Iterator[str]] = {}
        for key, item in value.items():
            masked = self._masked(key, work)
            # Numbering goes on behind the last one like it: from the beginning, many alike would take for ever.
            free = names.setdefault(masked, _numbered(masked))
            name = key if masked == key else next(name for name in free if name not in found and name not in value)
            found[name] = self._value(item, work)
        return found

    def _masked(self, text: str, work: _Work, *, is_cut: bool = False) -> str:
        """Return the text with its secrets hidden; of one that `is_cut`, also the beginning of a secret at its end."""
        work.read(len(text))
        try:
            if is_cut:
                every = (form for lengths in self._forms.values() for forms in lengths.values() for form in forms)
                found = [place for form in every if (place := _beginning(text, form, work)) is not None]
                text = text[: min(found)] + HIDDEN if found else text
            return self._replaced(text, work)
        except _TooMuchWork:
            return HIDDEN

    def _replaced(self, text: str, work: _Work) -> str:
        assert self._heads is not None
        parts: list[str] = []
        done = 0
        for head in self._heads.finditer(text):
            start = head.start()
            if start >= done and (length := self._length_at(text, start, work)):
                parts += [text[done:start], HIDDEN]
                done = start + length
        return "".join([*parts, text[done:]])

    def _length_at(self, text: str, start: int, work: _Work) -> int:
        """Return the length of the longest form that stands here; 0 for none."""
        for length, forms in self._forms.get(text[start : start + SHORTEST], {}).items():
            work.compare(length)
            if text[start : start + length] in forms:
                return length
        return 0


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} ({number})" for number in itertools.count(2))


def _beginning(text: str, form: str, work: _Work) -> int | None:
    """Return where at the end of `text` there is a beginning of `form`, but not all of it; the longest."""
    place = text.find(form[:SHORTEST_BEGINNING], max(0, len(text) - len(form) + 1))
    while place >= 0:
        work.compare(len(text) - place)
        if form.startswith(text[place:]):
            return place
        place = text.find(form[:SHORTEST_BEGINNING], place + 1)
    return None


def _forms(value: str) -> Iterator[str]:
    lines = sorted((line for line in value.split("\n") if len(line.strip()) >= SHORTEST_LINE), key=len, reverse=True)
    for text in {value, value.strip(), *lines[:MOST_LINES], *map(str.strip, lines[:MOST_LINES])}:
        yield from _written(text)
        yield from _encoded(text.encode())


def _written(text: str) -> Iterator[str]:
    yield from (text, text.upper(), text.lower(), repr(text)[1:-1])
    for quoted in (quote(text), quote(text, safe=""), quote_plus(text)):
        yield quoted
        yield _ESCAPE.sub(lambda escape: escape[0].lower(), quoted)
    for dumped in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield dumped
        yield dumped.replace("/", "\\/")
    escaped = html.escape(text)
    yield from (escaped, escaped.replace("&#x27;", "&#39;"), html.escape(text, quote=False))


def _encoded(data: bytes) -> Iterator[str]:
    yield from (data.hex(), data.hex().upper())
    for before in range(3):
        # The part that depends on the value alone, when `before` bytes stand between it and the last multiple of three.
        begin, end = (0, 2, 3)[before], (before + len(data)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(b"\0" * before + data).decode("ascii")
            yield encoded[begin:end]
            yield encoded[begin:]
