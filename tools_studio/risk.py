"""The risk level of a tool, from nothing but the capabilities that it declares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from tools_studio.capabilities import READING_METHODS

LABELS = ("Verified", "Safe", "Low", "Moderate", "High", "Critical")
CRITICAL = len(LABELS) - 1


@dataclass(frozen=True)
class Signal:
    """One declared power with the level it asks for."""

    level: int
    reason: str


@dataclass(frozen=True)
class Risk:
    """`level` is 0 to 5, `label` its word, and `signals` say in plain words what raised it, worst first."""

    level: int
    label: str
    signals: tuple[Signal, ...]


_FIXED = {
    "now": Signal(0, "reads the clock"),
    "random": Signal(0, "uses chance"),
    "sleep": Signal(0, "may wait"),
    "store": Signal(2, "keeps data between calls"),
    "secrets": Signal(3, "reads secrets"),
    "webhook": Signal(3, "sends data to addresses kept in its variables"),
    "destructive": Signal(CRITICAL, "can destroy what cannot be brought back"),
}


def assess(capabilities: Mapping[str, Any]) -> Risk:
    """The risk of a tool that declares `capabilities`; what is not understood counts as critical."""
    found = tuple(sorted(_signals(capabilities), key=lambda signal: -signal.level))
    level = found[0].level if found else 0
    return Risk(level, LABELS[level], found)


def _signals(capabilities: Mapping[str, Any]) -> Iterator[Signal]:
    for name, value in capabilities.items():
        if value is None or value is False:
            continue
        if name in _FIXED:
            yield _FIXED[name]
        elif name == "fetch":
            yield _fetch(value)
        elif name == "files":
            yield _files(value)
        elif name == "email":
            yield _email(value)
        else:
            yield Signal(CRITICAL, _("declares {name}, which is not a known capability").format(name=repr(name)))


def _fetch(value: object) -> Signal:
    declared = value if isinstance(value, Mapping) else {}
    hosts, methods = declared.get("hosts"), declared.get("methods")
    reads = isinstance(methods, list | tuple) and methods and set(map(str, methods)) <= set(READING_METHODS)
    named = ", ".join(map(str, hosts)) if isinstance(hosts, list | tuple) else ""
    match declared.get("mode"):
        case "allowlist" if named and "*" not in named:
            words = _("may read from named hosts: {hosts}") if reads else _("may fetch from named hosts: {hosts}")
            return Signal(3, words.format(hosts=named))
        case "allowlist" if named:
            if reads:
                words = _("may read from hosts that are not all named: {hosts}")
            else:
                words = _("may fetch from hosts that are not all named: {hosts}")
            return Signal(4, words.format(hosts=named))
        case "public":
            words = _("may read from any public host") if reads else _("may fetch from any public host")
            return Signal(3, words + (_(", and {hosts}").format(hosts=named) if named else ""))
        case _:
            return Signal(4, _("may read from any host") if reads else _("may fetch from any host"))


def _files(value: object) -> Signal:
    if isinstance(value, Mapping) and value.get("mode") == "read":
        return Signal(3, _("reads files in the folder {folder}").format(folder=value.get("folder")))
    folder = value.get("folder") if isinstance(value, Mapping) else "?"
    return Signal(4, _("writes and deletes files in the folder {folder}").format(folder=folder))


def _email(value: object) -> Signal:
    to = value.get("to") if isinstance(value, Mapping) else None
    if isinstance(to, list | tuple) and to and "*" not in to:
        return Signal(3, _("sends e-mail to {recipients}").format(recipients=", ".join(map(str, to))))
    return Signal(4, "sends e-mail to anyone")
