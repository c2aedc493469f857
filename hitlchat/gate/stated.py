"""Stated things: whatever makes the gate ask less, as the last event states it, and as it is now.

An event that changes such a thing carries its state from then on under STATES; of a tool, whose events have its fields
in `after` anyway, its id. The first start of a server puts on record what there is already. `audit verify` compares
both; a call that is to run unasked needs its tool to be as the event says that the tool names.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet
from django.utils.module_loading import import_string

from hitlchat.accounts.models import Token
from hitlchat.accounts.roles import named_groups, with_roles
from hitlchat.base import canonical
from hitlchat.gate import spec, transition
from hitlchat.gate.models import Absence, AttentionCheck, AuditEvent, FormerTool, ModelText, Oversight, Strictness, Tool

BEGUN: Final = "record.stated"
STATES: Final = "states"

Facts = dict[str, Any]
# What there is of one kind, by key: all of it, or only what has these keys.
Reader = Callable[[Collection[str] | None], dict[str, Facts]]
# A kind, a key, and the facts that are stated; None: it is gone.
Statement = tuple[str, str, Facts | None]

GUARD: Final = (*spec.INHERITED, "risk_level")
RULES: Final = (
    *("decided_by", "group_id", "quorum", "not_the_requester", "escalate_to_id", "escalate_after_seconds", "digest"),
    *("in_order", "second_id", "third_id"),
)
CHECK: Final = (
    *("id", "reading_id", "reading__person_id", "after", "nonce", "disclosure", "argument", "wanted", "planted"),
    *("at", "until", "seen", "answered_at"),
)
FORMER: Final = (*GUARD, "rules")


def now(kind: str, keys: Collection[str] | None = None) -> dict[str, Facts]:
    """Return what there is of a kind, as JSON has it."""
    read: Reader = import_string(settings.RECORD_STATES[kind])
    found: dict[str, Facts] = canonical.loads(canonical.dumps(read(keys)))
    return found


def states(kind: str, *keys: object) -> dict[str, Any]:
    """Return, for the event of a change, what these things are since."""
    named = [str(key) for key in keys]
    found = now(kind, named)
    return {STATES: {kind: {key: found.get(key) for key in named}}}


def statements(name: str, data: Mapping[str, Any]) -> Iterator[Statement]:
    for kind, things in _object(data.get(STATES)).items():
        for key, facts in _object(things).items():
            yield kind, key, facts if isinstance(facts, dict) else None
    if name.startswith("tool."):
        ids = data.get("ids") or [data.get("id")]
        for key in ids if isinstance(ids, list) else ():
            if isinstance(key, str) and name == "tool.deleted":
                yield from ((kind, key, None) for kind in ("tool", "rules", "texts"))
            elif isinstance(key, str) and isinstance(data.get("after"), dict):
                yield "tool", key, data["after"]


def is_as_stated(tool: Tool) -> bool:
    """Return whether the event that the tool names, the last about it, states what has people asked about it now."""
    if tool.stated_by is None:
        # No server has put on record what there is: then nothing can differ from it.
        return not AuditEvent.objects.filter(name=BEGUN).exists()
    # Unordered: an order by id could be met by a walk through all events.
    newer = Q(guard_of=tool.pk, pk__gt=tool.stated_by)
    found = list(AuditEvent.objects.filter(Q(pk=tool.stated_by) | newer).order_by()[:2])
    if [event.pk for event in found] != [tool.stated_by]:
        return False
    key, data = str(tool.pk), _object(found[0].data)
    facts = _object(data.get("guard")) if data.get("id") == key else {}
    facts = facts or _object(_object(_object(data.get(STATES)).get("tool")).get(key))
    return all(facts.get(name) == getattr(tool, name) for name in GUARD)


def tools(keys: Collection[str] | None) -> dict[str, Facts]:
    return _rows(Tool, spec.WATCHED, keys)


def rules(keys: Collection[str] | None) -> dict[str, Facts]:
    return _rows(Oversight, RULES, keys)


def texts(keys: Collection[str] | None) -> dict[str, Facts]:
    """Return the texts for models by the tool's id, which is empty for those of all tools."""
    found: dict[str, Facts] = {}
    for tool, outcome, text in ModelText.objects.order_by("pk").values_list("tool_id", "outcome", "text"):
        key = "" if tool is None else str(tool)
        if keys is None or key in keys:
            found.setdefault(key, {})[outcome] = text
    return found


def former_tools(keys: Collection[str] | None) -> dict[str, Facts]:
    return _rows(FormerTool, FORMER, keys)


def conversations(keys: Collection[str] | None) -> dict[str, Facts]:
    """Return the words of conversations that have one."""
    return _rows(Strictness, ("asks",), keys)


def people(keys: Collection[str] | None) -> dict[str, Facts]:
    """Return people with their role, however they came by it, and their groups."""
    users = User.objects.all() if keys is None else User.objects.filter(pk__in=keys)
    groups: dict[int, list[int]] = {}
    for person, group in named_groups().filter(user__in=users).order_by("pk").values_list("user", "pk"):
        groups.setdefault(person, []).append(group)
    rows = with_roles(users).order_by("pk").values("pk", "role", "is_superuser", "is_active")
    return {str(key := row.pop("pk")): {**row, "groups": groups.get(key, [])} for row in rows}


def absences(keys: Collection[str] | None) -> dict[str, Facts]:
    """Return who may decide in whose place, and when."""
    rows = _rows(Absence, ("person_id", "delegate_id", "since", "until"), keys)
    for row in rows.values():
        row |= {name: row[name].astimezone(UTC).isoformat() for name in ("since", "until")}
    return rows


def checks(keys: Collection[str] | None) -> dict[str, Facts]:
    """Return of each attention check a digest alone: administrators read events, and not for whom it was and how it was
    answered.
    """
    rows = AttentionCheck.objects.all() if keys is None else AttentionCheck.objects.filter(pk__in=keys)
    found = rows.order_by("pk").values(*CHECK)
    return {str(row["id"]): {"digest": transition.versioned_digest(row)} for row in found}


def tokens(keys: Collection[str] | None) -> dict[str, Facts]:
    rows = Token.objects.all() if keys is None else Token.objects.filter(pk__in=keys)
    limits = ("mcp__tools", "mcp__ceiling", "mcp__without_elicitation")
    found: dict[str, Facts] = {}
    for row in rows.order_by("pk").values("pk", "user_id", "kind", "attended", "expires_at", "digest", *limits):
        row["expires_at"] = row["expires_at"] and row["expires_at"].isoformat()
        # Of no use to whoever reads it: what is kept is itself the hash of a long random text.
        row["digest"] = canonical.sha256(row["digest"])
        found[str(row.pop("pk"))] = row
    return found


def _rows(model: type[Model], columns: Iterable[str], keys: Collection[str] | None) -> dict[str, Facts]:
    every: QuerySet[Model] = model._default_manager.all()  # noqa: SLF001 - public, says Django
    rows = every if keys is None else every.filter(pk__in=keys)
    return {str(row.pop("pk")): row for row in rows.order_by("pk").values("pk", *columns)}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
