"""Administering: who may change what conversations run on, and how each change goes on record."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils import timezone

from hitlchat.accounts.roles import may_administer
from hitlchat.agent.models import ModelEndpoint, ToolSet
from hitlchat.base.problems import Forbidden
from hitlchat.gate.actor import Actor
from hitlchat.gate.transition import note


class OnlyPeople(Forbidden):
    """Whoever changes what conversations run on is an administrator, and a person."""


def require(actor: Actor, words: str) -> None:
    """Let pass administrators, signed in or with an approver token. Raises: OnlyPeople, with these words."""
    user = actor.person
    if user is None or not may_administer(user):
        raise OnlyPeople(words)


def write(row: ModelEndpoint | ToolSet, columns: Mapping[str, Any]) -> set[str]:
    """Write what differs to a row that is locked; return the names of that."""
    differing = {name: value for name, value in columns.items() if getattr(row, name) != value}
    for name, value in differing.items():
        setattr(row, name, value)
    if differing:
        row.updated_at = timezone.now()
        row.save(update_fields=[*differing, "updated_at"])
    return set(differing)


def note_change(
    name: str,
    subject: Mapping[str, str],
    actor: Actor,
    change: tuple[Mapping[str, Any], Mapping[str, Any]],
    *,
    also: Iterable[str] = (),
) -> None:
    """Put a change on record: what differs, before and after; of `also` only that it changed."""
    before, after = change
    differing = [field for field in {**before, **after} if before.get(field) != after.get(field)]
    data: dict[str, Any] = {
        **subject,
        "before": {field: before[field] for field in differing if field in before},
        "after": {field: after[field] for field in differing if field in after},
        "also": list(also),
    }
    note(None, name, actor=actor, data=data)
