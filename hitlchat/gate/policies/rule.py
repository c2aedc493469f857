"""A rule: what it offers, what it is told about a call, what it can say, and which of several verdicts counts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Literal, Protocol
from uuid import UUID

from hitlchat.base import canonical

Outcome = Literal["abstain", "allow", "ask", "refuse"]


# What a rule adds for programs: the number of a policy, a severity, a tenant.
Metadata = Mapping[str, Any]


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


def outcome(said: Said) -> Outcome:
    return next(word for kind, word in OUTCOMES.items() if isinstance(said, kind))


def strictness(said: Said) -> int:
    return ORDER.index(outcome(said))


def strictest(all_said: Iterable[Said]) -> Said:
    """The first of the strictest; Abstain if there is none."""
    return max(all_said, key=strictness, default=Abstain())


def together(said: Iterable[Said]) -> Said:
    """Return what they say only if all of them speak: the first of the mildest. Abstain as soon as one is silent."""
    return min(said, key=strictness, default=Abstain())


def combined(*possible: frozenset[Outcome]) -> frozenset[Outcome]:
    """Return what `strictest` can come to, when each rule can say one of its outcomes."""
    found: frozenset[Outcome] = frozenset({"abstain"})
    for each in possible:
        found = frozenset(max(one, other, key=ORDER.index) for one in found for other in each)
    return found


def combined_together(*possible: frozenset[Outcome]) -> frozenset[Outcome]:
    """Return what `together` can come to."""
    found: frozenset[Outcome] = frozenset({ORDER[-1]})
    for each in possible:
        found = frozenset(min(one, other, key=ORDER.index) for one in found for other in each)
    return found


@dataclass(frozen=True)
class CallView:
    """`arguments` are those that would run, with defaults, as a copy. `caller_kind`: chat, studio, api or mcp.

    `conversation_id`: the one that a person sees. `agents`: through which its call comes, by name, the outermost first.
    """

    tool_name: str
    arguments: dict[str, Any]
    caller_kind: str
    user_id: int
    user_name: str
    groups: frozenset[str]
    conversation_id: UUID | None
    agents: tuple[str, ...] = ()


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


class Rule(Protocol):
    @property
    def is_own(self) -> bool:
        """Other people's code: it may hang, raise, and answer anything."""

    @property
    def strongest(self) -> Outcome:
        """The strictest thing that it may say."""

    @property
    def name(self) -> str:
        """Return the name as in the settings."""

    @property
    def sentence(self) -> str:
        """Return what it does, in plain words."""

    @property
    def groups(self) -> frozenset[str]:
        """The groups of people that it names."""

    def may_fail_about(self, tool: ToolView) -> bool:
        """Can it come to no answer about `tool`, which has a person asked whatever the tool's mode is?"""

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as in the settings, every option spelled out; loading it gives an equal rule."""

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        """Return what it could say about calls of `tool` from there, as far as its options tell."""

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        """A `Said`, or a coroutine that gives one."""


def words(names: tuple[str, ...], joint: str = "or") -> str:
    """`a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"


Where = Literal["installation", "settings", "tool", "conversation"]


@dataclass(frozen=True)
class Spoke:
    """One rule that had something to say, and where it is set."""

    policy: str
    verdict: Outcome
    reason: str
    source: Where
    metadata: Metadata = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, policy: str, said: Verdict, source: Where) -> "Spoke":
        return cls(policy, outcome(said), said.reason, source, said.metadata)

    @classmethod
    def of_those(cls, heard: Iterable[tuple[str, Said]], source: Where) -> tuple["Spoke", ...]:
        """Return the verdicts of those that had something to say."""
        return tuple(cls.of(name, said, source) for name, said in heard if not isinstance(said, Abstain))

    @property
    def as_json(self) -> dict[str, Any]:
        said = {"policy": self.policy, "verdict": self.verdict, "reason": self.reason, "source": self.source}
        return said | ({"metadata": dict(self.metadata)} if self.metadata else {})


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    spoke: tuple[Spoke, ...]

    @property
    def only_the_tool_asks(self) -> bool:
        """Return whether no rule of the installation and no stricter conversation asks, nor the want of an answer."""
        asks = isinstance(self.verdict, Ask) and not isinstance(self.verdict, Unusable)
        return asks and all(each.source == "tool" for each in self.spoke if each.verdict != "allow")

    @classmethod
    def alone(cls, policy: str, verdict: Verdict, source: Where) -> "Judgement":
        return cls(verdict, (Spoke.of(policy, verdict, source),))


@dataclass(frozen=True)
class Own:
    """`options` are what the class was made with; `version` is its own word for how it judges, if it has one."""

    path: str
    options: dict[str, Any]
    policy: Any = field(compare=False, repr=False)
    version: str | int | None = None

    is_own: ClassVar[bool] = True

    @property
    def strongest(self) -> Outcome:
        return "refuse"

    @property
    def name(self) -> str:
        return self.path

    @property
    def groups(self) -> frozenset[str]:
        return frozenset()

    @property
    def sentence(self) -> str:
        """The first line of its docstring, if it has one."""
        doc = (type(self.policy).__doc__ or "").strip().partition("\n")[0][:200]
        options = f" with {canonical.pretty(self.options)}" if self.options else ""
        return f"{doc or 'What this class says, which its code alone knows.'} ({self.path}{options})"

    @property
    def evaluate(self) -> Any:
        """Return the answer as it is, so that it can be seen whether it is asynchronous."""
        return self.policy.evaluate

    def to_dict(self) -> dict[str, Any]:
        return {"policy": self.path, **self.options}

    def may_fail_about(self, _tool: ToolView) -> bool:
        return True

    def outcomes(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset(ORDER)
