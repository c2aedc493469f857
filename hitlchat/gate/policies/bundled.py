"""The rules that ship, each with its options. What is misspelt, missing or of another type does not load."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from math import isfinite
from typing import Annotated, Any, ClassVar, Final, Literal

from django.utils.translation import gettext_noop
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate.policies import (
    VERDICTS,
    Abstain,
    Allow,
    Ask,
    CallView,
    Context,
    Outcome,
    Refuse,
    Said,
    ToolView,
    Unusable,
    outcome,
    words,
)

Pattern = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_*-]{1,64}$")]
Word = Annotated[str, StringConstraints(pattern=r"^[^.\s]{1,64}(\.[^.\s]{1,64}){0,9}$")]
PLAIN_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
GroupName = Annotated[str, StringConstraints(pattern=r"^\S(.{0,148}\S)?$")]
Kind = Literal["chat", "studio", "api", "mcp"]
VerdictWord = Literal["allow", "ask", "refuse"]
Reason = Annotated[str, StringConstraints(pattern=r"^\S(.{0,298}\S)?$")]
# At this level, no earlier yes stands in for a new one.
RISKIEST: Final = 5

DOES: Final[dict[str, str]] = {
    "allow": gettext_noop("Do not ask about"),
    "ask": gettext_noop("Ask about"),
    "refuse": gettext_noop("Refuse"),
}
BECAUSE: Final[dict[str, str]] = {
    "allow": gettext_noop("Not asked"),
    "ask": gettext_noop("Asked"),
    "refuse": gettext_noop("Refused"),
}
KINDS: Final[dict[str, str]] = {
    "chat": gettext_noop("the assistant"),
    "studio": gettext_noop("a test in the Tool Studio"),
    "api": gettext_noop("an API client"),
    "mcp": gettext_noop("an MCP client"),
}


@dataclass(frozen=True)
class Request:
    call: CallView
    tool: ToolView
    context: Context


class Bundled(BaseModel):
    """A rule as the gate and its pages know it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
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
        """Return the strictest thing that it may say."""
        return "ask"

    @property
    def may_fail(self) -> bool:
        """Return whether its options and a call's arguments can leave it without an answer."""
        return False

    @property
    def which(self) -> str:
        return "every tool" if "*" in self.tools else words(self.tools)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as in the settings, every option spelled out; loading it gives an equal rule."""
        return {"policy": self.word, **self.model_dump(mode="json", by_alias=True)}

    def covers(self, tool: ToolView) -> bool:
        return any(fnmatchcase(tool.name, pattern) for pattern in self.tools)

    def may_fail_about(self, tool: ToolView) -> bool:
        """Return whether it can come to no answer about `tool`: then a person is asked, whatever the tool's mode is."""
        return self.may_fail and self.covers(tool)

    def outcomes(self, tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        """Return what it could say about calls of `tool` from there, as far as its options tell."""
        return self.says(tool, caller_kind) if self.covers(tool) else frozenset({outcome(self.elsewhere)})

    def evaluate(self, call: CallView, tool: ToolView, context: Context) -> Any:
        """Return a `Said`, or a coroutine that gives one."""
        return self.judge(Request(call, tool, context)) if self.covers(tool) else self.elsewhere

    @property
    def elsewhere(self) -> Said:
        """Return the verdict about tools that it does not cover."""
        return Abstain()

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({self.strongest})

    def judge(self, request: Request) -> Any:
        raise NotImplementedError


def _number(value: Any) -> Decimal | None:
    """Return the number of a JSON number, or of a text that is nothing but a plain decimal number; else None."""
    if type(value) in (int, float):
        return Decimal(str(value)) if isfinite(value) else None
    return Decimal(value) if isinstance(value, str) and PLAIN_NUMBER.fullmatch(value) else None


class AmountThreshold(Bundled):
    """Asks about, or refuses, what is more than a limit, whatever its sign; asks when there is no number."""

    word = "amount_threshold"
    argument: Word
    limit: Annotated[float, Field(ge=0, le=10**15)]
    over: Literal["ask", "refuse"] = "ask"

    @property
    def _limit(self) -> str:
        return f"{int(self.limit):,}" if self.limit.is_integer() else f"{self.limit:,}"

    @property
    def strongest(self) -> Outcome:
        return self.over

    @property
    def sentence(self) -> str:
        does = DOES[self.over].lower()
        return translatable(
            f"Up to {self._limit} in “{self.argument}”, do not ask about {self.which}; {does} more; ask if "
            "it is not a number."
        )

    @property
    def may_fail(self) -> bool:
        """Return whether it can fail: to refuse what is over the limit, it has to know how much it is."""
        return self.over == "refuse"

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"allow", "ask", self.over})

    def judge(self, request: Request) -> Said:
        found: Any = request.call.arguments
        for word in self.argument.split("."):
            found = found.get(word) if isinstance(found, dict) else None
        if (amount := _number(found)) is None:
            why = translatable(
                f"Asked because “{self.argument}” is not a number that can be compared with {self._limit}."
            )
            return Unusable(why) if self.may_fail else Ask(why)
        if abs(amount) > Decimal(str(self.limit)):
            return VERDICTS[self.over](
                translatable(f"{BECAUSE[self.over]} because “{self.argument}” is over {self._limit}.")
            )
        return Allow(f"Not asked because “{self.argument}” is not over {self._limit}.")


class CallerKind(Bundled):
    word = "caller_kind"
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1, max_length=4)]
    verdict: VerdictWord

    @property
    def strongest(self) -> Outcome:
        return self.verdict

    @property
    def sentence(self) -> str:
        return translatable(f"{DOES[self.verdict]} calls to {self.which} that come from {self._who}.")

    @property
    def _who(self) -> str:
        return words(tuple(KINDS[kind] for kind in self.kinds))

    def says(self, _tool: ToolView, caller_kind: str) -> frozenset[Outcome]:
        return frozenset({self.verdict if caller_kind in self.kinds else "abstain"})

    def judge(self, request: Request) -> Said:
        if request.call.caller_kind not in self.kinds:
            return Abstain()
        origin = KINDS[request.call.caller_kind]
        return VERDICTS[self.verdict](translatable(f"{BECAUSE[self.verdict]} because the call comes from {origin}."))


class UserGroup(Bundled):
    """A rule about people in groups, or about all others. A missing group leaves it without an answer."""

    word = "user_group"
    people: Literal["members", "others"]
    # Renamed outside, since what a rule names is asked of every rule.
    named: Annotated[tuple[GroupName, ...], Field(alias="groups", min_length=1, max_length=50)]
    verdict: VerdictWord

    @property
    def strongest(self) -> Outcome:
        return self.verdict

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(self.named)

    @property
    def _who(self) -> str:
        return f"people who are {'' if self.people == 'members' else 'not '}in {words(self.named)}"

    @property
    def sentence(self) -> str:
        return translatable(f"{DOES[self.verdict]} calls to {self.which} for {self._who}.")

    def says(self, _tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({self.verdict, "abstain"})

    def judge(self, request: Request) -> Said:
        if missing := sorted(self.groups - request.context.known_groups):
            # Nobody knows who is meant: neither a milder rule nor a tool that never asks makes up for that.
            return Unusable(f"Asked because a rule names a group of people that does not exist: {missing[0][:60]}.")
        if bool(request.call.groups & self.groups) is not (self.people == "members"):
            return Abstain()
        return VERDICTS[self.verdict](translatable(f"{BECAUSE[self.verdict]} because of a rule for {self._who}."))


class ToolNames(Bundled):
    """Asks about the tools on a list."""

    word = "tool_names"
    others: Literal["abstain", "allow"] = "abstain"

    @property
    def sentence(self) -> str:
        listed = translatable(f"Ask about calls to {self.which}.")
        rest = gettext_noop("Do not ask about tools that are not on this list.")
        return f"{listed} {rest}" if self.others == "allow" else listed

    @property
    def elsewhere(self) -> Said:
        if self.others == "allow":
            return Allow(gettext_noop("Not asked because this tool is not on the list of tools to ask about."))
        return Abstain()

    def judge(self, _request: Request) -> Said:
        return Ask(gettext_noop("Asked because this tool is on the list of tools to ask about."))


class AlwaysAsk(Bundled):
    word = "always_ask"

    @property
    def sentence(self) -> str:
        return translatable(f"Ask about every call to {self.which}.")

    def judge(self, _request: Request) -> Said:
        return Ask(gettext_noop("Asked because a rule asks about every call to this tool."))


class NeverAsk(Bundled):
    word = "never_ask"

    @property
    def strongest(self) -> Outcome:
        return "allow"

    @property
    def sentence(self) -> str:
        return translatable(f"Do not ask about calls to {self.which}, as far as policies decide.")

    def judge(self, _request: Request) -> Said:
        return Allow(gettext_noop("Not asked because a rule lets calls to this tool run."))


class AskOnce(Bundled):
    """Asks until a call with the same arguments was approved by the same person and succeeded."""

    word = "ask_once"

    @property
    def sentence(self) -> str:
        return translatable(
            f"Ask about {self.which} once for the same arguments, as long as the tool stays the same; L5 every time."
        )

    def says(self, tool: ToolView, _caller_kind: str) -> frozenset[Outcome]:
        return frozenset({"ask"}) if tool.risk_level >= RISKIEST else frozenset({"ask", "allow"})

    async def judge(self, request: Request) -> Said:
        if request.tool.risk_level >= RISKIEST:
            return Ask(gettext_noop("Asked because an earlier yes never counts for a tool of level L5."))
        if await in_db(request.context.approved_before)():
            return Allow(
                gettext_noop("Not asked because this person approved exactly these arguments of this tool before.")
            )
        return Ask(gettext_noop("Asked because this person has not approved these arguments of this tool before."))


class DenyList(Bundled):
    word = "deny_list"
    reason: Reason

    @property
    def strongest(self) -> Outcome:
        return "refuse"

    @property
    def sentence(self) -> str:
        return f"Refuse {self.which}: {self.reason}"

    def judge(self, _request: Request) -> Said:
        return Refuse(self.reason)


SIMPLE: Final[dict[str, type[Bundled]]] = {
    kind.word: kind
    for kind in (ToolNames, AlwaysAsk, NeverAsk, AskOnce, AmountThreshold, CallerKind, UserGroup, DenyList)
}
