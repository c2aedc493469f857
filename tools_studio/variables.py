"""A tool's static variables, plain or secret: how they are declared, kept, and found when the tool runs."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.secrets import references, sealing
from hitlchat.secrets.references import REFERENCE

NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
MOST = 20
LONGEST_VALUE = 4000
# Shorter ones occur by chance: masking them would garble what a tool says, and not hide them.
SHORTEST_SECRET = 6
PURPOSE = "tool secret"


@dataclass(frozen=True)
class Variable:
    """A variable as an author gives it.

    `value` None: keep the stored secret; exactly `${NAME}`: the server's environment.
    """

    name: str
    secret: bool = False
    value: str | None = None


@dataclass(frozen=True)
class Stored:
    """A variable as stored: `value` plain, or sealed, or a reference; empty when there is none yet."""

    name: str
    secret: bool
    value: str
    fingerprint: str = ""

    @property
    def identity(self) -> list[Any]:
        """Return what of it belongs to the tool's definition; of a secret, nothing that gives it away."""
        return [self.name, self.secret, self.fingerprint or self.value]

    def shown(self) -> Variable:
        """Return what its author may see again."""
        hidden = self.secret and not REFERENCE.fullmatch(self.value)
        return Variable(self.name, self.secret, None if hidden else self.value)


@dataclass(frozen=True)
class Resolved:
    """The values for one run; `missing` names each variable that has none, with the reason.

    `hidden` are the values to mask in whatever the tool says: its secrets, and what came from the environment.
    """

    plain: Mapping[str, str]
    secret: Mapping[str, str]
    missing: Mapping[str, str]
    hidden: tuple[str, ...] = ()


def problem(variables: Iterable[Variable]) -> str | None:
    """Return what is wrong with the declaration, in a sentence."""
    named = list(variables)
    if len(named) > MOST:
        return translatable(f"At most {MOST} variables, not {len(named)}.")
    if twice := {each.name for each in named if [other.name for other in named].count(each.name) > 1}:
        return translatable(f"{min(twice)} is there twice.")
    return next((said for said in map(_problem, named) if said), None)


def _problem(variable: Variable) -> str | None:
    name, value = variable.name, variable.value or ""
    if not NAME.fullmatch(name):
        return translatable(
            f"{name[:64]!r} is no name for a variable: use capital letters, digits and _, such as SHOP_KEY."
        )
    if len(value) > LONGEST_VALUE or storable(value) != value:
        return translatable(f"{name}: expected a text of at most {LONGEST_VALUE:,} characters, without U+0000.")
    if reference := REFERENCE.fullmatch(value):
        said = references.withheld(reference[1])
        return f"{name}: {said}" if said else None
    if variable.secret and value and len(value) < SHORTEST_SECRET:
        return translatable(
            f"{name}: a secret has at least {SHORTEST_SECRET} characters; a shorter one could not be masked."
        )
    return None


def to_store(variables: Iterable[Variable], standing: Mapping[str, Stored]) -> tuple[Stored, ...]:
    """Return how they are to be stored.

    One without a value stays the one in `standing`, unless it was a secret there.
    """
    kept = (_stored(each, standing.get(each.name)) for each in variables)
    return tuple(sorted(kept, key=lambda each: each.name))


def _stored(variable: Variable, standing: Stored | None) -> Stored:
    if not variable.secret and variable.value is None and standing and not standing.secret:
        return standing
    if not variable.secret or REFERENCE.fullmatch(variable.value or ""):
        return Stored(variable.name, variable.secret, variable.value or "")
    if variable.value:
        sealed = sealing.seal(variable.value, PURPOSE)
        return Stored(variable.name, variable.secret, sealed, sealing.fingerprint(variable.value, PURPOSE))
    return standing if standing and standing.secret else Stored(variable.name, variable.secret, "")


def resolve(variables: Iterable[Stored]) -> Resolved:
    """The values as a run gets them, from the environment where it is referred to."""
    plain: dict[str, str] = {}
    secret: dict[str, str] = {}
    missing: dict[str, str] = {}
    hidden: list[str] = []
    for kept in variables:
        try:
            value = (secret if kept.secret else plain)[kept.name] = _value(kept)
            if kept.secret or (REFERENCE.fullmatch(kept.value) and len(value) >= SHORTEST_SECRET):
                hidden.append(value)
        except (LookupError, sealing.Unsealable) as error:
            said = str(error.args[0])
            missing[kept.name] = said if said.startswith(kept.name) else f"{kept.name}: {said}"
    return Resolved(plain, secret, missing, tuple(hidden))


def _value(kept: Stored) -> str:
    """LookupError or Unsealable: there is none that could be used, in words."""
    if reference := REFERENCE.fullmatch(kept.value):
        value = references.value_of(reference[1])
        if kept.secret and len(value) < SHORTEST_SECRET:
            raise LookupError(translatable(f"{kept.name}: {reference[1]} has fewer than {SHORTEST_SECRET} characters."))
        return value
    if not kept.value:
        raise LookupError(translatable(f"{kept.name} has no value yet."))
    return sealing.unseal(kept.value, PURPOSE) if kept.secret else kept.value
