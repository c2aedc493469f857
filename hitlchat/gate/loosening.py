"""The one rule for what makes the gate weaker, whoever changes it; and settings of that kind, on record.

Weaker is: fewer calls ask, others or fewer people decide, a question stays open longer, or approvers or models read
other texts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models.functions import Lower

from hitlchat.base.sentences import translatable
from hitlchat.gate import spec
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import AuditEvent, DecidedBy, FormerTool, HitlMode, Tool
from hitlchat.gate.oversight import Rules
from hitlchat.gate.transition import note

STRICTNESS = (HitlMode.DISABLED, HitlMode.CONDITIONAL, HitlMode.REQUIRED)
# From this risk level on, a person confirms that a tool does not ask every time.
RISKY: Final = 4
CHANGED = "settings.changed"
# Those with a value that is no secret. With another one, fewer calls ask, or others decide, or tools may do more.
WATCHED = (
    *("HITL_ENABLED", "HITL_POLICIES", "HITL_POLICY_SECONDS", "HITL_TIMEOUT_SECONDS", "HITL_ELICITATION_MAX_RISK"),
    *("HITL_FRESH_SIGN_IN_MINUTES", "HITL_RECORD_DAYS", "TOOLS_REQUIRE_JAIL", "TOOLS_ENV", "MCP_ALLOW_STDIO"),
    *("MCP_ALLOW_PRIVATE", "TRUSTED_PROXIES", "DEBUG"),
)


@dataclass(frozen=True)
class Guard:
    """The guard of a tool: what has people asked about its calls, what they read of it, and how long they have.

    Its fields are columns of `Tool`: those that guard (see spec.py).
    """

    hitl_mode: str
    condition: str = ""
    signed_in_only: bool = False
    title: str = ""
    prompt_template: str = ""
    deadline_seconds: int | None = None
    risk_level: int = 0

    @property
    def open_seconds(self) -> int:
        return self.deadline_seconds or int(settings.HITL_TIMEOUT_SECONDS)

    @property
    def runs_unseen(self) -> bool:
        """Can calls of a high risk run without anyone being asked?"""
        return self.risk_level >= RISKY and self.hitl_mode != HitlMode.REQUIRED


class NotConfirmed(Exception):
    """Nothing was changed: the gate would be weaker, and nobody confirmed that. `weaker` says how, in words."""

    def __init__(self, tool: str, weaker: tuple[str, ...]) -> None:
        which = repr(tool) if tool else "Every tool"
        super().__init__(f"{which} would run with less oversight. {' '.join(weaker)}")
        self.tool, self.weaker = tool, weaker


def guard_of(tool: Tool) -> Guard:
    return Guard(**{each.name: getattr(tool, each.name) for each in fields(Guard)})


def former_guard(row: FormerTool) -> Guard:
    """Return what had people asked about the last tool of a name, as far as the next one inherits it."""
    return Guard(**{name: getattr(row, name) for name in spec.INHERITED})


def guard_in(columns: Mapping[str, Any]) -> Guard:
    return Guard(**{each.name: columns[each.name] for each in fields(Guard)})


def strictness(mode: str) -> int:
    """Rank `mode` by how often it asks: 0 never, 1 when policies say so, 2 every time. An unknown mode is 0."""
    return STRICTNESS.index(HitlMode(mode)) if mode in HitlMode.values else 0


def lowers(before: Guard, after: Guard) -> bool:
    return strictness(after.hitl_mode) < strictness(before.hitl_mode)


def trusts(before: Guard, after: Guard) -> bool:
    """Would the word of an MCP client be enough, where a signed-in person must decide now?"""
    return before.signed_in_only and not after.signed_in_only


def asks_otherwise(before: Guard, after: Guard) -> bool:
    """Would another condition decide whether anyone is asked?"""
    return after.hitl_mode == HitlMode.CONDITIONAL == before.hitl_mode and after.condition != before.condition


def weaker(before: Guard, after: Guard) -> tuple[str, ...]:
    """Say in plain words what `after` asks less than `before`; empty if nothing."""
    sentences = []
    if lowers(before, after):
        label, label2 = _label(before), _label(after)
        sentences.append(
            translatable(
                f"“{label}” becomes “{label2}”: calls that a person would have reviewed can run without review."
            )
        )
    if asks_otherwise(before, after):
        sentences.append("Another condition decides which calls ask: calls that ask now may run unseen.")
    if trusts(before, after):
        sentences.append("The word of an MCP client is enough where a signed-in person had to decide.")
    if after.runs_unseen and not before.runs_unseen and not lowers(before, after):
        sentences.append(_unseen(after))
    return (*sentences, *reads_otherwise(before, after))


def reads_otherwise(before: Guard, after: Guard) -> tuple[str, ...]:
    """Say what approvers would read otherwise, and whether they could answer later."""
    sentences: list[str] = []
    if before.hitl_mode == HitlMode.DISABLED:
        # Nobody reads anything of a tool that never asks.
        return ()
    if before.title != after.title:
        sentences.append("Approvers read a different title.")
    if before.prompt_template != after.prompt_template:
        sentences.append("Approvers read a different sentence about its calls.")
    if before.open_seconds < after.open_seconds:
        sentences.append(
            translatable(f"A question stays open for {after.open_seconds} seconds instead of {before.open_seconds}.")
        )
    return tuple(sentences)


def weaker_from_start(name: str, guard: Guard) -> tuple[str, ...]:
    """Say in plain words what of a new tool a person should confirm; empty if nothing."""
    return (*weaker_mode(guard), *weaker_name(name))


def weaker_mode(guard: Guard) -> tuple[str, ...]:
    """Say whether a new tool of this guard could run unseen and do harm."""
    return (_unseen(guard),) if guard.runs_unseen else ()


def weaker_name(name: str, *own: UUID) -> tuple[str, ...]:
    """Say whether a new `name`, of the tool with this `own` id, is that of another tool but for capital letters."""
    return weaker_names([name], own)[name]


def weaker_names(names: Collection[str], own: Collection[UUID] = ()) -> dict[str, tuple[str, ...]]:
    """Return what `weaker_name` says of each of many new names."""
    lowered = {name.lower() for name in names}
    existing = {*names}
    for rows in (Tool.objects.exclude(pk__in=own), FormerTool.objects.all()):
        existing |= {*rows.annotate(low=Lower("name")).filter(low__in=lowered).values_list("name", flat=True)}
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        alike = sorted(other for other in existing if other != name and other.lower() == name.lower())
        found[name] = tuple(
            translatable(f"Its name differs from {other!r} only in capital letters, so they can be confused.")
            for other in alike[:1]
        )
    return found


def weaker_rules(before: Rules, after: Rules) -> tuple[str, ...]:
    """Say in plain words how `after` has fewer or other people decide than `before`; empty if it does not."""
    sentences = []
    if after.quorum < before.quorum:
        sentences.append(translatable(f"{after.quorum} instead of {before.quorum} different people have to approve."))
    if before.not_the_requester and not after.not_the_requester:
        sentences.append("The person the tool is called for may decide too.")
    if before.decided_by != DecidedBy.REQUESTER and _others_decide(before, after):
        alone = after.decided_by == DecidedBy.REQUESTER
        sentences.append("The person the tool is called for decides alone." if alone else "Other people decide.")
    if after.escalate_to is not None and (
        after.escalate_to != before.escalate_to
        or (after.escalate_after_seconds or 0) < (before.escalate_after_seconds or 0)
    ):
        sentences.append("Others may decide after a time, or sooner than before.")
    return tuple(sentences)


def _others_decide(before: Rules, after: Rules) -> bool:
    """Return whether somebody else decides where somebody did before. Nobody can tell which of two groups looks closer.

    A chain may get longer, and so may a group with one yes become the first of one.
    """
    several = before.quorum > 1 and after.quorum > 1
    if before.decided_by != after.decided_by or (several and before.in_order != after.in_order):
        return True
    return any(one != other for one, other in zip(before.steps, after.steps, strict=False))


def check(name: str, before: Guard, after: Guard, *, confirmed: bool) -> None:
    """Raise unless nothing gets weaker or a person confirmed it. Raises: NotConfirmed."""
    require(name, weaker(before, after), confirmed=confirmed)


def require(name: str, sentences: tuple[str, ...], *, confirmed: bool) -> None:
    """Raise if something is said to get weaker and no person confirmed it. Raises: NotConfirmed."""
    if sentences and not confirmed:
        raise NotConfirmed(name, sentences)


def strictest(before: Guard, after: Guard) -> Guard:
    """Return what asks as much as either. Two conditions cannot be weighed: where they differ it asks every time."""
    mode, condition = max(before.hitl_mode, after.hitl_mode, key=strictness), after.condition
    if mode == HitlMode.CONDITIONAL != after.hitl_mode:
        condition = before.condition
    elif mode == HitlMode.CONDITIONAL == before.hitl_mode and after.condition != before.condition:
        mode, condition = (HitlMode.REQUIRED, condition) if after.condition else (mode, before.condition)
    signed_in_only = before.signed_in_only or after.signed_in_only
    return replace(after, hitl_mode=HitlMode(mode).value, condition=condition, signed_in_only=signed_in_only)


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


def _unseen(guard: Guard) -> str:
    label = _label(guard)
    return translatable(f"Its risk is L{guard.risk_level}, and with “{label}” its calls can run unseen.")


def _label(guard: Guard) -> str:
    return HitlMode(guard.hitl_mode).label if guard.hitl_mode in HitlMode.values else guard.hitl_mode


def _plain(value: Any) -> Any:
    """Return `value` as the record has it."""
    return [_plain(each) for each in value] if isinstance(value, list | tuple | set | frozenset) else value
