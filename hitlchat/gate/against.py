"""What a call has otherwise than the person's message says: another choice, the other direction, the other place.

Words are compared, not their sense: so what was written is told, and the person judges. In English and German.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from hitlchat.base import schemas

Arguments = dict[str, Any]

# Of a message, and of a value in it.
READ: Final = 10_000
LONGEST: Final = 100
# Choices that are words of any sentence.
_EVERYDAY: Final = {
    *("all", "and", "any", "for", "from", "get", "new", "none", "not", "now", "off", "old", "one", "out", "the", "yes"),
    *("alle", "auf", "aus", "der", "die", "das", "ein", "eine", "nein", "neu", "nicht", "und", "von"),
}
SHORTEST: Final = 3
_TEST: Final = {"demo", "sandbox", "staging", "test", "testing", "testserver", "testsystem"}
_LIVE: Final = {"live", "prod", "production", "produktion", "produktiv"}
_WORD: Final = re.compile(r"[^\W_]+")
_OF_NAME: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_TO: Final = {"destination", "into", "payee", "recipient", "target", "to"}
_FROM: Final = {"from", "origin", "payer", "sender", "source"}
_ARTICLE: Final = r"(?:the|my|our|dem|der|das|den|mein\w*)\s+"
# What stands before a value, by the direction that an argument's name says it has not.
_BEFORE: Final = {
    "to": rf"(?:from|von|vom|aus)\s+(?:{_ARTICLE})?",
    "from": rf"(?:to|into|nach|an|auf|zu|zum|zur)\s+(?:{_ARTICLE})?",
}


def written(arguments: Arguments, message: str, schema: dict[str, Any], place: str = "") -> dict[str, str]:
    """Return, by JSON pointer, the words of `message` that speak against a value; those against `place` by "".

    `place`: the names of the tool and of what it belongs to.
    """
    message = message[:READ]
    phrase = _phrase(message)
    found = {"": _other_place(phrase, place)}
    properties = schema.get("properties") or {}
    for name, value in arguments.items():
        part = properties.get(name)
        choices = schemas.plain(part, schema).choices if isinstance(part, dict) else ()
        other = _other_choice(phrase, value, [choice for choice, _ in choices]) if choices else ""
        found[schemas.step("", name)] = other or _other_direction(message, name, value)
    return {path: words for path, words in found.items() if words}


def _other_choice(phrase: str, value: Any, choices: list[Any]) -> str:
    """Return the choice that the message names if it names another than `value`, and not that one."""
    named = [each for each in choices if isinstance(each, str) and _is_telling(each) and _phrase(each) in phrase]
    return "" if value in named or (isinstance(value, str) and _phrase(value) in phrase) else next(iter(named), "")


def _other_direction(message: str, name: str, value: Any) -> str:
    """Return where the message has the value of `name` if that is the other way round, and nowhere the right one."""
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not 2 <= len(text) <= LONGEST:
        return ""
    words = {*map(str.lower, _OF_NAME.findall(name))}
    for way, other, its in (("to", "from", _TO), ("from", "to", _FROM)):
        if words & its:
            wrong, right = (
                re.search(rf"\b{_BEFORE[each]}{re.escape(text)}(?!\w)", message, re.IGNORECASE) for each in (way, other)
            )
            return wrong[0] if wrong and not right else ""
    return ""


def _other_place(phrase: str, place: str) -> str:
    """Return the word for a test if the message has it and `place` is the real thing, and the other way round."""
    said, there = phrase.split(), [*_words(place)]
    for these, those in ((_TEST, _LIVE), (_LIVE, _TEST)):
        if those.intersection(there) and not these.intersection(there) and not those.intersection(said):
            return next((word for word in said if word in these), "")
    return ""


def _is_telling(choice: str) -> bool:
    return SHORTEST <= len(choice) <= LONGEST and choice.casefold() not in _EVERYDAY


def _words(text: str) -> Iterator[str]:
    return (word[0].casefold() for word in _WORD.finditer(text))


def _phrase(text: str) -> str:
    return f" {' '.join(_words(text))} "
