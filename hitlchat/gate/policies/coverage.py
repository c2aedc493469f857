"""The rules in force as sentences, what they are told about a call, and which tools can run unasked, for whom, why."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.sentences import translatable
from hitlchat.gate import oversight
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import HitlMode, Tool, ToolCall, Verdict, delegation
from hitlchat.gate.policies.bundled import KINDS
from hitlchat.gate.policies.loading import Unloadable, in_force
from hitlchat.gate.policies.rule import ORDER, CallView, Context, Outcome, Rule, ToolView, combined
from hitlchat.gate.status import Status

# The latest ones: what was approved longer ago is asked about again.
LOOKED_THROUGH = 1000
SIGNED_IN = ("session", "token", "console")

View = tuple[CallView, ToolView, Context]

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
    def riskiest(self) -> int:
        return max(tool.risk_level for tool in self.tools)


def approved_before(tool: Tool, arguments: dict[str, Any], user_id: int) -> bool:
    """Return whether that person said yes, signed in, to a call of `tool` as it is now, from where it is, with exactly
    `arguments`, and the call succeeded.
    """
    wanted = canonical.dumps(canonical.alike(arguments))
    rows = ToolCall.objects.filter(
        # What was enough for a yes once need not be enough now.
        oversight.stands(),
        caller_id=user_id,
        tool_id=tool.pk,
        tool_name=tool.name,
        source=tool.source,
        definition_hash=tool.definition_hash,
        status=Status.SUCCEEDED,
        approval__isnull=False,
    ).select_related("approval")
    return any(
        canonical.dumps(canonical.alike(row.arguments)) == wanted and _is_from(row, tool) and _said_yes(row, user_id)
        for row in rows.order_by("-created_at", "-id")[:LOOKED_THROUGH].iterator()
    )


def view(
    rules: tuple[Rule, ...], tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None
) -> View:
    """Reads the person's groups from the database."""
    named = frozenset(name for rule in rules for name in rule.groups)
    own = Group.objects.filter(user=caller.user_id).values_list("name", flat=True)
    call = CallView(
        tool_name=tool.name,
        arguments=copy.deepcopy(arguments),
        caller_kind=caller.kind,
        user_id=caller.user_id,
        user_name=caller.user_name,
        groups=frozenset(own),
        conversation_id=conversation_id and delegation.root(conversation_id),
        agents=tuple(each["tool"] for each in delegation.agents(conversation_id)),
    )
    known = frozenset(Group.objects.filter(name__in=named).values_list("name", flat=True)) if named else frozenset()
    before = partial(approved_before, tool, call.arguments, caller.user_id)
    return call, of_tool(tool), Context(timezone.now(), before, known)


def of_tool(tool: Tool) -> ToolView:
    return ToolView(**{field.name: getattr(tool, field.name) for field in fields(ToolView)})


def lines(tools: Iterable[Tool]) -> list[Line]:
    """Return the rules of this installation and of `tools`. With the switch off there is only that to say."""
    if not settings.HITL_ENABLED:
        return [Line("allow", gettext_noop("Every tool runs without asking; no rule is looked at."), "HITL_ENABLED=0")]
    told = [*_of_settings(), *_of_tools(list(tools))]
    return sorted(told, key=lambda line: -ORDER.index(line.strongest))


def coverage(tools: Iterable[Tool]) -> list[Covered]:
    """Return the coverage of all `tools`, the riskiest first."""
    alike: dict[tuple[Any, ...], list[Tool]] = {}
    for tool in tools:
        states, why = _of(tool)
        alike.setdefault((*states.items(), why), []).append(tool)
    found = [Covered(tuple(sorted(same, key=lambda tool: -tool.risk_level)), *_of(same[0])) for same in alike.values()]
    return sorted(found, key=lambda each: -each.riskiest)


def _is_from(row: ToolCall, tool: Tool) -> bool:
    shown: Any = row.approval.disclosure
    asked = shown.get("tool", {})
    return (asked.get("id"), asked.get("origin")) == (str(tool.pk), tool.origin)


def _said_yes(row: ToolCall, user_id: int) -> bool:
    answers = row.approval.decisions.filter(person_id=user_id, round=row.round)
    return answers.filter(verdict=Verdict.APPROVE, means__in=SIGNED_IN).exists()


def _of_settings() -> Iterator[Line]:
    try:
        for number, rule in enumerate(in_force(), 1):
            yield Line(rule.strongest, rule.sentence, f"HITL_POLICIES, entry {number}")
    except Unloadable as error:
        yield Line(
            "ask", translatable(f"Ask about every call, since the policies do not load: {error}"), "HITL_POLICIES"
        )


def _of_tools(tools: list[Tool]) -> Iterator[Line]:
    by_mode = {mode: [tool for tool in tools if tool.hitl_mode == mode] for mode in HitlMode}
    if required := by_mode[HitlMode.REQUIRED]:
        yield Line("ask", gettext_noop("Ask every time about these tools."), "Set at each tool", _names(required))
    for tool in by_mode[HitlMode.CONDITIONAL]:
        if condition := tool.condition.strip():
            yield Line(
                "ask",
                translatable(f"Ask about {tool.name} when this holds: {condition}"),
                "The condition of the tool",
                (tool.name,),
            )
    if others := [tool for tool in by_mode[HitlMode.CONDITIONAL] if not tool.condition.strip()]:
        yield Line(
            "ask",
            gettext_noop("Ask about these tools, unless a policy lets the call run."),
            "Set at each tool",
            _names(others),
        )
    if disabled := by_mode[HitlMode.DISABLED]:
        yield Line(
            "allow",
            gettext_noop("Never ask about these tools; a policy may still refuse."),
            "Set at each tool",
            _names(disabled),
        )


def _names(tools: list[Tool]) -> tuple[str, ...]:
    return tuple(tool.name for tool in tools)


def _of(tool: Tool) -> tuple[dict[str, State], tuple[str, ...]]:
    try:
        rules = in_force()
    except Unloadable:
        return dict.fromkeys(KINDS, "asked"), ()
    possible = {kind: _possible(tool, kind, rules) for kind in KINDS}
    return {kind: _state(each) for kind, each in possible.items()}, tuple(_why(tool, possible, rules))


def _possible(tool: Tool, kind: str, rules: tuple[Rule, ...]) -> frozenset[Outcome]:
    if not settings.HITL_ENABLED:
        return frozenset({"allow"})
    view = of_tool(tool)
    said = combined(*(rule.outcomes(view, kind) for rule in rules))
    match tool.hitl_mode:
        case HitlMode.DISABLED:
            # One that gives no answer asks even here, unless another one refuses anyway.
            fails = said != {"refuse"} and any(rule.may_fail_about(view) for rule in rules)
            unanswered: frozenset[Outcome] = frozenset({"ask"} if fails else ())
            return frozenset({each if each == "refuse" else "allow" for each in said}) | unanswered
        case HitlMode.CONDITIONAL:
            own: frozenset[Outcome] = frozenset({"ask", "allow"} if tool.condition.strip() else {"abstain"})
            return frozenset({"ask" if each == "abstain" else each for each in combined(said, own)})
        case _:
            return combined(said, frozenset({"ask"}))


def _state(possible: frozenset[Outcome]) -> State:
    if "allow" in possible:
        return "unasked" if len(possible) == 1 else "may"
    return "refused" if possible == {"refuse"} else "asked"


def _why(tool: Tool, possible: dict[str, frozenset[Outcome]], rules: tuple[Rule, ...]) -> list[str]:
    kinds = [kind for kind, each in possible.items() if "allow" in each]
    if not kinds:
        return []
    if not settings.HITL_ENABLED:
        return ["Approvals are switched off for this whole installation (HITL_ENABLED=0)."]
    if tool.hitl_mode == HitlMode.DISABLED:
        return ["It is set to never ask."]
    condition = (
        [translatable(f"When its condition does not hold: {tool.condition.strip()}")] if tool.condition.strip() else []
    )
    allowing = [rule for rule in rules if any("allow" in rule.outcomes(of_tool(tool), kind) for kind in kinds)]
    return [*condition, *(rule.sentence for rule in allowing)]
