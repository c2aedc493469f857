"""Named values, plain or secret, as people configure them: as given, as stored, and the rows in which they are edited.

A secret that was typed goes back into the page sealed, for the person who typed it and for nobody to read, so that it
need not be typed again when something else was wrong, or has to be confirmed first.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from django.http import QueryDict

from hitlchat.secrets import sealing
from hitlchat.secrets.references import REFERENCE

# Shorter ones occur by chance: masking them would garble results, and not hide them.
SHORTEST_SECRET = 6
# Rows to fill in, for browsers without scripts.
SPARE = 2
# A reference, also behind a scheme such as Bearer: nothing in it is secret.
ONLY_REFERENCE = re.compile(rf"(?:[A-Za-z][A-Za-z0-9-]{{0,31}} )?{REFERENCE.pattern}")
_FOLLOWING = {"bearer": "the token", "basic": "user:password"}


@dataclass(frozen=True)
class Value:
    """A value as a person gives it. `value` None: the one that is stored stays."""

    name: str
    value: str | None = None
    secret: bool = True


@dataclass(frozen=True)
class Stored:
    """A value as stored: sealed if it has a `fingerprint`, else plain or a reference; empty when there is none yet."""

    name: str
    value: str
    secret: bool
    fingerprint: str = ""

    @property
    def sealed(self) -> bool:
        return bool(self.fingerprint)

    @property
    def mark(self) -> str:
        """Return a text that differs whenever the value does, and gives no secret away."""
        return self.fingerprint or self.value

    def shown(self) -> Value:
        """Return the part of it that may be seen again."""
        is_hidden = self.sealed or (self.secret and not ONLY_REFERENCE.fullmatch(self.value))
        return Value(self.name, None if is_hidden else self.value, self.secret)


@dataclass(frozen=True)
class Row:
    """A row of the editor. `stored`: a secret is stored, and shown to nobody; `sealed`: one that was just typed;
    `missing`: why it has no value.
    """

    number: int
    name: str = ""
    value: str = ""
    secret: bool = True
    stored: bool = False
    sealed: str = ""
    missing: str = ""

    @property
    def empty(self) -> bool:
        return not (self.name or self.value or self.sealed)


def seal(value: Value, text: str, purpose: str) -> Stored:
    """Return the secret `text` as it is to be stored under the name of `value`."""
    return Stored(value.name, sealing.seal(text, purpose), secret=True, fingerprint=sealing.fingerprint(text, purpose))


def missing_credentials(credentials: str) -> str:
    """Return the missing part of credentials that name a scheme alone, as a preset leaves them; empty otherwise."""
    return _FOLLOWING.get(credentials.strip().lower(), "")


def rows(
    given: Iterable[Value], stored: Iterable[Stored], missing: Mapping[str, str] | None = None, *, spare: Row = Row(0)
) -> list[Row]:
    """Return the rows for values as they are stored or suggested, and some like `spare` to fill in."""
    sealed = {each.name for each in stored if each.sealed}
    shown = [
        Row(
            number,
            each.name,
            each.value or "",
            each.secret,
            stored=each.value is None and each.name in sealed,
            missing=(missing or {}).get(each.name, ""),
        )
        for number, each in enumerate(given, 1)
    ]
    return _with_spare(shown, spare)


def posted(
    data: QueryDict, kind: str, stored: Iterable[Stored], user_id: int, *, spare: Row = Row(0)
) -> tuple[list[Row], tuple[Value, ...]]:
    """Return the typed rows, to show again, and their values. A row with neither a name nor a value is left out."""
    sealed_names = {each.name for each in stored if each.sealed}
    purpose = f"typed secret of {user_id}"
    columns = (data.getlist(f"{kind}-{part}") for part in ("row", "name", "value", "sealed"))
    secrets = set(data.getlist(f"{kind}-secret"))
    shown: list[Row] = []
    given: list[Value] = []
    for mark, typed_name, typed, sealed in zip(*columns, strict=False):
        name, secret, text = typed_name.strip(), mark in secrets, typed or _unsealed(sealed, purpose)
        if not name and not text:
            continue
        value = Value(name, None if not text and (secret or name in sealed_names) else text, secret)
        # An unfinished credential is shown, so that the rest can be typed behind it.
        is_hidden = secret and text and not ONLY_REFERENCE.fullmatch(text) and not missing_credentials(text)
        row = Row(len(shown) + 1, name, text, secret, stored=value.value is None and name in sealed_names)
        shown.append(replace(row, value="", sealed=sealing.seal(text, purpose)) if is_hidden else row)
        given.append(value)
    return _with_spare(shown, spare), tuple(given)


def _unsealed(sealed: str, purpose: str) -> str:
    """Return the secret; nothing if it was sealed for someone else or with an older key, and has to be typed again."""
    try:
        return sealing.unseal(sealed, purpose) if sealed else ""
    except sealing.Unsealable:
        return ""


def _with_spare(shown: list[Row], spare: Row) -> list[Row]:
    return [*shown, *(replace(spare, number=len(shown) + more) for more in range(1, SPARE + 1))]
