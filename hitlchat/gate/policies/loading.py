"""From the settings to rules, and nothing in between: an entry that does not parse is refused, with where and why."""

import logging
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from django.utils.module_loading import import_string
from pydantic import ValidationError

from hitlchat.base import canonical
from hitlchat.gate.policies.bundled import SIMPLE
from hitlchat.gate.policies.composed import AllOf, AnyOf, Composed
from hitlchat.gate.policies.rule import Own, Rule

logger = logging.getLogger(__name__)

COMPOSED: Final[dict[str, type[Composed]]] = {"any_of": AnyOf, "all_of": AllOf}
NAMES: Final = (*SIMPLE, *COMPOSED)
MOST_POLICIES: Final = 50
DEEPEST: Final = 4


class Unloadable(ValueError):
    """The settings do not say what the rules are; the message names the entry, the field and what was expected."""


def in_force() -> tuple[Rule, ...]:
    """The rules of this installation. Unloadable."""
    return load(settings.HITL_POLICIES)


def fingerprint() -> Any:
    """What `in_force` gives, as JSON that is the same as long as the rules are."""
    try:
        return [[rule.to_dict(), _versions(rule)] for rule in in_force()]
    except Unloadable as error:
        return str(error)


def load(entries: Any) -> tuple[Rule, ...]:
    try:
        return _loaded(canonical.dumps(entries))
    except canonical.NotJson as error:
        raise Unloadable(f"HITL_POLICIES is no JSON: {error}.") from error


# Also of what does not load, which would otherwise be looked for again with every call.
@lru_cache(maxsize=64)
def _attempt(text: str) -> tuple[Rule, ...] | str:
    try:
        return tuple(_rules(canonical.loads(text), "HITL_POLICIES", 0))
    except Unloadable as error:
        return str(error)


def _loaded(text: str) -> tuple[Rule, ...]:
    found = _attempt(text)
    if isinstance(found, str):
        raise Unloadable(found)
    return found


def _rules(entries: Any, where: str, depth: int) -> Iterator[Rule]:
    if not isinstance(entries, list):
        raise Unloadable(f"{where} must be a list of policies, not {_kind(entries)}.")
    if len(entries) > MOST_POLICIES:
        raise Unloadable(f"{where} has {len(entries)} policies; at most {MOST_POLICIES} are expected.")
    for number, entry in enumerate(entries, 1):
        yield _rule(entry, f"{where}, entry {number}", depth)


def _rule(entry: Any, where: str, depth: int) -> Rule:
    if not isinstance(entry, dict):
        raise Unloadable(f'{where} must be an object such as {{"policy": "always_ask", …}}, not {_kind(entry)}.')
    options = dict(entry)
    word = options.pop("policy", None)
    if isinstance(word, str) and word in SIMPLE:
        return _simple(word, options, f"{where} ({word})")
    if isinstance(word, str) and word in COMPOSED:
        return _composed(word, options, f"{where} ({word})", depth)
    if isinstance(word, str) and all(part.isidentifier() for part in word.split(".")) and "." in word:
        return _own(word, options, f"{where} ({word})")
    raise Unloadable(f"{where}: “policy” must be one of {', '.join(NAMES)}, or the dotted path of a class.")


def _simple(word: str, options: dict[str, Any], where: str) -> Rule:
    try:
        return SIMPLE[word].model_validate_json(canonical.dumps(options))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f"{part}" for part in first["loc"])
        told = f"; it has {', '.join(f'“{name}”' for name in _fields(word))}" if "extra" in first["type"] else ""
        raise Unloadable(f"{where}, field “{place}”: {first['msg']}{told}.") from error


def _fields(word: str) -> list[str]:
    return [field.alias or name for name, field in SIMPLE[word].model_fields.items()]


def _composed(word: str, options: dict[str, Any], where: str, depth: int) -> Rule:
    if set(options) != {"policies"} or not options["policies"]:
        raise Unloadable(f"{where} must have the field “policies”, a list of at least one, and no other.")
    if depth + 1 >= DEEPEST:
        raise Unloadable(f"{where} is nested too deeply: at most {DEEPEST} levels are expected.")
    return COMPOSED[word](tuple(_rules(options["policies"], f"{where}, “policies”", depth + 1)))


def _own(path: str, options: dict[str, Any], where: str) -> Rule:
    try:
        policy = import_string(path)(**options)
        version = getattr(policy, "version", None)
        can_judge = callable(getattr(policy, "evaluate", None))
    except Exception as error:
        logger.exception("The policy %s could not be made", path)
        raise Unloadable(f"{where} could not be made with these options: {type(error).__name__}: {error}.") from error
    if not can_judge:
        raise Unloadable(f"{where} has no method evaluate(call, tool, context).")
    return Own(path, options, policy, version if isinstance(version, str | int) else None)


def _versions(rule: Rule) -> list[Any]:
    if isinstance(rule, Composed):
        return [_versions(each) for each in rule.policies]
    return [rule.version] if isinstance(rule, Own) else []


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
