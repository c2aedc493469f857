"""Modules that tools can import without a capability, beside those of the interpreter: names, functions, advice."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_monty import ExternalModule

from hitlchat.sandbox.helpers.texts import DIFFLIB, HTML, PARSE, STRING, TEXTWRAP, URLS
from hitlchat.sandbox.helpers.values import CALENDAR, HEAPQ, HMAC, SECRETS, STATISTICS, UUID, ZONES
from hitlchat.sandbox.importable import HelperModule

ALL = (CALENDAR, DIFFLIB, HEAPQ, HMAC, HTML, SECRETS, STATISTICS, STRING, TEXTWRAP, URLS, PARSE, UUID, ZONES)
BY_NAME: Mapping[str, HelperModule] = {module.name: module for module in ALL}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    f"{module.name}.{name}": function for module in ALL for name, function in module.functions.items()
}

_MISSING = (
    re.compile(r"cannot import name '(?P<member>\w+)' from '(?P<module>[\w.]+)'"),
    re.compile(r"module '(?P<module>[\w.]+)' has no attribute '(?P<member>\w+)'"),
    re.compile(r"Module `(?P<module>[\w.]+)` has no member `(?P<member>\w+)`"),
)


def modules(powers: frozenset[str] | None) -> dict[str, ExternalModule]:
    """Return the modules by the names that tools import; with `powers`, as they are declared to the type checker."""
    found = {module.name: module.external(powers) for module in ALL}
    return {"urllib": ExternalModule({"parse": found.pop("urllib.parse")}), **found}


def refused(name: str, powers: frozenset[str]) -> str | None:
    """Return why the function of this dotted name may not be called, if it may not."""
    module, _, member = name.rpartition(".")
    if member in BY_NAME[module].chance and "random" not in powers:
        return f"{name} is not granted to this tool: switch on the capability 'random'"
    return None


def missing(message: str) -> str | None:
    """Return why a helper module lacks what `message` names, and what it offers; None if that is not what it says."""
    for pattern in _MISSING:
        if (found := pattern.search(message)) and (module := BY_NAME.get(found["module"])):
            if found["member"] in module.chance:
                return refused(f"{module.name}.{found['member']}", frozenset())
            offer = f"{module.name} offers {', '.join(module.names)}"
            return f"{module.name}.{found['member']} does not exist in tools; {offer}"
    return None
