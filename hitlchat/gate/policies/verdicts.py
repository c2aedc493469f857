"""What a rule can say about a call, and which of several sayings counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

Outcome = Literal["abstain", "allow", "ask", "refuse"]


@dataclass(frozen=True)
class Allow:
    reason: str


@dataclass(frozen=True)
class Ask:
    reason: str


class Unusable(Ask):
    """A person is asked because a rule gave no answer, which no other rule and no mode may soften."""


@dataclass(frozen=True)
class Refuse:
    reason: str


@dataclass(frozen=True)
class Abstain:
    """The rule is not about this call."""


Verdict = Allow | Ask | Refuse
Said = Verdict | Abstain

# From the mildest to the strictest.
OUTCOMES: Final[dict[type, Outcome]] = {Abstain: "abstain", Allow: "allow", Ask: "ask", Refuse: "refuse"}
ORDER: Final[tuple[Outcome, ...]] = tuple(OUTCOMES.values())
VERDICTS: Final[dict[str, type[Allow] | type[Ask] | type[Refuse]]] = {"allow": Allow, "ask": Ask, "refuse": Refuse}


def outcome(said: Said) -> Outcome:
    return next(word for kind, word in OUTCOMES.items() if isinstance(said, kind))


def strictness(said: Said) -> int:
    return ORDER.index(outcome(said))


def strictest(all_said: Iterable[Said]) -> Said:
    """The first of the strictest; Abstain if there is none."""
    return max(all_said, key=strictness, default=Abstain())


def together(said: Iterable[Said]) -> Said:
    """What they say only if all of them speak: the first of the mildest. Abstain as soon as one is silent."""
    return min(said, key=strictness, default=Abstain())


def combined(*possible: frozenset[Outcome]) -> frozenset[Outcome]:
    """What `strictest` can come to, when each rule can say one of its outcomes."""
    found: frozenset[Outcome] = frozenset({"abstain"})
    for each in possible:
        found = frozenset(max(one, other, key=ORDER.index) for one in found for other in each)
    return found


def combined_together(*possible: frozenset[Outcome]) -> frozenset[Outcome]:
    """What `together` can come to."""
    found: frozenset[Outcome] = frozenset({ORDER[-1]})
    for each in possible:
        found = frozenset(min(one, other, key=ORDER.index) for one in found for other in each)
    return found
