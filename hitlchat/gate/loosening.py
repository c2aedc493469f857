"""The one rule for what makes a tool ask less, whatever its source and whoever changes it."""

from dataclasses import dataclass

from hitlchat.gate.models import HitlMode, Tool

STRICTNESS = (HitlMode.DISABLED, HitlMode.CONDITIONAL, HitlMode.REQUIRED)


@dataclass(frozen=True)
class Guard:
    """What has people asked about a tool's calls."""

    mode: str
    condition: str = ""
    signed_in_only: bool = False


class NotConfirmed(Exception):
    """Nothing was changed: the tool would ask less, and nobody confirmed that. `weaker` says how, in words."""

    def __init__(self, tool: str, weaker: tuple[str, ...]) -> None:
        super().__init__(f"{tool!r} would run with less oversight. {' '.join(weaker)}")
        self.tool, self.weaker = tool, weaker


def guard_of(tool: Tool) -> Guard:
    """Return what has people asked about `tool` now."""
    return Guard(tool.hitl_mode, tool.condition, tool.signed_in_only)


def strictness(mode: str) -> int:
    """Rank `mode` by how often it asks: 0 never, 1 when policies say so, 2 every time. An unknown mode is 0."""
    return STRICTNESS.index(HitlMode(mode)) if mode in HitlMode.values else 0


def lowers(before: Guard, after: Guard) -> bool:
    """Does the mode ask less often?"""
    return strictness(after.mode) < strictness(before.mode)


def trusts(before: Guard, after: Guard) -> bool:
    """Would the word of an MCP client be enough, where a signed-in person must decide now?"""
    return before.signed_in_only and not after.signed_in_only


def asks_otherwise(before: Guard, after: Guard) -> bool:
    """Would another condition decide whether anyone is asked?"""
    return after.mode == HitlMode.CONDITIONAL == before.mode and after.condition != before.condition


def weaker(before: Guard, after: Guard) -> tuple[str, ...]:
    """Say in plain words what `after` asks less than `before`; empty if nothing."""
    said = []
    if lowers(before, after):
        said.append(f"{_label(before)} becomes {_label(after)}: calls that a person would have seen can run unseen.")
    if asks_otherwise(before, after):
        said.append("Another condition decides which calls ask: calls that ask now may run unseen.")
    if trusts(before, after):
        said.append("A signed-in person must decide now; then the word of an MCP client is enough.")
    return tuple(said)


def check(name: str, before: Guard, after: Guard, *, confirmed: bool) -> None:
    """Raise unless nothing gets weaker or a person confirmed it. Raises: NotConfirmed."""
    if not confirmed and (said := weaker(before, after)):
        raise NotConfirmed(name, said)


def strictest(before: Guard, after: Guard) -> Guard:
    """Return what asks as much as either. Two conditions cannot be weighed: where they differ it asks every time."""
    mode, condition = max(before.mode, after.mode, key=strictness), after.condition
    if mode == HitlMode.CONDITIONAL != after.mode:
        condition = before.condition
    elif mode == HitlMode.CONDITIONAL == before.mode and after.condition != before.condition:
        mode, condition = (HitlMode.REQUIRED, condition) if after.condition else (mode, before.condition)
    return Guard(HitlMode(mode).value, condition, before.signed_in_only or after.signed_in_only)


def _label(guard: Guard) -> str:
    return f"“{HitlMode(guard.mode).label if guard.mode in HitlMode.values else guard.mode}”"
