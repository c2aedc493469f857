"""What a disclosure freezes beside the arguments: defaults, currencies, and what was otherwise in the last such call.

Each part is optional: a disclosure without it says nothing about that.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from hitlchat.base import canonical
from hitlchat.gate import schema
from hitlchat.gate.contents import spelled

Arguments = dict[str, Any]

# So many arguments that are otherwise than last time are named, each with so much of its value.
MOST: Final = 50
LONGEST: Final = 80
CURRENCIES: Final = (
    "AED AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF ILS INR JPY KRW MXN NOK NZD PLN RON SEK SGD THB TRY USD ZAR"
)
_CODE: Final = re.compile(rf"(?<![A-Za-z])(?:{CURRENCIES.replace(' ', '|')})(?![A-Za-z])")
_CODE_OF_NAME: Final = re.compile(rf"(?:_|-)({CURRENCIES.replace(' ', '|')})\Z", re.IGNORECASE)
_GIVEN_CODE: Final = re.compile(r"[A-Z]{3}\Z")


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


def in_order(properties: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of arguments by their numbers in `x-order`, then those without one as they come."""
    numbers = {name: part["x-order"] for name, part in properties.items() if _is_number(part.get("x-order"))}
    return sorted(properties, key=lambda name: (name not in numbers, numbers.get(name, 0)))


def _properties(input_schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, part in input_schema.get("properties", {}).items():
        if isinstance(part, dict):
            yield name, part


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
