"""Changes of what is asked, and of who may decide, in words: events of the record that belong to no call."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.utils.translation import gettext, gettext_noop

from hitlchat.gate import spec
from hitlchat.gate.models import Asks, AuditEvent, DecidedBy, HitlMode

LONGEST = 300
# What each event says, with the values of its data; a missing one is left empty.
SENTENCES: Final[Mapping[str, str]] = {
    "tool.created": gettext_noop("The tool {tool} was created"),
    "tool.changed": gettext_noop("The tool {tool} was changed"),
    "tool.published": gettext_noop("The tool {tool} was published"),
    "tool.unpublished": gettext_noop("The tool {tool} left the catalog"),
    "tool.deleted": gettext_noop("The tool {tool} was deleted"),
    "tool.accepted": gettext_noop("The new definition of the tool {tool} from the server {server} was accepted"),
    "tool.rules_changed": gettext_noop("Who decides calls to {tool} was changed"),
    "policy_draft.added": gettext_noop("The draft of policies {policy_draft} was kept"),
    "policy_draft.published": gettext_noop("The draft of policies {policy_draft} was published: {why}"),
    "policy_draft.removed": gettext_noop("The draft of policies {policy_draft} was deleted"),
    "texts.changed": gettext_noop("The texts for models were changed"),
    "server.added": gettext_noop("The server {server} was added"),
    "server.changed": gettext_noop("The server {server} was changed"),
    "server.removed": gettext_noop("The server {server} was removed"),
    "endpoint.added": gettext_noop("The model endpoint {endpoint} was added"),
    "endpoint.changed": gettext_noop("The model endpoint {endpoint} was changed"),
    "endpoint.removed": gettext_noop("The model endpoint {endpoint} was removed"),
    "tool_set.added": gettext_noop("The tool set {tool_set} was added"),
    "tool_set.changed": gettext_noop("The tool set {tool_set} was changed"),
    "tool_set.removed": gettext_noop("The tool set {tool_set} was removed"),
    "second_opinion.changed": gettext_noop("The second opinion was changed"),
    "preset.added": gettext_noop("The preset {preset} was added"),
    "preset.changed": gettext_noop("The preset {preset} was changed"),
    "preset.removed": gettext_noop("The preset {preset} was deleted"),
    "exposure.changed": gettext_noop("The tools offered from upstream servers were changed"),
    "attention.announced": gettext_noop("Attention checks were announced"),
    "attention.ended": gettext_noop("Attention checks were turned off"),
    "settings.changed": gettext_noop("The server started with other settings"),
    "settings.restored": gettext_noop("The installation was restored from a backup"),
    "settings.secrets_rotated": gettext_noop("Stored secrets were sealed with another key"),
    "person.signed_in": gettext_noop("{person} signed in"),
    "person.sign_in_failed": gettext_noop("A sign-in as {person} failed"),
    "person.role_changed": gettext_noop("The role of {person} was changed from {from} to {to}"),
    "person.deactivated": gettext_noop("{person} was deactivated"),
    "person.reactivated": gettext_noop("{person} was reactivated"),
    "person.invited": gettext_noop("Someone was invited"),
    "person.invitation_revoked": gettext_noop("An invitation was revoked"),
    "person.joined": gettext_noop("{person} joined"),
    "person.password_changed": gettext_noop("A password was changed"),
    "group.created": gettext_noop("The group {group} was created"),
    "group.renamed": gettext_noop("The group {from} was renamed to {to}"),
    "group.deleted": gettext_noop("The group {group} was deleted"),
    "group.person_added": gettext_noop("{person} was added to the group {group}"),
    "group.person_removed": gettext_noop("{person} was removed from the group {group}"),
    "delegation.made": gettext_noop("{delegate} may decide for {person} for a time"),
    "delegation.ended": gettext_noop("{delegate} no longer decides for {person}"),
    "token.made": gettext_noop("A token of kind {kind} was created for {user}"),
    "token.revoked": gettext_noop("A token of kind {kind} of {user} was revoked"),
    "token.marked_attended": gettext_noop("The client of a token of {user} is trusted"),
    "token.unmarked_attended": gettext_noop("The client of a token of {user} is no longer trusted"),
    "conversation.asks_changed": gettext_noop("The approval setting of a conversation was changed"),
    "conversation.default_asks_changed": gettext_noop(
        "The approval setting of new conversations of {person} was changed"
    ),
    "grant.revoked": gettext_noop("A grant was revoked"),
    "grant.voided": gettext_noop("A grant ended"),
    "grant.earned": gettext_noop("A rule was earned: {scope}"),
    "grant.decayed": gettext_noop("The earned rule of {tool} decayed: {why}"),
    "grant.declined": gettext_noop("The earned rule of {tool} ended: {why}"),
}
# Of several tools at once.
MANY: Final[Mapping[str, str]] = {
    "tool.published": gettext_noop("{many} tools were published: {tools}"),
    "tool.unpublished": gettext_noop("{many} tools left the catalog: {tools}"),
}
# What sentences name, by its place in the data.
NAMED: Final = (
    *("tool", "server", "endpoint", "tool_set", "preset", "policy_draft", "why", "scope"),
    *("person", "group", "from", "to", "kind", "user", "delegate"),
)
AREAS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "tools": (gettext_noop("Tools"), ("tool.", "texts.", "policy_draft.")),
    "servers": (gettext_noop("Servers"), ("server.", "exposure.")),
    "models": (gettext_noop("Models"), ("endpoint.", "tool_set.", "preset.", "second_opinion.")),
    "people": (gettext_noop("People"), ("person.", "group.", "delegation.")),
    "tokens": (gettext_noop("Tokens and grants"), ("token.", "grant.")),
    "conversations": (
        gettext_noop("Conversations"),
        ("conversation.asks_changed", "conversation.default_asks_changed"),
    ),
    "settings": (gettext_noop("Settings"), ("settings.", "attention.announced", "attention.ended")),
}
FIELDS: Final[Mapping[str, str]] = {
    "asks": gettext_noop("Asks"),
    **spec.WORDS,
    "mode": gettext_noop("Mode"),
    "address": gettext_noop("Address"),
    "model": gettext_noop("Model"),
    "other_models": gettext_noop("Other models"),
    "enabled": gettext_noop("Enabled"),
    "is_default": gettext_noop("Default for new conversations"),
    "key_header": gettext_noop("Send the key as"),
    "api": "API",
    "context_length": gettext_noop("Context length"),
    "images": gettext_noop("Accepts images"),
    "reasoning": gettext_noop("Reasoning"),
    "parallel_calls": gettext_noop("Parallel calls"),
    "input_price": gettext_noop("Price per million input tokens"),
    "output_price": gettext_noop("Price per million output tokens"),
    "tools": gettext_noop("Tools"),
    "tool_set": gettext_noop("Tool set"),
    "instructions": gettext_noop("Instructions"),
    "endpoint": gettext_noop("Model endpoint"),
    "starters": gettext_noop("Starter prompts"),
    "temperature": gettext_noop("Temperature"),
    "max_tokens": gettext_noop("Tokens per answer"),
    "max_turns": gettext_noop("Turns per run"),
    "allow_private": gettext_noop("May be on a private network"),
    "decidedBy": gettext_noop("Who decides"),
    "group": gettext_noop("Group"),
    "inOrder": gettext_noop("One group after the other"),
    "second": gettext_noop("Then one of"),
    "third": gettext_noop("And then one of"),
    "quorum": gettext_noop("Required approvals"),
    "notTheRequester": gettext_noop("Never the person it is called for"),
    "escalateTo": gettext_noop("Escalates to"),
    "escalateAfterSeconds": gettext_noop("Escalates after (seconds)"),
}
CHOICES: Final = {"asks": Asks, "decidedBy": DecidedBy, "hitl_mode": HitlMode}


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
    data = event.data
    who = event.actor.get_username() if event.actor else "hitlchat"
    if event.actor and event.means == "system":
        who = gettext("{name}, by a program").format(name=who)
    weaker = tuple(map(str, data.get("weaker", ())))
    return Change(event.pk, event.name, event.at, words(event), who, tuple(_differences(data)), weaker)


def words(event: AuditEvent) -> str:
    """Return one sentence about what happened; empty for an event that has no words here."""
    sentence = gettext(SENTENCES[event.name]) if event.name in SENTENCES else ""
    data = event.data
    if event.name in MANY and isinstance(tools := data.get("tools"), list):
        return gettext(MANY[event.name]).format(many=f"{len(tools):,}", tools=_short(", ".join(map(str, tools))))
    for key in NAMED:
        sentence = sentence.replace(f"{{{key}}}", _short(str(data.get(key) or "")))
    return sentence


def _differences(data: Mapping[str, Any]) -> Iterator[Difference]:
    before, after = (each if isinstance(each := data.get(key), dict) else {} for key in ("before", "after"))
    order = list(FIELDS)
    for field in sorted({*before, *after}, key=lambda name: ([*order, name].index(name), name)):
        yield Difference(gettext(FIELDS.get(field, field)), _in_words(before, field), _in_words(after, field))
    for field in data.get("also", ()):
        yield Difference(str(field), None, gettext("changed; its value is not on record"))


def _in_words(side: Mapping[str, Any], field: str) -> str | None:
    if field not in side:
        return None
    value = side[field]
    if field in CHOICES and value in CHOICES[field].values:
        return gettext(CHOICES[field](value).label)
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, list) and value:
        return _short("; ".join(map(str, value)))
    return _short(str(value)) if value not in ("", None, []) else gettext("none")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
