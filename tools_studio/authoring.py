"""Saving, publishing, restoring and deleting authored tools: the one way for pages, REST and the library."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from itertools import chain, count
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q

from hitlchat.accounts.roles import may_administer
from hitlchat.base import database
from hitlchat.base.lookalikes import mistakable
from hitlchat.base.problems import Forbidden
from hitlchat.gate import loosening, oversight, policy, stopping, tools
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import Guard, guard_of
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.secrets.values import Stored
from tools_studio import capabilities, cases, inspection, spec, variables, versions
from tools_studio.language import signature
from tools_studio.models import Script, ScriptVersion
from tools_studio.spec import SOURCE, AuthoringError, Checked, Draft, check, draft_of

LONGEST_NAME = 64

NEEDS_PERSON = (
    "Only a person may let a tool do more, ask less, or ask in other words: sign in, or use an approver token."
)

NEEDS_PUBLISHER = "Only a person publishes a tool: sign in, or use an approver token. It stays a draft until then."

NEEDS_DELETER = (
    "Only a person may delete a tool about which others than the requester decide, or that only signed-in people "
    "approve: another tool could take its name without that. Sign in, or use an approver token."
)


class OnlyPeople(Forbidden):
    """A program's credential tried to loosen a tool, which is for people (SR-27)."""


class NameTaken(AuthoringError):
    """Another tool has the draft's name."""

    status = 409

    def __init__(self, name: str) -> None:
        super().__init__({"name": f"There is already a tool named {name!r}."})


class NotTested(AuthoringError):
    """No test run of the tool as it is now has passed."""

    def __init__(self) -> None:
        super().__init__({"test": "Run a test first: none has passed since the tool's last edit."})


def create(draft: Draft, actor: Actor, *, confirmed: bool = False) -> Tool:
    """Create an unpublished tool. Under a name that was used before it asks at least as often as that tool did.

    `confirmed`: a person agreed that it may run unseen, and to its name. Raises: AuthoringError, OnlyPeople,
    NotConfirmed
    """
    sound = check(draft)
    check_name(draft.name, Tool.objects.values_list("name", flat=True))
    if _is_program(actor) and sound.risk_level > 0 and (sound.hitl_mode != HitlMode.REQUIRED or _looks_ahead(sound)):
        raise OnlyPeople(NEEDS_PERSON)
    _check_critical(sound, actor)
    _check_condition(sound, actor)
    weaker = loosening.weaker_from_start(draft.name, tools.inherited(draft.name, _guard(sound)))
    if weaker and _is_program(actor):
        raise OnlyPeople(NEEDS_PERSON)
    loosening.require(draft.name, weaker, confirmed=confirmed)
    with database.unique(NameTaken(draft.name)):
        tool = tools.add(Tool(source=SOURCE, **spec.columns(sound, version=1)), actor)
        script = Script.objects.create(tool=tool, author_id=actor.user_id, **spec.script_columns(sound, version=1))
        spec.store_variables(script, sound.variables)
        versions.record(script, draft_of(tool), sound.definition_hash, actor.user_id)
    return tool


def change(tool: Tool, draft: Draft, actor: Actor, *, confirmed: bool = False) -> Tool:
    """Save a new version and withdraw what waits for an answer about the old definition.

    `confirmed`: a person agreed that the tool may ask less. Raises: AuthoringError, OnlyPeople, NotConfirmed
    """
    return _save(tool, lambda _: draft, actor, confirmed=confirmed)


def amend(tool: Tool, fields: dict[str, Any], actor: Actor, *, confirmed: bool = False) -> Tool:
    """Change only these fields of the draft; the others keep their values at the time of saving. Raises: as `change`"""
    return _save(tool, lambda present: replace(present, **fields), actor, confirmed=confirmed)


def _save(tool: Tool, edit: Callable[[Draft], Draft], actor: Actor, *, confirmed: bool) -> Tool:
    name = tool.name
    try:
        with transaction.atomic():
            # Locked before anything is judged: what a program may change depends on what a person has just set.
            present = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=tool.pk)
            draft = edit(draft_of(present))
            name = draft.name
            sound = check(draft, spec.stored_variables(present.script))
            if name != present.name:
                check_name(name, Tool.objects.exclude(pk=tool.pk).values_list("name", flat=True))
            if (sound.draft.condition, sound.signature.input_schema) != (present.condition, present.input_schema):
                _check_condition(sound, actor)
            if _is_program(actor) and _loosens(present, sound):
                raise OnlyPeople(NEEDS_PERSON)
            loosening.require(present.name, _weaker(present, sound), confirmed=confirmed)
            before = (present.definition_hash, present.hitl_mode, present.condition)
            if before != (sound.definition_hash, sound.hitl_mode, sound.draft.condition):
                _check_critical(sound, actor)
            _store(present, sound, actor)
    except IntegrityError as error:
        raise NameTaken(name) from error
    return Tool.objects.get(pk=tool.pk)


def _store(tool: Tool, sound: Checked, actor: Actor) -> None:
    script: Script = tool.script
    before = spec.as_json(draft_of(tool))
    is_other = sound.definition_hash != tool.definition_hash
    shown = tuple(each.shown() for each in sound.variables)
    after = spec.as_json(replace(sound.draft, hitl_mode=sound.hitl_mode.value, variables=shown))
    if not is_other and before == after | {"capabilities": sound.capabilities.as_json()}:
        return
    rules_changed = (sound.hitl_mode, sound.draft.condition) != (tool.hitl_mode, tool.condition)
    version = script.version + 1
    # Whoever edits a tool of the library makes it their own; giving its variables values is no edit.
    content = (sound.draft.code, sound.capabilities.as_json())
    is_edited = content != (script.code, script.capabilities) and actor.user_id is not None
    own = {"shipped": "", **({"revoked": ""} if actor.is_person else {})} if is_edited else {}
    tools.change(tool.pk, spec.columns(sound, version), actor)
    Script.objects.filter(tool=tool).update(author_id=actor.user_id, **spec.script_columns(sound, version), **own)
    versions.forget(script, _secret(sound.variables) - _secret(spec.stored_variables(script).values()))
    spec.store_variables(script, sound.variables)
    saved = Tool.objects.select_related("script").get(pk=tool.pk)
    versions.record(saved.script, draft_of(saved), sound.definition_hash, actor.user_id)
    if is_other:
        stopping.withdraw_tool(tool.pk, actor=actor, why="the tool was changed")
        # It is out of the catalog until a test of it has passed; the library's own tools come tested. What a program
        # changed leaves it in any case: a person publishes.
        is_published = saved.published and actor.user_id is not None
        if is_published and (_is_program(actor) or cases.passed(saved) is None):
            tools.change(saved.pk, {"published": False}, actor)
    if rules_changed:
        stopping.withdraw_allowed(tool.pk, actor=actor, why="the rule that allowed it was changed")


def _secret(stored: Iterable[Stored]) -> set[str]:
    return {each.name for each in stored if each.secret}


def publish(tool: Tool, actor: Actor) -> Tool:
    """Put the tool into the catalog.

    Raises: OnlyPeople; NotTested; AuthoringError, its code does not pass the check, a variable has no value, or it was
    revoked.
    """
    if _is_program(actor):
        raise OnlyPeople(NEEDS_PUBLISHER)
    script: Script = tool.script
    if script.revoked:
        raise AuthoringError({"code": f"This tool was revoked: {script.revoked}"})
    if missing := variables.resolve(spec.stored_variables(script).values()).missing:
        raise AuthoringError({"variables": " ".join(missing.values())})
    if problems := async_to_sync(inspection.problems)(script.code, capabilities.parse(script.capabilities)):
        where = f"Line {problems[0].line}: " if problems[0].line else ""
        raise AuthoringError({"code": f"{where}{problems[0].message}"})
    if cases.passed(tool) is None:
        raise NotTested
    # What was checked, or nothing: it may have been saved anew meanwhile.
    if not tools.change(tool.pk, {"published": True}, actor, only_if=Q(definition_hash=tool.definition_hash)):
        raise AuthoringError({"code": "The tool was changed during the check. Publish it again."})
    return Tool.objects.get(pk=tool.pk)


def unpublish(tool: Tool, actor: Actor) -> Tool:
    """Take the tool out of the catalog; what waits is withdrawn."""
    with transaction.atomic():
        tools.change(tool.pk, {"published": False}, actor)
        stopping.withdraw_tool(tool.pk, actor=actor, why="the tool was unpublished")
    return Tool.objects.get(pk=tool.pk)


def delete(tool: Tool, actor: Actor) -> None:
    """Delete the tool. Its calls stay on record; what waits is withdrawn. Raises: OnlyPeople"""
    if _is_program(actor) and (tool.signed_in_only or oversight.of(tool) != oversight.Rules()):
        # What people put over the tool would go with it.
        raise OnlyPeople(NEEDS_DELETER)
    with transaction.atomic():
        stopping.withdraw_tool(tool.pk, actor=actor, why="the tool was deleted")
        tools.remove([tool], actor)


def check_name(name: str, others: Iterable[str]) -> None:
    """Refuse a name that a person could mistake for another tool's, one of `others`. Raises: AuthoringError

    The same name, whatever its capital letters, is refused where the tool is stored.
    """
    if wrong := mistakable(name, [each for each in others if each.lower() != name.lower()]):
        raise AuthoringError({"name": wrong})


def free_name(name: str, used: Collection[str], ending: str = "_", first: int = 2) -> str:
    """Return `name` if it is free, else with `ending` and the first number that makes it free, without a 1."""
    endings = (f"{ending}{number}" if number > 1 else ending for number in count(first))
    names = (name[: LONGEST_NAME - len(each)] + each for each in endings)
    return next(each for each in chain([name], names) if each not in used)


def restore(version: ScriptVersion, actor: Actor, *, confirmed: bool = False) -> Tool:
    """Save `version` again as the tool's newest. Stored secrets stay as they are now.

    Raises: NotConfirmed, Unreadable, AuthoringError, OnlyPeople
    """
    with transaction.atomic():
        # Locked before it is judged: the mode may have been raised just now.
        tool = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=version.script_id)
        return change(tool, versions.draft_of(version, tool), actor, confirmed=confirmed)


def weaker(version: ScriptVersion, tool: Tool) -> tuple[str, ...]:
    """Return sentences about what restoring the version would weaken. Raises: Unreadable"""
    try:
        return _weaker(tool, check(versions.draft_of(version, tool), spec.stored_variables(tool.script)))
    except AuthoringError:
        # Nor can it be restored.
        return ()


def _check_condition(sound: Checked, actor: Actor) -> None:
    """Refuse a condition that would fail, except in the library's own updates. Raises: AuthoringError"""
    if actor.user_id is None:
        return
    if fault := async_to_sync(policy.condition_fault)(sound.draft.condition, sound.signature.input_schema):
        raise AuthoringError({"condition": fault})


def _guard(sound: Checked) -> Guard:
    return loosening.guard_in(vars(sound.draft) | {"hitl_mode": sound.hitl_mode.value, "risk_level": sound.risk_level})


def _weaker(tool: Tool, sound: Checked) -> tuple[str, ...]:
    """Return sentences about what `tool` would do with less oversight as `sound`, its name included."""
    name = sound.draft.name
    by_name = loosening.weaker_name(name, tool.pk) if name != tool.name else ()
    return loosening.weaker(guard_of(tool), _guard(sound)) + by_name


def _check_critical(sound: Checked, actor: Actor) -> None:
    """Refuse a critical tool that may run unasked, unless an administrator sets it up. Raises: AuthoringError"""
    if sound.risk_level < oversight.HIGHEST_RISK or sound.hitl_mode == HitlMode.REQUIRED or actor.user_id is None:
        return
    if not may_administer(User.objects.get(pk=actor.user_id)):
        raise AuthoringError({"hitl_mode": "Only an administrator may let a tool of level L5 run without asking."})


def _is_program(actor: Actor) -> bool:
    """Return whether the actor is a program's credential: neither a person nor the system."""
    return not actor.is_person and actor.user_id is not None


def _loosens(tool: Tool, sound: Checked) -> bool:
    """Return whether the tool could do more without asking, or approvers would read other texts."""
    if _weaker(tool, sound):
        return True
    is_other = sound.definition_hash != tool.definition_hash
    words = (sound.draft.prompt_template, sound.draft.title) != (tool.prompt_template, tool.title)
    if sound.hitl_mode == HitlMode.REQUIRED:
        return words or (is_other and _looks_ahead(sound))
    return words or sound.draft.condition != tool.condition or (sound.risk_level > 0 and is_other)


def _looks_ahead(sound: Checked) -> bool:
    """Return whether it has a preview with powers or secrets, which runs before anyone is asked."""
    has_powers = sound.risk_level > 0 or any(each.secret for each in sound.variables)
    return has_powers and signature.preview_of(sound.draft.code) is not None
