"""What a grant covers, as the person giving it says it; read strictly, and checked before anything is decided."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from hitlchat.gate import canonical
from hitlchat.gate.models.grants import MOST_CALLS
from hitlchat.gate.storable import storable

LONGEST: Final = timedelta(hours=24)
MOST_MINUTES: Final = 24 * 60
LONGEST_CONDITION: Final = 500
NAMES: Final = ("sameArguments", "thisConversation", "calls", "minutes", "until", "condition")
UNBOUNDED: Final = (
    "A grant needs a bound: a number of calls, a time, or this conversation. “The same arguments” and a condition are "
    "not one by themselves."
)


class BadGrant(ValueError):
    """No such grant can be given, so nothing was decided. `errors`: by the name of the part, or by “grant” for all of
    it, what was expected."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = errors


@dataclass(frozen=True)
class Scope:
    """`minutes` from the moment of the yes, or `until` a time; empty parts bound nothing."""

    same_arguments: bool = False
    this_conversation: bool = False
    calls: int | None = None
    minutes: int | None = None
    until: datetime | None = None
    condition: str = ""

    @property
    def as_json(self) -> str:
        """For a form of ours; `read` takes it."""
        values = (
            self.same_arguments,
            self.this_conversation,
            self.calls,
            self.minutes,
            self.until and self.until.isoformat(),
            self.condition,
        )
        return canonical.dumps(dict(zip(NAMES, values, strict=True)))


def read(text: str) -> Scope:
    """From what `as_json` wrote. BadGrant."""
    try:
        found = canonical.loads(text)
        if not isinstance(found, dict) or set(found) != set(NAMES):
            raise BadGrant({"grant": f"Expected an object with exactly {', '.join(NAMES)}."})
        until = found["until"]
        if not (until is None or isinstance(until, str)):
            raise BadGrant({"until": "Expected a time, as 2026-01-31T14:30:00+00:00."})
        return _typed(found, None if until is None else datetime.fromisoformat(until))
    except ValueError as error:
        raise error if isinstance(error, BadGrant) else BadGrant({"grant": f"It cannot be read: {error}."}) from error


def _typed(found: dict[str, Any], until: datetime | None) -> Scope:
    kinds = {"sameArguments": bool, "thisConversation": bool, "condition": str}
    wrong = {name: f"Expected {kind.__name__}." for name, kind in kinds.items() if type(found[name]) is not kind}
    numbers = ("calls", "minutes")
    wrong |= {name: "Expected a whole number." for name in numbers if type(found[name]) not in (int, type(None))}
    if wrong:
        raise BadGrant(wrong)
    same, here, calls, minutes, _, condition = (found[name] for name in NAMES)
    return Scope(same, here, calls, minutes, until, condition)


def checked(scope: Scope, now: datetime, *, has_conversation: bool) -> Scope:
    """With the time as `until`, and within all limits; `now` by the database's clock. BadGrant names each part."""
    errors = dict(_errors(scope, now, has_conversation=has_conversation))
    if errors:
        raise BadGrant(errors)
    until = scope.until if scope.minutes is None else now + timedelta(minutes=scope.minutes)
    return replace(scope, minutes=None, until=until, condition=scope.condition.strip())


def _errors(scope: Scope, now: datetime, *, has_conversation: bool) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if scope.calls is None and scope.minutes is None and scope.until is None and not scope.this_conversation:
        found.append(("grant", UNBOUNDED))
    if scope.this_conversation and not has_conversation:
        found.append(("thisConversation", "This call belongs to no conversation."))
    if scope.calls is not None and not 1 <= scope.calls <= MOST_CALLS:
        found.append(("calls", f"Expected a whole number from 1 to {MOST_CALLS}."))
    found += _of_time(scope, now)
    if len(scope.condition) > LONGEST_CONDITION or storable(scope.condition) != scope.condition:
        found.append(("condition", f"Expected an expression of at most {LONGEST_CONDITION} characters."))
    return found


def _of_time(scope: Scope, now: datetime) -> list[tuple[str, str]]:
    if scope.minutes is not None and scope.until is not None:
        return [("minutes", "Expected either “minutes” or “until”, not both.")]
    if scope.minutes is not None and not 1 <= scope.minutes <= MOST_MINUTES:
        return [("minutes", f"Expected a whole number from 1 to {MOST_MINUTES} (24 hours).")]
    if scope.until is None:
        return []
    if scope.until.tzinfo is None:
        return [("until", "Expected a time with its offset, as 2026-01-31T14:30:00+00:00.")]
    return [] if now < scope.until <= now + LONGEST else [("until", "Expected a time within the next 24 hours.")]
