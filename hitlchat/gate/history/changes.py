"""Changes of what is asked, and of who may decide, in words: events of the record that belong to no call."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet

from hitlchat.gate.models import AuditEvent, HitlMode

LONGEST = 300
# What each event says, with the values of its data; a missing one is left empty.
SENTENCES: Final[Mapping[str, str]] = {
    "tool.created": "The tool {tool} was made",
    "tool.changed": "The tool {tool} was changed",
    "tool.published": "The tool {tool} was published",
    "tool.unpublished": "The tool {tool} left the catalog",
    "tool.deleted": "The tool {tool} was deleted",
    "tool.accepted": "The tool {tool} was accepted as its server {server} lists it now",
    "tool.rules_changed": "Who decides about {tool} was changed",
    "texts.changed": "What models read was changed",
    "server.added": "The server {server} was added",
    "server.changed": "The server {server} was changed",
    "server.removed": "The server {server} was removed",
    "exposure.changed": "What is offered of upstream servers was changed",
    "settings.changed": "The server started with other settings",
    "person.signed_in": "{person} signed in",
    "person.sign_in_failed": "A sign-in as {person} failed",
    "person.role_changed": "The role of {person} was changed from {from} to {to}",
    "person.deactivated": "{person} was deactivated",
    "person.reactivated": "{person} was reactivated",
    "person.invited": "Somebody was invited",
    "person.invitation_revoked": "An invitation was revoked",
    "person.joined": "{person} joined",
    "person.password_changed": "A password was changed",
    "group.created": "The group {group} was made",
    "group.renamed": "The group {from} was renamed to {to}",
    "group.deleted": "The group {group} was deleted",
    "group.person_added": "{person} was added to the group {group}",
    "group.person_removed": "{person} was removed from the group {group}",
    "token.made": "A token of kind {kind} was made for {user}",
    "token.revoked": "A token of kind {kind} of {user} was revoked",
    "grant.revoked": "A grant was revoked",
    "grant.ended": "A grant ended",
}
AREAS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "tools": ("Tools", ("tool.", "texts.")),
    "servers": ("Servers", ("server.", "exposure.")),
    "people": ("People", ("person.", "group.")),
    "tokens": ("Tokens and grants", ("token.", "grant.")),
    "settings": ("Settings", ("settings.",)),
}
FIELDS: Final[Mapping[str, str]] = {
    "hitl_mode": "Asks",
    "condition": "Condition",
    "prompt_template": "Approval prompt",
    "deadline_seconds": "Seconds to answer",
    "signed_in_only": "A signed-in person must decide",
    "risk_level": "Risk level",
    "facts": "What it can reach",
    "definition_hash": "Definition",
    "published": "Published",
    "name": "Name",
    "title": "Title",
    "description": "Description",
    "source": "Source",
}


@dataclass(frozen=True)
class Difference:
    """One field, before and after; None where there is none."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Change:
    """One event in words. `weaker`: what asks less since, a sentence each."""

    id: int
    name: str
    at: datetime
    words: str
    who: str
    differences: tuple[Difference, ...]
    weaker: tuple[str, ...]


def rows(area: str = "") -> QuerySet[AuditEvent]:
    """Return the events of changes, the newest first; of one area, if there is one of that name."""
    areas = [AREAS[area]] if area in AREAS else AREAS.values()
    wanted = Q()
    for _, beginnings in areas:
        for beginning in beginnings:
            wanted |= Q(name__startswith=beginning)
    return AuditEvent.objects.filter(wanted, call=None).select_related("actor").order_by("-pk")


def change(event: AuditEvent) -> Change:
    """Put one event into words."""
    data = event.data
    who = event.actor.get_username() if event.actor else "hitlchat"
    if event.actor and event.means == "system":
        who = f"{who}, by a program"
    weaker = tuple(str(said) for said in data.get("weaker", ()))
    return Change(event.pk, event.name, event.at, words(event), who, tuple(_differences(data)), weaker)


def words(event: AuditEvent) -> str:
    """Say in one sentence what happened; empty for an event that has no words here."""
    sentence = SENTENCES.get(event.name, "")
    data = event.data
    if "tools" in data and isinstance(data["tools"], list) and event.name in {"tool.published", "tool.unpublished"}:
        done = "were published" if event.name == "tool.published" else "left the catalog"
        return f"{len(data['tools']):,} tools {done}: {_short(', '.join(map(str, data['tools'])))}"
    for key in ("tool", "server", "person", "group", "from", "to", "kind", "user"):
        sentence = sentence.replace(f"{{{key}}}", _short(str(data.get(key) or "")))
    return sentence


def _differences(data: Mapping[str, Any]) -> Iterator[Difference]:
    before, after = (each if isinstance(each := data.get(key), dict) else {} for key in ("before", "after"))
    order = list(FIELDS)
    for field in sorted({*before, *after}, key=lambda name: ([*order, name].index(name), name)):
        yield Difference(FIELDS.get(field, field), _said(before, field), _said(after, field))
    for field in data.get("also", ()):
        yield Difference(str(field), None, "changed; its value is not on record")


def _said(side: Mapping[str, Any], field: str) -> str | None:
    if field not in side:
        return None
    value = side[field]
    if field == "hitl_mode" and value in HitlMode.values:
        return str(HitlMode(value).label)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value:
        return _short("; ".join(map(str, value)))
    return _short(str(value)) if value not in ("", None, []) else "none"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
