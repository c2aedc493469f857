"""The rows in which headers and environment variables are given: a name, a value, and whether the value is secret.

A secret that was typed goes back into the page sealed, for the person who typed it and for nobody to read, so that it
need not be typed again when something else was wrong, or has to be confirmed first.
"""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from django.http import QueryDict

from hitlchat.secrets import references, sealing
from hitlchat.upstreams import values
from hitlchat.upstreams.values import Kept, Value

Kind = Literal["header", "env"]

SPARE = 2
# A colon is no part of Base64: this is what is to be encoded.
_BASIC = re.compile(r"Basic +([^\s:]*:.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Row:
    """`kept`: a secret is stored that is shown to nobody; `held`: one was just typed, sealed."""

    number: int
    name: str = ""
    value: str = ""
    secret: bool = True
    kept: bool = False
    held: str = ""

    @property
    def empty(self) -> bool:
        return not (self.name or self.value or self.held)


def shown(given: Iterable[Value], standing: Iterable[Kept]) -> list[Row]:
    """The rows for values as they are stored or suggested, and some to fill in."""
    sealed = {each.name for each in standing if each.sealed}
    rows = [
        Row(number, each.name, each.value or "", each.secret, kept=each.value is None and each.name in sealed)
        for number, each in enumerate(given, 1)
    ]
    return _with_spare(rows)


def posted(data: QueryDict, kind: Kind, standing: Iterable[Kept], user_id: int) -> tuple[list[Row], tuple[Value, ...]]:
    """What was typed: as rows to show again, and as values."""
    sealed = {each.name for each in standing if each.sealed}
    columns = (data.getlist(f"{kind}-{part}") for part in ("row", "name", "value", "held"))
    secrets = set(data.getlist(f"{kind}-secret"))
    rows: list[Row] = []
    given: list[Value] = []
    for mark, named, typed, held in zip(*columns, strict=False):
        name, secret = named.strip(), mark in secrets
        text = typed or _unsealed(held, user_id)
        if not name and not text:
            continue
        value = Value(name, None if not text and (secret or name in sealed) else text, secret)
        given.append(value)
        rows.append(_again(value, len(rows) + 1, user_id, kept=name in sealed))
    return _with_spare(rows), tuple(given)


def encoded(value: Value) -> Value:
    """With `user:password` in Base64, if it is that of HTTP's Basic scheme. ValueError."""
    match = _BASIC.fullmatch(value.value or "")
    if match is None or value.name.lower() != "authorization":
        return value
    if any(references.names(match[1])):
        raise ValueError(
            f"{value.name}: a reference cannot be encoded here. Keep user:password in Base64 in one variable,"
            " and refer to that."
        )
    return Value(value.name, f"Basic {base64.b64encode(match[1].encode()).decode('ascii')}", value.secret)


def _again(value: Value, number: int, user_id: int, *, kept: bool) -> Row:
    text = value.value or ""
    # Whoever types the rest has to see what stands there already.
    hidden = text != "" and not values.missing(text) and values.keep([value], ())[0].sealed
    if not hidden:
        return Row(number, value.name, text, value.secret, kept=kept and value.value is None)
    return Row(number, value.name, "", value.secret, held=sealing.seal(text, _purpose(user_id)))


def _unsealed(held: str, user_id: int) -> str:
    """Nothing if it was sealed for someone else, or with a key of another time: then it is asked for again."""
    try:
        return sealing.unseal(held, _purpose(user_id)) if held else ""
    except sealing.Unsealable:
        return ""


def _purpose(user_id: int) -> str:
    return f"typed upstream secret of {user_id}"


def _with_spare(rows: list[Row]) -> list[Row]:
    return [*rows, *(Row(len(rows) + more) for more in range(1, SPARE + 1))]
