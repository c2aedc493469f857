"""What the rules in force do: as sentences, which tools can run unasked, and what they would say about a made-up call.

Of a made-up call nothing is recorded or run, no preview either.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext_noop

from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate import deciders, oversight, policy, sources, who
from hitlchat.gate.actor import Caller
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.models import CallerKind, Grant, HitlMode, Tool
from hitlchat.gate.policies import ORDER, Outcome, Spoke, combined, outcome
from hitlchat.gate.policies.bundled import KINDS
from hitlchat.gate.policies.loading import Rule, Unloadable, in_force
from hitlchat.gate.tools import tools_for

HEADINGS = {
    "chat": gettext_noop("Assistant"),
    "studio": gettext_noop("Studio test"),
    "api": gettext_noop("API client"),
    "mcp": gettext_noop("MCP client"),
}
State = Literal["unasked", "may", "asked", "refused"]


@dataclass(frozen=True)
class Line:
    """One rule: the strictest thing that it may say, what it does, where it is set, and the tools that it is set at."""

    strongest: Outcome
    sentence: str
    where: str
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Covered:
    """Tools alike in this: what can become of calls for each kind of caller, and in sentences what lets them run."""

    tools: tuple[Tool, ...]
    states: dict[str, State]
    why: tuple[str, ...]

    @property
    def can_run_unasked(self) -> bool:
        return bool({"unasked", "may"} & set(self.states.values()))

    @property
    def cells(self) -> list[tuple[str, State]]:
        return [(HEADINGS[kind], state) for kind, state in self.states.items()]

    @property
    def whoever_calls(self) -> State | None:
        """The one state that there is, if it does not depend on the caller."""
        first, *others = set(self.states.values())
        return None if others else first

    @property
    def riskiest(self) -> int:
        return max(tool.risk_level for tool in self.tools)


class NoSuchTool(LookupError):
    """No tool has this name that such a caller may call."""


@dataclass(frozen=True)
class Simulated:
    verdict: Outcome
    reason: str
    spoke: tuple[Spoke, ...]
    arguments: dict[str, Any]
    # Who would have to answer, in a sentence; empty if nobody is asked.
    who: str = ""


def lines(tools: Iterable[Tool]) -> list[Line]:
    """Return the rules of this installation and of `tools`. With the switch off there is only that to say."""
    if not settings.HITL_ENABLED:
        return [Line("allow", gettext_noop("Every tool runs without asking; no rule applies."), "HITL_ENABLED=0")]
    try:
        found = [
            Line(rule.strongest, rule.sentence, f"HITL_POLICIES, entry {number}")
            for number, rule in enumerate(in_force(), 1)
        ]
    except Unloadable as error:
        unloadable = translatable(f"Ask about every call, since the policies do not load: {error}")
        found = [Line("ask", unloadable, "HITL_POLICIES")]
    return sorted([*found, *_of_tools(list(tools))], key=lambda line: -ORDER.index(line.strongest))


def coverage(tools: Iterable[Tool]) -> list[Covered]:
    """Return the coverage of all `tools`, the riskiest first."""
    alike: dict[tuple[tuple[tuple[str, State], ...], tuple[str, ...]], list[Tool]] = {}
    try:
        rules: tuple[Rule, ...] | None = in_force()
    except Unloadable:
        rules = None
    tools = list(tools)
    earned = _earned(tools)
    for tool in tools:
        asks: frozenset[Outcome] = frozenset({"ask"})
        possible = {kind: asks if rules is None else _possible(tool, kind, rules) for kind in KINDS}
        why = _why(tool, [kind for kind, each in possible.items() if "allow" in each], rules or ())
        rule = earned.get(tool.pk)
        if rule is not None and rules is not None and _may_let_run(tool, rules):
            possible["chat"] |= {"allow"}
            why.append(_of_earned(rule))
        states = tuple((kind, _state(each)) for kind, each in possible.items())
        alike.setdefault((states, tuple(why)), []).append(tool)
    found = [
        Covered(tuple(sorted(same, key=lambda tool: -tool.risk_level)), dict(states), why)
        for (states, why), same in alike.items()
    ]
    return sorted(found, key=lambda each: -each.riskiest)


async def simulate(
    tool_name: str, arguments: str | dict[str, Any], user: User, kind: Any, *, args_from_outside: bool = False
) -> Simulated:
    """Judge a call as if `user` had it made from there, outside of any conversation.

    `args_from_outside`: as if a value came from text of strangers, which counts for any call that comes from no chat.

    Raises: NoSuchTool, BadArguments.
    """
    caller = Caller(kind, user.pk, user.get_username())
    tool = await in_db(tools_for(caller).filter(name=tool_name).first)()
    if tool is None:
        raise NoSuchTool(f"There is no published tool named {tool_name[:64]!r} here.")
    whole = await sources.accepted(tool, arguments)
    outside = args_from_outside or kind != CallerKind.CHAT
    judgement = await policy.judge(tool, whole, caller, args_from_outside=outside)
    verdict = outcome(judgement.verdict)
    decides = await in_db(_who)(tool, caller) if verdict == "ask" else ""
    return Simulated(verdict, judgement.verdict.reason, judgement.spoke, whole, decides)


def example(tool: Tool) -> dict[str, Any]:
    """Arguments to begin with: the tool's own example, or what it takes at least, empty."""
    if tool.example is not None:
        return dict(tool.example)
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    return {name: _empty(properties.get(name, {})) for name in tool.input_schema.get("required", [])}


def _of_tools(tools: list[Tool]) -> list[Line]:
    by_mode = {mode: [tool for tool in tools if tool.hitl_mode == mode] for mode in HitlMode}
    conditional, at_each = by_mode[HitlMode.CONDITIONAL], gettext_noop("Set on each tool")
    found: list[tuple[Outcome, str, str, list[Tool]]] = [
        ("ask", gettext_noop("Ask every time about these tools."), at_each, by_mode[HitlMode.REQUIRED])
    ]
    for tool in conditional:
        if condition := tool.condition.strip():
            words = translatable(f"Ask about {tool.name} if this is true: {condition}")
            found.append(("ask", words, gettext_noop("The condition of the tool"), [tool]))
    others = [tool for tool in conditional if not tool.condition.strip()]
    unless = gettext_noop("Ask about these tools, unless a policy lets the call run.")
    never = gettext_noop("Never ask about these tools; a policy may still refuse.")
    found += [("ask", unless, at_each, others), ("allow", never, at_each, by_mode[HitlMode.DISABLED])]
    return [
        Line(strongest, sentence, where, tuple(tool.name for tool in same))
        for strongest, sentence, where, same in found
        if same
    ]


def _possible(tool: Tool, kind: str, rules: tuple[Rule, ...]) -> frozenset[Outcome]:
    if not settings.HITL_ENABLED:
        return frozenset({"allow"})
    view = policy.view_of(tool)
    outcomes = combined(*(rule.outcomes(view, kind) for rule in rules))
    match tool.hitl_mode:
        case HitlMode.DISABLED:
            # One that gives no answer asks even here, unless another one refuses anyway.
            fails = outcomes != {"refuse"} and any(rule.may_fail_about(view) for rule in rules)
            unanswered: frozenset[Outcome] = frozenset({"ask"} if fails else ())
            return frozenset({each if each == "refuse" else "allow" for each in outcomes}) | unanswered
        case HitlMode.CONDITIONAL:
            own: frozenset[Outcome] = frozenset({"ask", "allow"} if tool.condition.strip() else {"abstain"})
            return frozenset({"ask" if each == "abstain" else each for each in combined(outcomes, own)})
        case _:
            return combined(outcomes, frozenset({"ask"}))


def _earned(tools: list[Tool]) -> dict[UUID, Grant]:
    """Return the earned rules in force; without a query where none was ever earned."""
    ids = [tool.pk for tool in tools if tool.earned and settings.HITL_ENABLED]
    rows = giving.active(giving.earned()).filter(tool__in=ids) if ids else []
    return {rule.tool_id: rule for rule in rows if rule.tool_id is not None}


def _may_let_run(tool: Tool, rules: tuple[Rule, ...]) -> bool:
    """Return whether an earned rule lets a call of the chat run: where the tool asks, and no policy does."""
    view = policy.view_of(tool)
    silent: frozenset[Outcome] = frozenset({"abstain", "allow"})
    return scope.may_be_granted(tool) and bool(silent & combined(*(rule.outcomes(view, "chat") for rule in rules)))


def _of_earned(rule: Grant) -> str:
    return translatable(
        f"An earned rule, published by {rule.person.get_username()}, lets calls like those that people approved run, at"
        f" most {rule.per_day} times a day and {rule.per_person} for one person."
    )


def _state(possible: frozenset[Outcome]) -> State:
    if "allow" in possible:
        return "unasked" if len(possible) == 1 else "may"
    return "refused" if possible == {"refuse"} else "asked"


def _why(tool: Tool, kinds: list[str], rules: tuple[Rule, ...]) -> list[str]:
    """Return what lets calls from these kinds of callers run unasked."""
    if not kinds:
        return []
    if not settings.HITL_ENABLED:
        return [gettext_noop("Approvals are switched off for this whole installation (HITL_ENABLED=0).")]
    if tool.hitl_mode == HitlMode.DISABLED:
        return [gettext_noop("It is set to never ask.")]
    condition = tool.condition.strip()
    view = policy.view_of(tool)
    allowing = [rule.sentence for rule in rules if any("allow" in rule.outcomes(view, kind) for kind in kinds)]
    return [translatable(f"If its condition is false: {condition}"), *allowing] if condition else allowing


def _who(tool: Tool, caller: Caller) -> str:
    rules = oversight.of(tool)
    if rules != oversight.Rules():
        return who.words(rules.as_json, caller.user_name)
    if caller.kind != "mcp":
        return translatable(f"{caller.user_name} decides.")
    if deciders.will_do(tool):
        return translatable(
            f"{caller.user_name} decides: signed in, or through a client at which an administrator says they sit."
        )
    return translatable(f"{caller.user_name} decides, signed in: the client's answer is not enough.")


def _empty(part: Any) -> Any:
    if not isinstance(part, dict):
        return None
    if "default" in part:
        return part["default"]
    if choices := part.get("enum"):
        return choices[0]
    empty: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}
    kind = part.get("type")
    return empty.get(kind) if isinstance(kind, str) else None
