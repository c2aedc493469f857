"""The rules that ship, each with its options. What is misspelt, missing or of another type does not load."""

from typing import Annotated, Final, Literal

from pydantic import StringConstraints

from hitlchat.gate.crossing import in_db
from hitlchat.gate.policies.amounts import AmountThreshold
from hitlchat.gate.policies.bundle import Asked, Bundled
from hitlchat.gate.policies.people import CallerKind, UserGroup
from hitlchat.gate.policies.verdicts import Abstain, Allow, Ask, Outcome, Refuse, Said
from hitlchat.gate.policies.views import ToolView

Reason = Annotated[str, StringConstraints(pattern=r"^\S(.{0,298}\S)?$")]

# At this level, no earlier yes stands in for a new one.
RISKIEST: Final = 5


class ToolNames(Bundled):
    """Asks about the tools on a list."""

    word = "tool_names"
    others: Literal["abstain", "allow"] = "abstain"

    @property
    def sentence(self) -> str:
        rest = " Do not ask about tools that are not on this list." if self.others == "allow" else ""
        return f"Ask about calls of {self.which}.{rest}"

    @property
    def elsewhere(self) -> Said:
        if self.others == "allow":
            return Allow("Not asked because this tool is not on the list of tools to ask about.")
        return Abstain()

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"ask"})

    def judge(self, _asked: Asked) -> Said:
        return Ask("Asked because this tool is on the list of tools to ask about.")


class AlwaysAsk(Bundled):
    word = "always_ask"

    @property
    def sentence(self) -> str:
        return f"Ask about every call of {self.which}."

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"ask"})

    def judge(self, _asked: Asked) -> Said:
        return Ask("Asked because a rule asks about every call of this tool.")


class NeverAsk(Bundled):
    word = "never_ask"

    @property
    def strongest(self) -> Outcome:
        return "allow"

    @property
    def sentence(self) -> str:
        return f"Do not ask about calls of {self.which}, as far as policies decide."

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"allow"})

    def judge(self, _asked: Asked) -> Said:
        return Allow("Not asked because a rule lets calls of this tool run.")


class AskOnce(Bundled):
    """Asks until a call with the same arguments was approved by the same person and succeeded."""

    word = "ask_once"

    @property
    def sentence(self) -> str:
        return f"Ask about {self.which} once for the same arguments, as long as the tool stays the same; L5 every time."

    def says(self, tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"ask"}) if tool.risk_level >= RISKIEST else frozenset({"ask", "allow"})

    async def judge(self, asked: Asked) -> Said:
        if asked.tool.risk_level >= RISKIEST:
            return Ask("Asked because an earlier yes never counts for a tool of level L5.")
        if await in_db(asked.context.approved_before)():
            return Allow("Not asked because this person approved exactly these arguments of this tool before.")
        return Ask("Asked because these arguments of this tool were not approved by this person before.")


class DenyList(Bundled):
    word = "deny_list"
    reason: Reason

    @property
    def strongest(self) -> Outcome:
        return "refuse"

    @property
    def sentence(self) -> str:
        return f"Refuse {self.which}: {self.reason}"

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"refuse"})

    def judge(self, _asked: Asked) -> Said:
        return Refuse(self.reason)


SIMPLE: Final[dict[str, type[Bundled]]] = {
    kind.word: kind
    for kind in (ToolNames, AlwaysAsk, NeverAsk, AskOnce, AmountThreshold, CallerKind, UserGroup, DenyList)
}
