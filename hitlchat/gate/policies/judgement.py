"""What all rules together said about a call."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from hitlchat.gate.policies.verdicts import Abstain, Ask, Outcome, Said, Unusable, Verdict, outcome

Where = Literal["installation", "settings", "tool"]


@dataclass(frozen=True)
class Spoke:
    """One rule that had something to say, and where it is set."""

    policy: str
    verdict: Outcome
    reason: str
    source: Where

    @classmethod
    def of(cls, policy: str, said: Verdict, source: Where) -> "Spoke":
        return cls(policy, outcome(said), said.reason, source)

    @classmethod
    def of_those(cls, heard: Iterable[tuple[str, Said]], source: Where) -> tuple["Spoke", ...]:
        """Of those that had something to say."""
        return tuple(cls.of(name, said, source) for name, said in heard if not isinstance(said, Abstain))

    @property
    def as_json(self) -> dict[str, Any]:
        return {"policy": self.policy, "verdict": self.verdict, "reason": self.reason, "source": self.source}


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    spoke: tuple[Spoke, ...]

    @property
    def only_the_tool_asks(self) -> bool:
        """No rule of the installation does, and nothing had to be asked for want of an answer."""
        asks = isinstance(self.verdict, Ask) and not isinstance(self.verdict, Unusable)
        return asks and all(each.source == "tool" for each in self.spoke if each.verdict != "allow")

    @classmethod
    def alone(cls, policy: str, verdict: Verdict, source: Where) -> "Judgement":
        return cls(verdict, (Spoke.of(policy, verdict, source),))
