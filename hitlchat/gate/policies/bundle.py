"""What the rules that ship have in common: options that must fit, and the tools that each is about."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hitlchat.gate.policies.rule import words
from hitlchat.gate.policies.verdicts import Abstain, Outcome, Said, outcome
from hitlchat.gate.policies.views import CallView, Context, ToolView

Pattern = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_*-]{1,64}$")]

DOES: Final[dict[str, str]] = {"allow": "Do not ask about", "ask": "Ask about", "refuse": "Refuse"}
BECAUSE: Final[dict[str, str]] = {"allow": "Not asked", "ask": "Asked", "refuse": "Refused"}


@dataclass(frozen=True)
class Asked:
    call: CallView
    tool: ToolView
    context: Context


class Bundled(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    is_own: ClassVar[bool] = False
    word: ClassVar[str]

    # Never left out: a rule that speaks of every tool says so.
    tools: Annotated[tuple[Pattern, ...], Field(min_length=1, max_length=500)]

    @property
    def name(self) -> str:
        return self.word

    @property
    def groups(self) -> frozenset[str]:
        return frozenset()

    @property
    def sentence(self) -> str:
        raise NotImplementedError

    @property
    def strongest(self) -> Outcome:
        return "ask"

    @property
    def may_fail(self) -> bool:
        """Can its options and a call's arguments leave it without an answer?"""
        return False

    @property
    def which(self) -> str:
        return "every tool" if "*" in self.tools else words(self.tools)

    def to_dict(self) -> dict[str, Any]:
        return {"policy": self.word, **self.model_dump(mode="json")}

    def covers(self, tool: ToolView) -> bool:
        return any(fnmatchcase(tool.name, pattern) for pattern in self.tools)

    def may_fail_about(self, tool: ToolView) -> bool:
        return self.may_fail and self.covers(tool)

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        return self.says(tool, caller_kind) if self.covers(tool) else frozenset({outcome(self.elsewhere)})

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        return self.judge(Asked(call, tool, context)) if self.covers(tool) else self.elsewhere

    @property
    def elsewhere(self) -> Said:
        """About tools that it does not cover."""
        return Abstain()

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        raise NotImplementedError

    def judge(self, asked: "Asked") -> Any:
        raise NotImplementedError
