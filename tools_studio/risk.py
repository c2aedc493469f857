"""The risk level of a tool, from nothing but the capabilities that it declares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LABELS = ("Verified", "Safe", "Low", "Moderate", "High", "Critical")
CRITICAL = len(LABELS) - 1


@dataclass(frozen=True)
class Risk:
    """`level` is 0 to 5, `label` its word, and `reasons` say in plain words what raised it, worst first."""

    level: int
    label: str
    reasons: tuple[str, ...]


def assess(capabilities: Mapping[str, Any]) -> Risk:
    """The risk of a tool that declares `capabilities`; what is not understood counts as critical."""
    found = sorted(_signals(capabilities), key=lambda signal: -signal[0])
    level = found[0][0] if found else 0
    return Risk(level, LABELS[level], tuple(reason for _, reason in found))


def _signals(capabilities: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    for name, value in capabilities.items():
        if value is None or value is False or name == "now":
            continue
        if name == "destructive":
            yield CRITICAL, "can destroy what cannot be brought back"
        elif name == "store":
            yield 2, "keeps data between calls"
        elif name == "fetch":
            yield _fetch(value)
        else:
            yield CRITICAL, f"declares {name!r}, which is not a known capability"


def _fetch(value: object) -> tuple[int, str]:
    hosts = value.get("hosts") if isinstance(value, Mapping) and value.get("mode") == "allowlist" else None
    if not isinstance(hosts, list | tuple) or not hosts:
        return 4, "may fetch from any host"
    named = ", ".join(map(str, hosts))
    if "*" in named:
        return 4, f"may fetch from hosts that are not all named: {named}"
    return 3, f"may fetch from named hosts: {named}"
