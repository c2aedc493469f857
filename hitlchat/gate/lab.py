"""Drafts of rules that administrators keep, and that come into force by being published: all of a draft or nothing."""

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop
from pydantic.alias_generators import to_camel

from hitlchat.accounts import roles
from hitlchat.base.database import durable, only, unique
from hitlchat.base.problems import Conflict, Forbidden, Invalid, NotFound, required
from hitlchat.base.sentences import translatable
from hitlchat.base.visible import see
from hitlchat.gate import draft as drafts
from hitlchat.gate import earned, loosening, oversight, ruling, sources, spec
from hitlchat.gate.actor import Actor
from hitlchat.gate.draft import BadDraft, EarnedGiven, Given, RulesGiven, ToolGiven
from hitlchat.gate.loosening import guard_in
from hitlchat.gate.models import PolicyDraft, Tool
from hitlchat.gate.oversight import Rules
from hitlchat.gate.transition import note

ADDED, PUBLISHED, REMOVED = "policy_draft.added", "policy_draft.published", "policy_draft.removed"
# So many drafts there are at most.
MOST: Final = 200
LONGEST: Final = {"name": 100, "purpose": 500, "why": 500}
MOST_QUOTED: Final = 200
EMPTY: Final = gettext_noop("A draft changes at least one tool, or the policies.")
HIDDEN: Final = gettext_noop("Contains a character that cannot be seen.")
NEEDED: Final = gettext_noop("Expected some words.")
IN_CODE: Final = gettext_noop("Its mode and condition are set in code, and cannot be published from here.")
OTHER_TOOL: Final = gettext_noop("This tool was deleted since the draft was made.")
OTHER: Final = {
    "rules": gettext_noop("Who decides has changed since the draft was made."),
    "definition": gettext_noop("The tool itself has changed since the draft was made."),
}


class OnlyAdministrators(Forbidden):
    """No program publishes what it is held by, nor words that lead a person to it (SR-27)."""

    sentence = gettext_noop(
        "Only an administrator, signed in or with an approver token, can keep, delete or publish drafts of policies."
    )


class NameTaken(Conflict):
    sentence = gettext_noop("There is already a draft with this name.")


class TooMany(Conflict):
    sentence = gettext_noop("There are too many drafts. Delete some first.")


class Published(Conflict):
    sentence = gettext_noop("This draft has already been published.")


class ToolChanged(Invalid):
    """A tool is not as it was when the draft was made; `errors` has the fields that differ."""

    status = 409


class CannotPublish(Invalid):
    """A source refuses a setting of one of its tools."""


class InSettings(Invalid):
    """The draft has policies, which stand in the settings. `line` sets them."""

    status = 409
    field = drafts.POLICIES

    def __init__(self, line: str) -> None:
        super().__init__(
            translatable(
                f"Policies are set where the server is started, not from here. Nothing was published. Set this and "
                f"restart the server: {line}"
            )
        )
        self.line = line


@dataclass(frozen=True)
class Step:
    """One tool of a draft, with what would be in force. `weaker`: what it loosens, in sentences."""

    tool: Tool
    settings: Mapping[str, str]
    before: Rules
    after: Rules
    weaker: tuple[str, ...]
    earned: EarnedGiven | None = None


def keep(given: Any, actor: Actor, *, name: str, purpose: str = "") -> PolicyDraft:
    """Keep a draft, with what is in force for its tools now.

    Raises: OnlyAdministrators, BadDraft, Invalid, NameTaken, TooMany
    """
    author = require_administrator(actor)
    words = _words(name=name, purpose=purpose)
    drafts.read(given)
    found = drafts.parse(given)
    body = found.as_json
    if not found.tools and found.policies is None:
        raise BadDraft(drafts.DRAFT, EMPTY)
    tools = {tool.name: tool for tool in Tool.objects.filter(name__in=found.tools)}
    for step in _steps(found.tools, tools):
        if step.after != step.before:
            with _of_draft(step.tool.name):
                ruling.check(step.tool, step.after)
        if step.earned is not None and not earned.can_earn(step.tool):
            raise BadDraft(f"tools.{step.tool.name}.earned", earned.NO_RULE)
    with unique(NameTaken):
        if PolicyDraft.objects.count() >= MOST:
            raise TooMany
        base = {name: _state(tool) for name, tool in tools.items()}
        row = PolicyDraft.objects.create(**words, body=body, base=base, author=author)
        note(None, ADDED, actor=actor, data={"policy_draft": row.name, "draft": body})
    return row


def remove(draft_id: UUID, actor: Actor) -> None:
    """Delete a draft; what it set if it was published stays in force. Raises: OnlyAdministrators, NotFound"""
    require_administrator(actor)
    with transaction.atomic():
        row = _found(PolicyDraft.objects.select_for_update(of=("self",)).filter(pk=draft_id))
        note(None, REMOVED, actor=actor, data={"policy_draft": row.name})
        row.delete()


def publish(draft_id: UUID, actor: Actor, why: str, *, confirmed: bool = False) -> PolicyDraft:
    """Put all of a draft into force, or nothing of it. `confirmed`: a person agreed to what it loosens.

    Raises: OnlyAdministrators, NotFound, Published, InSettings, ToolChanged, BadDraft, NotConfirmed, CannotPublish
    """
    publisher = require_administrator(actor)
    words = _words(why=why)
    # Conditions are tried on the record, which nobody else's transaction should wait for.
    evidence = _evidence(drafts.parse(_found(PolicyDraft.objects.filter(pk=draft_id)).body))
    with durable():
        row = _found(PolicyDraft.objects.select_for_update(of=("self",)).filter(pk=draft_id))
        if row.published_at is not None:
            raise Published
        found = drafts.parse(row.body)
        if found.policies is not None:
            raise InSettings(settings_line(found.policies))
        tools = _locked_tools(row)
        if changed := _changed(row, tools):
            raise ToolChanged(changed)
        steps = [*_steps(found.tools, tools)]
        weaker = tuple(f"{step.tool.name}: {sentence}" for step in steps for sentence in step.weaker)
        loosening.require(", ".join(step.tool.name for step in steps if step.weaker), weaker, confirmed=confirmed)
        for step in steps:
            _carry_out(step, actor)
            if step.earned is not None:
                with _as_its_tools(step.tool):
                    earned.put_in_force(step.tool.pk, step.earned, evidence[step.tool.name], actor)
        row.publisher, row.published_at, row.why = publisher, timezone.now(), words["why"]
        row.save(update_fields=["publisher", "published_at", "why"])
        data = {"policy_draft": row.name, "draft": row.body, "why": row.why}
        note(None, PUBLISHED, actor=actor, data=data | ({"weaker": list(weaker)} if weaker else {}))
    return row


def require_administrator(actor: Actor) -> User:
    """Return the person who acts. Raises: OnlyAdministrators"""
    user = actor.person
    if user is None or not roles.may_administer(user):
        raise OnlyAdministrators
    return user


def outdated(row: PolicyDraft) -> dict[str, str]:
    """Return what has changed since the draft was made, by field."""
    return _changed(row, {tool.name: tool for tool in Tool.objects.filter(name__in=row.base)})


def loosened(row: PolicyDraft) -> list[Step]:
    """Return what the draft would set, where that loosens something. Raises: BadDraft"""
    tools = {tool.name: tool for tool in Tool.objects.filter(name__in=row.base)}
    return [step for step in _steps(drafts.parse(row.body).tools, tools) if step.weaker]


def rules_of(name: str, given: RulesGiven) -> Rules:
    """Return who would decide. Raises: BadDraft, a group is gone"""
    # No name and an empty one are the same here.
    fields = {field: None if value == "" else value for field, value in given.model_dump().items()}
    with _of_draft(name):
        return ruling.named(fields)


def settings_line(policies: list[Any]) -> str:
    """Return the line that sets these policies where the server is started, whatever letters are in them."""
    return f"HITL_POLICIES={shlex.quote(json.dumps(policies))}"


def _words(**given: str) -> dict[str, str]:
    words = {name: text.strip() for name, text in given.items()}
    errors = {name: spec.wrong_text(text, LONGEST[name]) for name, text in words.items()}
    errors |= {name: NEEDED for name in ("name", "why") if words.get(name) == ""}
    if see(words.get("name", "")).plain != words.get("name", ""):
        errors["name"] = HIDDEN
    if errors := {name: wrong for name, wrong in errors.items() if wrong}:
        raise Invalid(errors)
    return words


def _found(rows: QuerySet[PolicyDraft]) -> PolicyDraft:
    return required(only(rows), NotFound(gettext_noop("There is no such draft.")))


@contextmanager
def _as_its_tools(tool: Tool) -> Iterator[None]:
    try:
        yield
    except earned.NotBorneOut as error:
        raise CannotPublish({f"tools.{tool.name}.earned": str(error)}) from error


def _evidence(given: Given) -> dict[str, earned.Evidence]:
    """Return what bears the earned rules of a draft out. Raises: CannotPublish"""
    rules = {name: wanted.earned for name, wanted in given.tools.items() if wanted.earned is not None}
    found = {}
    for tool in Tool.objects.select_related("oversight").filter(name__in=rules):
        with _as_its_tools(tool):
            found[tool.name] = earned.check(tool, rules[tool.name])
    return found


def _locked_tools(row: PolicyDraft) -> dict[str, Tool]:
    """Lock the tools of a draft, and before them what their sources lock before them."""
    of_sources = defaultdict(list)
    for pk, source in Tool.objects.filter(name__in=row.base).values_list("pk", "source"):
        of_sources[source].append(pk)
    for key in sorted(of_sources):
        if found := sources.configurable(key):
            found.hold(of_sources[key])
    rows = Tool.objects.select_for_update(of=("self",)).filter(name__in=row.base).order_by("pk")
    return {tool.name: tool for tool in rows}


def _state(tool: Tool) -> dict[str, str]:
    """Return what a draft was made against; another tool of the name is another one."""
    return {
        "id": str(tool.pk),
        "hitlMode": tool.hitl_mode,
        "condition": tool.condition,
        "rules": oversight.of(tool).digest,
        "definition": tool.definition_hash,
    }


def _changed(row: PolicyDraft, tools: Mapping[str, Tool]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, was in row.base.items():
        tool = tools.get(name)
        if tool is None or str(tool.pk) != was["id"]:
            found[f"tools.{name}"] = OTHER_TOOL
            continue
        now = _state(tool)
        for field in (each for each in was if was[each] != now[each]):
            before, after = was[field][:MOST_QUOTED], now[field][:MOST_QUOTED]
            words = translatable(f"Since the draft was made, this has changed from {before!r} to {after!r}.")
            found[f"tools.{name}.{field}"] = OTHER.get(field, words)
    return found


def _steps(given: Mapping[str, ToolGiven], tools: Mapping[str, Tool]) -> Iterator[Step]:
    for name, wanted in given.items():
        tool = tools[name]
        before = oversight.of(tool)
        after = before if wanted.rules is None else rules_of(name, wanted.rules)
        guard = loosening.guard_of(tool)
        # A column, not what was sent: a setting that is as it was is none.
        settings = {name: value for name, value in wanted.settings.items() if getattr(tool, name) != value}
        weaker = loosening.weaker(guard, guard_in(vars(guard) | settings)) + loosening.weaker_rules(before, after)
        weaker += () if wanted.earned is None else (earned.sentence(wanted.earned),)
        yield Step(tool, settings, before, after, weaker, wanted.earned)


@contextmanager
def _of_draft(name: str) -> Iterator[None]:
    """BadRules in here are of the draft's tool of this name."""
    try:
        yield
    except ruling.BadRules as error:
        field, words = next(iter(error.errors.items()))
        raise BadDraft(f"tools.{name}.rules.{to_camel(field)}", words) from error


def _carry_out(step: Step, actor: Actor) -> None:
    """Set what a tool has otherwise, by the places that set it for every other page."""
    name = step.tool.name
    if step.settings:
        source = required(sources.configurable(step.tool.source), CannotPublish({f"tools.{name}": IN_CODE}))
        try:
            source.configure(step.tool.pk, step.settings, actor)
        except Invalid as error:
            raise CannotPublish(
                {f"tools.{name}.{to_camel(each)}": words for each, words in error.errors.items()}
            ) from error
    if step.after != step.before:
        with _of_draft(step.tool.name):
            ruling.check(step.tool, step.after)
        ruling.change(step.tool, step.after, actor, confirmed=True)
