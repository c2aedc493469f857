"""Rules of an installation. What a class of one's own needs: the verdicts, and what it is told about a call.

`evaluate(call, tool, context)`, plain or `async`, returns Allow, Ask, Refuse or Abstain. Whatever else comes of it,
an exception and nothing in time included, means that a person is asked.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

Outcome = Literal["abstain", "allow", "ask", "refuse"]
# What a rule adds for programs: the number of a policy, a severity, a tenant.
Metadata = Mapping[str, Any]
Where = Literal["installation", "settings", "tool", "conversation"]


@dataclass(frozen=True)
class Allow:
    reason: str
    metadata: Metadata = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Ask:
    reason: str
    metadata: Metadata = field(default_factory=dict, hash=False)


class Unusable(Ask):
    """A person is asked because a rule gave no answer, which no other rule and no mode may soften."""


@dataclass(frozen=True)
class Refuse:
    reason: str
    metadata: Metadata = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Abstain:
    """The rule is not about this call."""


Verdict = Allow | Ask | Refuse
Said = Verdict | Abstain

# From the mildest to the strictest.
OUTCOMES: Final[dict[type, Outcome]] = {Abstain: "abstain", Allow: "allow", Ask: "ask", Refuse: "refuse"}
ORDER: Final[tuple[Outcome, ...]] = tuple(OUTCOMES.values())
VERDICTS: Final[dict[str, type[Allow] | type[Ask] | type[Refuse]]] = {"allow": Allow, "ask": Ask, "refuse": Refuse}


def outcome(answer: Said) -> Outcome:
    return next(word for kind, word in OUTCOMES.items() if isinstance(answer, kind))


def strictness(answer: Said) -> int:
    return ORDER.index(outcome(answer))


def strictest(answers: Iterable[Said]) -> Said:
    """Return the first of the strictest; Abstain if there is none."""
    return max(answers, key=strictness, default=Abstain())


def together(answers: Iterable[Said]) -> Said:
    """Return the first of the mildest answers, which is Abstain as soon as one rule is silent."""
    return min(answers, key=strictness, default=Abstain())


def combined(*possible: frozenset[Outcome], all_speak: bool = False) -> frozenset[Outcome]:
    """Return the possible outcomes of `strictest`, or of `together` where `all_speak`, by those of each rule."""
    pick = min if all_speak else max
    found: frozenset[Outcome] = frozenset({ORDER[-1] if all_speak else ORDER[0]})
    for each in possible:
        found = frozenset(pick(one, other, key=ORDER.index) for one in found for other in each)
    return found


@dataclass(frozen=True)
class CallView:
    """`arguments` are those that would run, with defaults, as a copy. `caller_kind`: chat, studio, api or mcp.

    `conversation_id`: the one that a person sees. `agents`: through which its call comes, by name, the outermost first.
    `args_from_outside`: the person typed a value of the arguments nowhere, and text of strangers has it, or may.
    """

    tool_name: str
    arguments: dict[str, Any]
    caller_kind: str
    user_id: int
    user_name: str
    groups: frozenset[str]
    conversation_id: UUID | None
    agents: tuple[str, ...] = ()
    args_from_outside: bool = True


@dataclass(frozen=True)
class ToolView:
    id: UUID
    name: str
    title: str
    description: str
    source: str
    origin: str
    risk_level: int
    hitl_mode: str
    definition_hash: str
    published: bool


@dataclass(frozen=True)
class Context:
    """`approved_before()` says whether this person approved the same arguments of the same tool before, signed in, and
    that call succeeded. It reads the database: asynchronous code crosses over with `sync_to_async`.

    `known_groups` are those of the groups named in rules that exist.
    """

    now: datetime
    approved_before: Callable[[], bool]
    known_groups: frozenset[str] = frozenset()


def words(names: tuple[str, ...], joint: str = "or") -> str:
    """`a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"


@dataclass(frozen=True)
class Spoke:
    """One rule that had something to say, and where it is set."""

    policy: str
    verdict: Outcome
    reason: str
    source: Where
    metadata: Metadata = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, policy: str, verdict: Verdict, source: Where) -> "Spoke":
        return cls(policy, outcome(verdict), verdict.reason, source, verdict.metadata)

    @classmethod
    def of_those(cls, heard: Iterable[tuple[str, Said]], source: Where) -> tuple["Spoke", ...]:
        return tuple(cls.of(name, answer, source) for name, answer in heard if not isinstance(answer, Abstain))

    @property
    def as_json(self) -> dict[str, Any]:
        facts = {"policy": self.policy, "verdict": self.verdict, "reason": self.reason, "source": self.source}
        return facts | ({"metadata": dict(self.metadata)} if self.metadata else {})


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    spoke: tuple[Spoke, ...]
    # Whether each rule that was asked gave an answer.
    is_sure: bool = True

    @property
    def only_the_tool_asks(self) -> bool:
        """Return whether no rule of the installation and no stricter conversation asks, nor the want of an answer."""
        asks = isinstance(self.verdict, Ask) and not isinstance(self.verdict, Unusable)
        return asks and all(each.source == "tool" for each in self.spoke if each.verdict != "allow")

    @classmethod
    def alone(cls, policy: str, verdict: Verdict, source: Where) -> "Judgement":
        return cls(verdict, (Spoke.of(policy, verdict, source),))
