"""The scope of a grant: as the person giving it says it, checked before anything is decided, and in words."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.gate.models import Grant
from hitlchat.gate.models.calls import MOST_CALLS

LONGEST: Final = timedelta(hours=24)
MOST_MINUTES: Final = 24 * 60
LONGEST_CONDITION: Final = 500
NAMES: Final = ("sameArguments", "thisConversation", "calls", "minutes", "until", "condition")
UNBOUNDED: Final = (
    "A grant needs a bound: a number of calls, a time, or this conversation. “The same arguments” and a condition are "
    "not one by themselves."
)


class BadGrant(Invalid):
    """No such grant can be given, so nothing was decided.

    `errors`: by the name of the part, or by “grant” for all of it, what was expected.
    """

    within = "grant"


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
        """Return the scope for a form of ours; `read` takes it."""
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
    """Return the scope that `as_json` wrote. Raises: BadGrant."""
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
    """Return the scope with the time as `until`, within all limits; `now` by the database's clock. Raises: BadGrant."""
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


def offer(tool_name: str, scope: Scope) -> str:
    """Return what the click would do. `scope` is a checked one."""
    return f"Approve this, and run {tool_name} without asking {_bounds(scope, 'in this conversation')}."


def sentence(grant: Grant) -> str:
    return f"{grant.tool_name} runs without asking {bounds(grant)}."


def bounds(grant: Grant) -> str:
    scope = Scope(
        same_arguments=bool(grant.arguments_digest),
        this_conversation=grant.conversation_id is not None,
        calls=grant.calls,
        until=grant.until,
        condition=grant.condition,
    )
    return _bounds(scope, "in one conversation")


def left(grant: Grant) -> str:
    """Return how much of it there still is, short."""
    count = f"{grant.left} of {grant.calls} left" if grant.calls else ""
    until = f"until {clock(grant.until)}" if grant.until else ""
    return ", ".join(filter(None, (count, until))) or "as long as this conversation goes on"


def used(grant: Grant) -> str:
    if grant.calls:
        return f"used {grant.used} of {grant.calls}"
    return {0: "not used yet", 1: "used once"}.get(grant.used, f"used {grant.used} times")


def reason(grant: Grant) -> str:
    """Return why a call was not asked about, with `used` counting it already."""
    given = f"given by {grant.person.get_username()} at {clock(grant.given_at)}"
    which = f"use {grant.used} of {grant.calls}" if grant.calls else f"use {grant.used}"
    return f"Not asked because of a grant: {sentence(grant).rstrip('.')} ({given}; this is {which})."


def ended_how(grant: Grant) -> str:
    """Return how it ended, for whoever revoked it just now, if it had not ended before."""
    how = grant.get_end_display().lower()
    return f"{grant.tool_name} asks again, unless another grant covers the call: this one is {how}."


def clock(at: datetime) -> str:
    """Return a time in the server's time zone, which is named; with the day if it is not today's."""
    local = timezone.localtime(at)
    day = "" if local.date() == timezone.localdate() else f"{local.day} {local:%b} "
    return f"{day}{local:%H:%M %Z}"


def _bounds(scope: Scope, where: str) -> str:
    count = "for the next call" if scope.calls == 1 else f"for the next {scope.calls} calls" if scope.calls else ""
    words = ["with exactly these arguments" if scope.same_arguments else "", count]
    words.append(where if scope.this_conversation else "")
    said = " ".join(filter(None, words))
    said += f", until {clock(scope.until)}" if scope.until else ""
    said += f", while {scope.condition} holds" if scope.condition else ""
    return said.removeprefix(", ")
