"""What a disclosure freezes beside the arguments: defaults, currencies, what was otherwise in the last such call, and
what became of the tool's last calls.

Each part is optional: a disclosure without it says nothing about that.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.sentences import part, translatable
from hitlchat.gate import schema
from hitlchat.gate.contents import spelled
from hitlchat.gate.models import CallerKind
from hitlchat.gate.status import SETTLED, STARTED, Status

Arguments = dict[str, Any]

# So many arguments that are otherwise than last time are named, each with so much of its value.
MOST: Final = 50
LONGEST: Final = 80
# So many of a tool's last calls are counted.
COUNTED: Final = 20
WENT_WRONG: Final = (Status.FAILED, Status.UNKNOWN, Status.DECLINED)
NEVER_RAN: Final = gettext_noop("It has never run here.")
CHANGED: Final = gettext_noop("It has not run since it was changed.")
CURRENCIES: Final = (
    "AED AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF ILS INR JPY KRW MXN NOK NZD PLN RON SEK SGD THB TRY USD ZAR"
)
_CODE: Final = re.compile(rf"(?<![A-Za-z])(?:{CURRENCIES.replace(' ', '|')})(?![A-Za-z])")
_CODE_OF_NAME: Final = re.compile(rf"(?:_|-)({CURRENCIES.replace(' ', '|')})\Z", re.IGNORECASE)
_GIVEN_CODE: Final = re.compile(r"[A-Z]{3}\Z")


class Suggested(NamedTuple):
    """A declined call, and what its person said to do instead."""

    arguments: Arguments
    instead: str


class Past(NamedTuple):
    """An earlier call of a tool of the same name."""

    status: str
    definition: str
    caller_kind: str
    asked_at: datetime


def frozen(input_schema: dict[str, Any], arguments: Arguments, absent: Collection[str]) -> dict[str, Any]:
    """Return the parts of a disclosure about the arguments; `absent`: those that are not given."""
    return {
        "notGiven": list(absent),
        "notDefault": not_default(input_schema, arguments),
        "currencies": currencies(input_schema, arguments),
    }


def not_given(input_schema: dict[str, Any], given: str | Arguments) -> list[str]:
    """Return the arguments that are filled in from the schema, since `given`, which fits it, is without them."""
    filled = [name for name, part in _properties(input_schema) if "default" in part]
    names = schema.parse_arguments(given) if filled and isinstance(given, str) else given
    return [name for name in filled if name not in names]


def still_not_given(before: dict[str, Any], arguments: Arguments) -> list[str]:
    """Return those that were not given when `before` was disclosed, and that nobody has changed since."""
    same = {name: canonical.dumps(value) for name, value in before["arguments"].items()}
    names = before.get("notGiven", [])
    return [name for name in names if name in arguments and same[name] == canonical.dumps(arguments[name])]


def not_default(input_schema: dict[str, Any], arguments: Arguments) -> list[str]:
    """Return the arguments that have a default and another value."""
    parts = ((name, part) for name, part in _properties(input_schema) if "default" in part and name in arguments)
    return [name for name, part in parts if not canonical.are_alike(part["default"], arguments[name])]


def currencies(input_schema: dict[str, Any], arguments: Arguments) -> dict[str, str]:
    """Return the currency of each number that the schema gives one: by `x-currency`, which has a code or the name of
    the argument with it, else in its title, description or name.
    """
    found = ((name, _currency(name, part, arguments)) for name, part in _properties(input_schema))
    return {name: code for name, code in found if code and _is_number(arguments.get(name))}


def last_time(before: Arguments, now: Arguments) -> dict[str, Any]:
    """Return what in `now` is otherwise than in the arguments `before`, with the values that they had."""
    changed = [name for name in now if name in before and not canonical.are_alike(before[name], now[name])]
    added, missing = (
        [name for name in these if name not in others] for these, others in ((now, before), (before, now))
    )
    more = sum(max(0, len(names) - MOST) for names in (changed, added, missing))
    parts = {
        "changed": {name: _cut(before[name]) for name in changed[:MOST]},
        "added": added[:MOST],
        "missing": {name: _cut(before[name]) for name in missing[:MOST]},
        "more": more,
    }
    return {name: part for name, part in parts.items() if part}


def attempt(suggested: Sequence[Suggested], now: Arguments) -> dict[str, Any]:
    """Return the parts of a disclosure about an attempt after others, which is compared with the last of them alone."""
    if not suggested:
        return {}
    last = suggested[-1]
    said = {"number": len(suggested) + 1, "instead": last.instead}
    return {"attempt": said, "lastTime": last_time(last.arguments, now)}


def last_calls(calls: Collection[Past], definition: str, since: datetime, *, are_all: bool) -> tuple[str, bool]:
    """Return what became of a tool's last calls, and whether most went wrong. Empty: nothing can be said.

    `calls`: the last of its name, the newest first; `are_all`: there are no others.
    """
    # What a tool did with another definition says nothing of what it does now, nor do tests by its author.
    calls = [call for call in calls if call.caller_kind != CallerKind.STUDIO]
    same = [call for call in calls if call.definition == definition]
    settled = [Status(call.status) for call in same if call.status in SETTLED and call.asked_at > since][:COUNTED]
    if settled:
        return _became(settled), 2 * sum(map(settled.count, WENT_WRONG)) > len(settled)
    if any(call.status in STARTED for call in same):
        return "", False
    if any(call.status in STARTED for call in calls):
        return CHANGED, False
    return NEVER_RAN if are_all else "", False


def in_order(properties: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of arguments by their numbers in `x-order`, then those without one as they come."""
    numbers = {name: part["x-order"] for name, part in properties.items() if _is_number(part.get("x-order"))}
    return sorted(properties, key=lambda name: (name not in numbers, numbers.get(name, 0)))


def _properties(input_schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, said in input_schema.get("properties", {}).items():
        if isinstance(said, dict):
            yield name, said


def _became(settled: list[Status]) -> str:
    many, count = len(settled), Counter(settled)
    if many == 1:
        label = settled[0].label.lower()
        return translatable(f"Its last call: {label}.")
    if count[Status.SUCCEEDED] == many:
        return translatable(f"Its last {many} calls succeeded.")
    parts = {
        Status.SUCCEEDED: part(f"{count[Status.SUCCEEDED]} succeeded"),
        Status.FAILED: part(f"{count[Status.FAILED]} failed"),
        Status.UNKNOWN: part(f"{count[Status.UNKNOWN]} with an unknown outcome"),
        Status.DECLINED: part(f"{count[Status.DECLINED]} declined"),
        Status.ANSWERED: part(f"{count[Status.ANSWERED]} answered by a person"),
        Status.EXPIRED: part(f"{count[Status.EXPIRED]} expired"),
        Status.WITHDRAWN: part(f"{count[Status.WITHDRAWN]} withdrawn"),
        Status.REFUSED: part(f"{count[Status.REFUSED]} refused"),
        Status.REJECTED: part(f"{count[Status.REJECTED]} rejected"),
    }
    counted = ", ".join(words for status, words in parts.items() if count[status])
    return translatable(f"Its last {many} calls: {counted}.")


def _currency(name: str, part: dict[str, Any], arguments: Arguments) -> str:
    said = part.get("x-currency")
    if isinstance(said, str):
        code = arguments.get(said, said)
        return code if isinstance(code, str) and _GIVEN_CODE.match(code) else ""
    if found := _CODE_OF_NAME.search(name):
        return found[1].upper()
    # Of two, nobody can say which is meant.
    codes = {*_CODE.findall(f"{part.get('title', '')} {part.get('description', '')}")}
    return codes.pop() if len(codes) == 1 else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cut(value: Any) -> list[Any]:
    """Return the beginning of a value, as text, and how many characters are left out."""
    text = spelled(value, indent=None)
    return [text[:LONGEST], max(0, len(text) - LONGEST)]
