"""Rules made of rules."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from hitlchat.gate.policies.consulting import consult
from hitlchat.gate.policies.rule import CallView, Context, Rule, ToolView
from hitlchat.gate.policies.verdicts import (
    ORDER,
    Outcome,
    Said,
    Unusable,
    combined,
    combined_together,
    strictest,
    together,
)


@dataclass(frozen=True)
class Composed:
    policies: tuple[Rule, ...]

    is_own: ClassVar[bool] = False
    word: ClassVar[str]
    begins: ClassVar[str]

    @property
    def strongest(self) -> Outcome:
        return ORDER[self.pick(ORDER.index(rule.strongest) for rule in self.policies)]

    @property
    def name(self) -> str:
        return self.word

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(name for rule in self.policies for name in rule.groups)

    @property
    def sentence(self) -> str:
        return f"{self.begins} {' '.join(f'({n}) {rule.sentence}' for n, rule in enumerate(self.policies, 1))}"

    def to_dict(self) -> dict[str, Any]:
        return {"policy": self.word, "policies": [rule.to_dict() for rule in self.policies]}

    async def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Said:
        heard = await asyncio.gather(*(consult(rule, call, tool, context) for rule in self.policies))
        # What these would have said is not known: no milder word of another one may stand for it.
        broken = [said for said in heard if isinstance(said, Unusable)]
        return strictest([*broken, self.of(list(heard))])

    def may_fail_about(self, tool: ToolView) -> bool:
        return any(rule.may_fail_about(tool) for rule in self.policies)

    def of(self, said: list[Said]) -> Said:
        raise NotImplementedError

    def pick(self, strictness: Iterable[int]) -> int:
        raise NotImplementedError

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        raise NotImplementedError


class AnyOf(Composed):
    """The strictest of what they say."""

    word = "any_of"
    begins = "Whichever of these is strictest:"

    def of(self, said: list[Said]) -> Said:
        return strictest(said)

    def pick(self, strictness: Iterable[int]) -> int:
        return max(strictness)

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        return combined(*(rule.outcomes(tool, caller_kind) for rule in self.policies))


class AllOf(Composed):
    """The mildest of what they say, if all of them speak."""

    word = "all_of"
    begins = "Where all of these apply, whichever is mildest:"

    def of(self, said: list[Said]) -> Said:
        return together(said)

    def pick(self, strictness: Iterable[int]) -> int:
        return min(strictness)

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        failing: frozenset[Outcome] = frozenset({"ask"} if self.may_fail_about(tool) else ())
        return combined_together(*(rule.outcomes(tool, caller_kind) for rule in self.policies)) | failing
