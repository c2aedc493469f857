"""The rules in force as plain sentences, the strictest first."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.conf import settings

from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.policies.loading import Unloadable, in_force
from hitlchat.gate.policies.verdicts import ORDER, Outcome


@dataclass(frozen=True)
class Line:
    """One rule: the strictest thing that it may say, what it does, where it is set, and the tools that it is set at."""

    strongest: Outcome
    sentence: str
    where: str
    tools: tuple[str, ...] = ()


def lines(tools: Iterable[Tool]) -> list[Line]:
    """Of this installation and of `tools`. With the switch off there is only that to say."""
    if not settings.HITL_ENABLED:
        return [Line("allow", "Every tool runs without asking; no rule is looked at.", "HITL_ENABLED=0")]
    told = [*_of_settings(), *_of_tools(list(tools))]
    return sorted(told, key=lambda line: -ORDER.index(line.strongest))


def _of_settings() -> Iterator[Line]:
    try:
        for number, rule in enumerate(in_force(), 1):
            yield Line(rule.strongest, rule.sentence, f"HITL_POLICIES, entry {number}")
    except Unloadable as error:
        yield Line("ask", f"Ask about every call, since the policies do not load: {error}", "HITL_POLICIES")


def _of_tools(tools: list[Tool]) -> Iterator[Line]:
    by_mode = {mode: [tool for tool in tools if tool.hitl_mode == mode] for mode in HitlMode}
    if required := by_mode[HitlMode.REQUIRED]:
        yield Line("ask", "Ask every time about these tools.", "Set at each tool", _names(required))
    for tool in by_mode[HitlMode.CONDITIONAL]:
        if condition := tool.condition.strip():
            yield Line(
                "ask", f"Ask about {tool.name} when this holds: {condition}", "The condition of the tool", (tool.name,)
            )
    if others := [tool for tool in by_mode[HitlMode.CONDITIONAL] if not tool.condition.strip()]:
        yield Line(
            "ask", "Ask about these tools, unless a policy lets the call run.", "Set at each tool", _names(others)
        )
    if disabled := by_mode[HitlMode.DISABLED]:
        yield Line(
            "allow", "Never ask about these tools; a policy may still refuse.", "Set at each tool", _names(disabled)
        )


def _names(tools: list[Tool]) -> tuple[str, ...]:
    return tuple(tool.name for tool in tools)
