"""A tool's static variables, plain or secret: how they are declared, kept, and found when the tool runs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.secrets import references, sealing
from hitlchat.secrets.references import REFERENCE
from hitlchat.secrets.values import SHORTEST_SECRET, Stored, Value, seal

NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
MOST = 20
LONGEST_VALUE = 4000
PURPOSE = "tool secret"


@dataclass(frozen=True)
class Resolved:
    """The values for one run; `missing` names each variable that has none, with the reason.

    `hidden` are the values to mask in whatever the tool says: its secrets, and what came from the environment.
    """

    plain: Mapping[str, str]
    secret: Mapping[str, str]
    missing: Mapping[str, str]
    hidden: tuple[str, ...] = ()


def from_json(declared: Mapping[str, Any]) -> Value:
    """Return the variable of a JSON; plain unless it says otherwise. Raises: KeyError, TypeError"""
    return Value(**{"secret": False, **declared})


def problem(variables: Iterable[Value]) -> str | None:
    """Return the first problem of the declaration, in a sentence."""
    named = list(variables)
    if len(named) > MOST:
        return translatable(f"At most {MOST} variables, not {len(named)}.")
    if twice := {each.name for each in named if [other.name for other in named].count(each.name) > 1}:
        return translatable(f"{min(twice)} is listed twice.")
    return next(filter(None, map(_problem, named)), None)


def _problem(variable: Value) -> str | None:
    name, value = variable.name, variable.value or ""
    if not NAME.fullmatch(name):
        return translatable(
            f"{name[:64]!r} is not a valid variable name: use capital letters, digits and _, such as SHOP_KEY."
        )
    if len(value) > LONGEST_VALUE or storable(value) != value:
        return translatable(f"{name}: expected a text of at most {LONGEST_VALUE:,} characters, without U+0000.")
    if reference := REFERENCE.fullmatch(value):
        withheld = references.withheld(reference[1])
        return f"{name}: {withheld}" if withheld else None
    if variable.secret and value and len(value) < SHORTEST_SECRET:
        return translatable(
            f"{name}: a secret has at least {SHORTEST_SECRET} characters; a shorter one could not be masked."
        )
    return None


def to_store(variables: Iterable[Value], before: Mapping[str, Stored]) -> tuple[Stored, ...]:
    """Return the variables as they are to be stored.

    One without a value stays the one in `before`, unless it was a secret there.
    """
    stored = (_to_store(each, before.get(each.name)) for each in variables)
    return tuple(sorted(stored, key=lambda each: each.name))


def _to_store(variable: Value, before: Stored | None) -> Stored:
    is_left_open = variable.value is None or (variable.secret and not variable.value)
    if is_left_open and before and before.secret == variable.secret:
        return before
    text = variable.value or ""
    if text and variable.secret and not REFERENCE.fullmatch(text):
        return seal(variable, text, PURPOSE)
    return Stored(variable.name, text, variable.secret)


def resolve(variables: Iterable[Stored]) -> Resolved:
    """Return the values for a run, those of references from the environment."""
    plain: dict[str, str] = {}
    secret: dict[str, str] = {}
    missing: dict[str, str] = {}
    hidden: list[str] = []
    for each in variables:
        try:
            value = (secret if each.secret else plain)[each.name] = _value(each)
            if each.secret or (REFERENCE.fullmatch(each.value) and len(value) >= SHORTEST_SECRET):
                hidden.append(value)
        except (LookupError, sealing.Unsealable) as error:
            reason = str(error.args[0])
            missing[each.name] = reason if reason.startswith(each.name) else f"{each.name}: {reason}"
    return Resolved(plain, secret, missing, tuple(hidden))


def _value(stored: Stored) -> str:
    """Return the value. Raises: LookupError, Unsealable, in words"""
    name = stored.name
    if reference := REFERENCE.fullmatch(stored.value):
        value = references.value_of(reference[1])
        if stored.secret and len(value) < SHORTEST_SECRET:
            raise LookupError(translatable(f"{name}: {reference[1]} has fewer than {SHORTEST_SECRET} characters."))
        return value
    if not stored.value:
        raise LookupError(translatable(f"{name} has no value yet."))
    return sealing.unseal(stored.value, PURPOSE) if stored.secret else stored.value
