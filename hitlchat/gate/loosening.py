"""The one rule for what makes a tool ask less, whoever changes it; and settings of that kind, on record."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import transaction

from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, HitlMode, Tool
from hitlchat.gate.transition import note

STRICTNESS = (HitlMode.DISABLED, HitlMode.CONDITIONAL, HitlMode.REQUIRED)


@dataclass(frozen=True)
class Guard:
    """The guard of a tool: what has people asked about its calls."""

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
        said.append(
            translatable(
                f"{_label(before)} becomes {_label(after)}: calls that a person would have seen can run unseen."
            )
        )
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


CHANGED = "settings.changed"
# Those with a value that is no secret. With another one, fewer calls ask, or others decide, or tools may do more.
WATCHED = (
    *("HITL_ENABLED", "HITL_POLICIES", "HITL_POLICY_SECONDS", "HITL_TIMEOUT_SECONDS", "HITL_ELICITATION_MAX_RISK"),
    *("HITL_FRESH_SIGN_IN_MINUTES", "HITL_RECORD_DAYS", "TOOLS_REQUIRE_JAIL", "TOOLS_ENV", "MCP_ALLOW_STDIO"),
    *("MCP_ALLOW_PRIVATE", "TRUSTED_PROXIES", "DEBUG"),
)


def record_settings() -> bool:
    """Put the settings on record if they differ from those recorded last; whether they did."""
    now = {name: _plain(getattr(settings, name)) for name in WATCHED}
    with transaction.atomic():
        # Of several processes that start at a time one writes it.
        list(ContentType.objects.select_for_update().filter(app_label="gate", model="auditevent"))
        last = AuditEvent.objects.filter(name=CHANGED).order_by("-pk").first()
        before: dict[str, Any] = last.data["settings"] if last else {}
        differing = [name for name in WATCHED if name not in before or before[name] != now[name]]
        if not differing:
            return False
        data = {
            "before": {name: before[name] for name in differing if name in before},
            "after": {name: now[name] for name in differing},
            "settings": now,
        }
        note(None, CHANGED, actor=SYSTEM, data=data)
    return True


def _plain(value: Any) -> Any:
    """Return `value` as the record has it."""
    return [_plain(each) for each in value] if isinstance(value, list | tuple | set | frozenset) else value
