"""What a scan reports."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hitlchat.base.visible import see

Severity = Literal["warn", "block"]

# These say that a text is hard to judge, not that it was written to deceive.
_HARMLESS = {"overlong"}
_BEFORE, _AFTER, _LONGEST = 30, 60, 220


@dataclass(frozen=True)
class Finding:
    """One signal at one place.

    `where` is a JSON pointer into the upstream's definition (`/inputSchema/properties/path/description`), `excerpt` the
    text around it with hidden characters as escapes, `sentence` what it means, for a person. `warn`: shown beside the
    tool; `block`: the tool is not to be offered before a person has read this and said so.
    """

    id: str
    severity: Severity
    where: str
    excerpt: str
    sentence: str


def trips(findings: Iterable[Finding]) -> bool:
    """Whether the tool forfeits what approval would be credited with: any sign of a text that works on its reader."""
    return any(finding.id not in _HARMLESS for finding in findings)


def blocks(findings: Iterable[Finding]) -> bool:
    return any(finding.severity == "block" for finding in findings)


def excerpt(text: str, start: int, end: int) -> str:
    """The stretch from `start` to `end` with a little around it, everything visible, on one line."""
    first, last = max(0, start - _BEFORE), min(len(text), end + _AFTER, start + _LONGEST)
    shown = " ".join(see(text[first:last]).plain.split())
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"
