"""The risk of an upstream's tool as offered here: its server's and its own, and what approval takes off.

The two scores are added and levelled again; a floor on either side sets at least the higher of the two levels. The
result is the *inherent* level. The *effective* one is a level lower where every call needs approval, but never below
L1, and not at all where the scan found a text that works on its reader: what a person is shown might be written to
deceive.

A ceiling on what may be offered is held against the inherent level. Approval lowers the chance of harm, not its size.
(The product from which the rubric comes says both in different places.) And a floor never leads to a lower level than
the points would.
"""

from dataclasses import dataclass

from hitlchat.upstreams.risk.server import LOWEST, Assessment, Floor, ServerFacts, Signal, assess_server, bucket
from hitlchat.upstreams.risk.tool import assess_tool, says_it_writes

__all__ = [
    "Assessment",
    "Composed",
    "Floor",
    "ServerFacts",
    "Signal",
    "assess_server",
    "assess_tool",
    "compose",
    "effective",
    "says_it_writes",
]

CREDIT = "Every call needs approval: one level lower."


@dataclass(frozen=True)
class Composed:
    """Both levels (1 to 5), the floor that set the inherent one, if one did, and the reasons in sentences."""

    inherent: int
    effective: int
    floor: Floor | None
    reasons: tuple[str, ...]

    def within(self, ceiling: int) -> bool:
        """Whether a tool of this risk may be offered where `ceiling` is the highest level allowed."""
        return self.inherent <= ceiling


def compose(server: Assessment, tool: Assessment, *, gated: bool, poisoned: bool) -> Composed:
    """`gated`: every call is asked about. `poisoned`: the scan trips."""
    floor = server.floor or tool.floor
    inherent = max(server.level, tool.level, bucket(server.score + tool.score))
    level = effective(inherent, floored=floor is not None, gated=gated, poisoned=poisoned)
    return Composed(
        inherent=inherent,
        effective=level,
        floor=floor,
        reasons=(*_told("Server: ", server), *_told("Tool: ", tool), *_credit(gated, poisoned, level < inherent)),
    )


def effective(inherent: int, *, floored: bool, gated: bool, poisoned: bool) -> int:
    """The level with which calls are asked about: one lower than the inherent one where each of them is.

    `floored`: something that the tool does set the level. Then there is no credit, which would make a yes easier to
    click; it is for tools of which only too little is known.
    """
    return inherent - 1 if gated and not (poisoned or floored) and inherent > LOWEST else inherent


def _told(whose: str, assessment: Assessment) -> tuple[str, ...]:
    return tuple(f"{whose}{reason}" for reason in assessment.reasons)


def _credit(gated: bool, poisoned: bool, credited: bool) -> tuple[str, ...]:
    if credited:
        return (CREDIT,)
    if gated and poisoned:
        return ("Every call needs approval, but its texts are suspicious: not lower for that.",)
    return ()
