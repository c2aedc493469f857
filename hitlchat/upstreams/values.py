"""Headers and environment variables of a server: how they are given, kept, and filled in when it is connected.

A secret is sealed, unless all that is secret in it is a reference: `Bearer ${TOKEN}` stays as it is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hitlchat.base.canonical import storable
from hitlchat.secrets import references, sealing

PURPOSE = "upstream secret"
MOST = 50
LONGEST = 8000
# Shorter ones could not be masked without garbling what a tool says.
SHORTEST_SECRET = 6
_FOLLOWING = {"bearer": "the token", "basic": "user:password"}
_ONLY_REFERENCE = re.compile(rf"(?:[A-Za-z][A-Za-z0-9-]{{0,31}} )?{references.REFERENCE.pattern}")


class NoValue(ValueError):
    """A value is missing or cannot be read; the message names it, in words for the administrator."""


@dataclass(frozen=True)
class Value:
    """A value as an administrator gives it. `value` None: the one that is stored stays."""

    name: str
    value: str | None = None
    secret: bool = True


@dataclass(frozen=True)
class Kept:
    """A value as stored. `sealed`: `value` is, and `fingerprint` tells whether it changed without giving it away."""

    name: str
    value: str
    secret: bool
    sealed: bool = False
    fingerprint: str = ""

    def shown(self) -> Value:
        """Return what may be seen of it again."""
        return Value(self.name, None if self.sealed else self.value, self.secret)

    def template(self) -> str:
        """The text to fill in. NoValue."""
        if not self.sealed:
            return self.value
        try:
            return sealing.unseal(self.value, PURPOSE)
        except sealing.Unsealable as error:
            raise NoValue(f"{self.name}: {error}") from error


@dataclass(frozen=True)
class Filled:
    values: Mapping[str, str]
    secrets: tuple[str, ...]


def read(stored: Iterable[Mapping[str, Any]]) -> tuple[Kept, ...]:
    """Return the values of a JSON column."""
    return tuple(Kept(**each) for each in stored)


def written(kept: Iterable[Kept]) -> list[dict[str, Any]]:
    """Return the values for a JSON column."""
    return [asdict(each) for each in kept]


def problem(values: Iterable[Value], standing: Iterable[Kept]) -> str | None:
    """Return what is wrong with them, in a sentence."""
    given, known = list(values), {each.name: each for each in standing}
    if len(given) > MOST:
        return f"At most {MOST} entries, not {len(given)}."
    lowered = [each.name.lower() for each in given]
    if twice := next((each.name for each in given if lowered.count(each.name.lower()) > 1), None):
        return f"{twice[:64]} is there twice."
    return next((said for each in given if (said := _problem(each, known.get(each.name)))), None)


def _problem(value: Value, standing: Kept | None) -> str | None:
    text = value.value
    if text is None:
        has_one = standing is not None and (value.secret or not standing.sealed)
        return None if has_one else f"{value.name[:64]}: there is no value yet."
    if len(text) > LONGEST or storable(text) != text:
        return f"{value.name[:64]}: expected a text of at most {LONGEST:,} characters, without U+0000."
    if said := next(filter(None, map(references.withheld, references.names(text))), None):
        return f"{value.name[:64]}: {said}"
    if value.secret and not _ONLY_REFERENCE.fullmatch(text) and len(text) < SHORTEST_SECRET:
        return f"{value.name[:64]}: a secret has at least {SHORTEST_SECRET} characters; say if it is none."
    return None


def missing(credentials: str) -> str:
    """Return what is to follow if these name a scheme and go no further, as a preset leaves them; empty otherwise."""
    return _FOLLOWING.get(credentials.strip().lower(), "")


def keep(values: Iterable[Value], standing: Iterable[Kept]) -> tuple[Kept, ...]:
    """Return how they are to be stored, once `problem` has found nothing."""
    known = {each.name: each for each in standing}
    return tuple(known[each.name] if each.value is None else _kept(each, each.value) for each in values)


def _kept(given: Value, text: str) -> Kept:
    if not given.secret or _ONLY_REFERENCE.fullmatch(text):
        return Kept(given.name, text, given.secret)
    mark = sealing.fingerprint(text, PURPOSE)
    return Kept(given.name, sealing.seal(text, PURPOSE), secret=True, sealed=True, fingerprint=mark)


def identity(kept: Iterable[Kept]) -> list[list[str]]:
    """The same as long as nothing was changed; of a secret, nothing that gives it away."""
    return sorted([each.name, each.fingerprint or each.value] for each in kept)


def fill(kept: Iterable[Kept]) -> Filled:
    """The values as the server gets them, and all of it that must be masked. NoValue."""
    values: dict[str, str] = {}
    secrets: list[str] = []
    for each in kept:
        template = each.template()
        values[each.name] = filled(each.name, template)
        secrets += secrets_of(each.name, template)
        if each.secret:
            # With and without a scheme such as Bearer.
            secrets += [values[each.name], values[each.name].partition(" ")[2]]
    return Filled(values, tuple(filter(None, secrets)))


def filled(name: str, template: str) -> str:
    """`template` with its references replaced. NoValue."""
    try:
        return references.filled(template)
    except references.Missing as error:
        raise NoValue(f"{name}: {error}") from error


def secrets_of(name: str, template: str) -> list[str]:
    """Return what the environment adds to it. NoValue: one is too short to be masked."""
    found = [(variable, references.value_of(variable)) for variable in references.names(template)]
    for variable, value in found:
        if len(value) < SHORTEST_SECRET:
            raise NoValue(f"{name}: {variable} has fewer than {SHORTEST_SECRET} characters, too few to be masked.")
    return [value for _, value in found]
