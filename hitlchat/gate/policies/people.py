"""Rules about who calls: from where, and on whose behalf."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from hitlchat.gate.policies.bundle import BECAUSE, DOES, Asked, Bundled
from hitlchat.gate.policies.rule import words
from hitlchat.gate.policies.verdicts import VERDICTS, Abstain, Outcome, Said, Unusable
from hitlchat.gate.policies.views import ToolView

GroupName = Annotated[str, StringConstraints(pattern=r"^\S(.{0,148}\S)?$")]
Kind = Literal["chat", "studio", "api", "mcp"]
VerdictWord = Literal["allow", "ask", "refuse"]

KINDS: Final[dict[str, str]] = {
    "chat": "the assistant",
    "studio": "a test in the Tool Studio",
    "api": "an API client",
    "mcp": "an MCP client",
}


class CallerKind(Bundled):
    word = "caller_kind"
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1, max_length=4)]
    verdict: VerdictWord

    @property
    def strongest(self) -> Outcome:
        return self.verdict

    @property
    def sentence(self) -> str:
        return f"{DOES[self.verdict]} calls of {self.which} that come from {self._who}."

    @property
    def _who(self) -> str:
        return words(tuple(KINDS[kind] for kind in self.kinds))

    def says(self, _tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        return frozenset({self.verdict if caller_kind in self.kinds else "abstain"})

    def judge(self, asked: Asked) -> Said:
        if asked.call.caller_kind not in self.kinds:
            return Abstain()
        origin = KINDS[asked.call.caller_kind]
        return VERDICTS[self.verdict](f"{BECAUSE[self.verdict]} because the call comes from {origin}.")


class UserGroup(Bundled):
    """About people in groups, or about all others. One that does not exist leaves it without an answer."""

    word = "user_group"
    people: Literal["members", "others"]
    # Renamed outside, since what a rule names is asked of every rule.
    named: Annotated[tuple[GroupName, ...], Field(alias="groups", min_length=1, max_length=50)]
    verdict: VerdictWord

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(self.named)

    def to_dict(self) -> dict[str, Any]:
        return {"policy": self.word, **self.model_dump(mode="json", by_alias=True)}

    @property
    def _who(self) -> str:
        return f"people who are {'' if self.people == 'members' else 'not '}in {words(self.named)}"

    @property
    def strongest(self) -> Outcome:
        return self.verdict

    @property
    def sentence(self) -> str:
        return f"{DOES[self.verdict]} calls of {self.which} for {self._who}."

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({self.verdict, "abstain"})

    def judge(self, asked: Asked) -> Said:
        if missing := sorted(self.groups - asked.context.known_groups):
            # Nobody knows who is meant: neither a milder rule nor a tool that never asks makes up for that.
            return Unusable(f"Asked because a rule names a group of people that does not exist: {missing[0][:60]}.")
        if bool(asked.call.groups & self.groups) is not (self.people == "members"):
            return Abstain()
        return VERDICTS[self.verdict](f"{BECAUSE[self.verdict]} because of a rule for {self._who}.")
