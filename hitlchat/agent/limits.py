"""Limits of a conversation: its temperature, how long an answer may be, and after how many turns a run is stopped.

What a conversation leaves open, the installation says (MODEL_TEMPERATURE, MODEL_MAX_TOKENS, MODEL_TURNS). New
conversations begin with what their person chose for them.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User

from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Conversation, OwnDefaults
from hitlchat.agent.request import TEMPERATURE
from hitlchat.base.problems import Invalid
from hitlchat.base.sentences import translatable

MOST_TEMPERATURE: Final = 2
MOST_TOKENS: Final = 1_000_000
MOST_TURNS: Final = 100
# So many turns before the last one the model is told to wrap up.
WRAPPING_UP: Final = 2
NAMES: Final[tuple[str, ...]] = ("temperature", "max_tokens", "max_turns")
Values = dict[str, float | int | None]


class BadLimits(Invalid):
    """No conversation can have these; `errors` says by field what was expected, and nothing was changed."""


@dataclass(frozen=True)
class Limits:
    """The limits that hold: the conversation's own, or those of the installation. None: none is sent."""

    temperature: float | None
    max_tokens: int | None
    turns: int

    @property
    def soft_turns(self) -> int:
        return max(1, self.turns - WRAPPING_UP)


def of(conversation: Conversation) -> Limits:
    own, usual = conversation, usual_ones()
    return Limits(
        temperature=usual.temperature if own.temperature is None else own.temperature,
        max_tokens=usual.max_tokens if own.max_tokens is None else own.max_tokens,
        turns=usual.turns if own.max_turns is None else own.max_turns,
    )


def usual_ones() -> Limits:
    return Limits(settings.MODEL_TEMPERATURE, settings.MODEL_MAX_TOKENS or None, settings.MODEL_TURNS)


def sent(conversation: Conversation, where: Endpoint) -> Values:
    """Return what a request to that model says of it: no temperature to one that reasons first or refused it here."""
    bounds = of(conversation)
    found: Values = {} if bounds.max_tokens is None else {where.limit_name: bounds.max_tokens}
    takes_it = not where.thinks and conversation.no_temperature_for != where.name
    if bounds.temperature is not None and takes_it:
        found[TEMPERATURE] = bounds.temperature
    return found


def checked(wanted: dict[str, Any]) -> Values:
    """Return those of NAMES that are in `wanted`, as columns; None leaves it to the installation. Raises: BadLimits."""
    found = {name: wanted[name] for name in NAMES if name in wanted}
    if errors := {name: wrong for name, value in found.items() if (wrong := _problem(name, value))}:
        raise BadLimits(errors)
    return found


def own_defaults(user: User) -> OwnDefaults:
    """Return what this person's new conversations begin with; a row that is not stored where they chose nothing."""
    return OwnDefaults.objects.filter(person=user).first() or OwnDefaults(person=user)


def _problem(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "temperature":
        fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        expected = translatable(f"Expected a number from 0 to {MOST_TEMPERATURE}.")
        return "" if fits and 0 <= value <= MOST_TEMPERATURE else expected
    most = MOST_TOKENS if name == "max_tokens" else MOST_TURNS
    fits = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
    return "" if fits else translatable(f"Expected a whole number from 1 to {most:,}.")
