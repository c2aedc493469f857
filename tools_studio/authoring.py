"""Saving, publishing, restoring and deleting authored tools: the one way for pages, REST and the library."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction
from django.db.models import Q

from hitlchat.gate import loosening, tools, withdraw
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import guard_of
from hitlchat.gate.models import Tool
from tools_studio import capabilities, cases, drafts, variables, versions
from tools_studio.drafts import SOURCE, AuthoringError, Checked, Draft, check, draft_of
from tools_studio.language import checking
from tools_studio.loosening import check_change, check_deletion, check_new, check_publishing, guard, is_program
from tools_studio.models import Script, ScriptVersion
from tools_studio.variables import Kept


class NameTaken(AuthoringError):
    """Another tool has the draft's name."""

    status = 409

    def __init__(self, name: str) -> None:
        super().__init__({"name": f"There is a tool named {name!r} already."})


class NotTested(AuthoringError):
    """No test run of the tool as it is now has passed."""

    def __init__(self) -> None:
        super().__init__({"test": "Run a test first: none has passed since the tool's last edit."})


def create(draft: Draft, actor: Actor) -> Tool:
    """A new tool, not published; under a name that another tool had it asks at least as much as that one did.

    AuthoringError, OnlyPeople.
    """
    sound = check(draft)
    check_new(sound, actor)
    try:
        with transaction.atomic():
            tool = tools.add(Tool(source=SOURCE, **drafts.of_tool(sound, version=1)), actor)
            script = Script.objects.create(tool=tool, author_id=actor.user_id, **drafts.of_script(sound, version=1))
            drafts.keep_variables(script, sound.variables)
            versions.record(script, draft_of(tool), sound.definition_hash, actor.user_id)
    except IntegrityError as error:
        raise NameTaken(draft.name) from error
    return tool


def change(tool: Tool, draft: Draft, actor: Actor, *, confirmed: bool = False) -> Tool:
    """Save a new version and withdraw what waits for an answer about the old definition.

    `confirmed`: a person said that the tool may ask less. AuthoringError, OnlyPeople, NotConfirmed.
    """
    return _save(tool, lambda _: draft, actor, confirmed=confirmed)


def amend(tool: Tool, fields: dict[str, Any], actor: Actor, *, confirmed: bool = False) -> Tool:
    """The same for the given fields of a Draft alone; the others stay as they are then, not as the caller saw them."""
    return _save(tool, lambda standing: replace(standing, **fields), actor, confirmed=confirmed)


def _save(tool: Tool, edit: Callable[[Draft], Draft], actor: Actor, *, confirmed: bool) -> Tool:
    name = tool.name
    try:
        with transaction.atomic():
            # Locked before anything is judged: what a program may change depends on what a person has just set.
            standing = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=tool.pk)
            draft = edit(draft_of(standing))
            name = draft.name
            sound = check(draft, drafts.kept(standing.script))
            check_change(standing, sound, actor, confirmed=confirmed)
            _store(standing, sound, actor)
    except IntegrityError as error:
        raise NameTaken(name) from error
    return Tool.objects.get(pk=tool.pk)


def _store(tool: Tool, sound: Checked, actor: Actor) -> None:
    script: Script = tool.script
    before = drafts.as_json(draft_of(tool))
    is_other = sound.definition_hash != tool.definition_hash
    shown = tuple(each.shown() for each in sound.variables)
    after = drafts.as_json(replace(sound.draft, hitl_mode=sound.hitl_mode.value, variables=shown))
    if not is_other and before == after | {"capabilities": sound.capabilities.as_json()}:
        return
    rules_changed = (sound.hitl_mode, sound.draft.condition) != (tool.hitl_mode, tool.condition)
    if not script.versions.exists():  # saved before versions were kept
        versions.record(script, draft_of(tool), tool.definition_hash, script.author_id)
    version = script.version + 1
    # Whoever edits a tool of the library makes it their own; giving its variables values is no edit.
    content = (sound.draft.code, sound.capabilities.as_json())
    is_edited = content != (script.code, script.capabilities) and actor.user_id is not None
    own = {"shipped": "", **({"revoked": ""} if actor.is_person else {})} if is_edited else {}
    tools.change(tool.pk, drafts.of_tool(sound, version), actor)
    Script.objects.filter(tool=tool).update(author_id=actor.user_id, **drafts.of_script(sound, version), **own)
    versions.forget(script, _secret(sound.variables) - _secret(drafts.kept(script).values()))
    drafts.keep_variables(script, sound.variables)
    saved = Tool.objects.select_related("script").get(pk=tool.pk)
    versions.record(saved.script, draft_of(saved), sound.definition_hash, actor.user_id)
    if is_other:
        withdraw.withdraw_tool(tool.pk, actor=actor, why="the tool was changed")
        _keep_untested_out(saved, actor)
    if rules_changed:
        withdraw.withdraw_allowed(tool.pk, actor=actor, why="the rule that allowed it was changed")


def _secret(kept: Iterable[Kept]) -> set[str]:
    return {each.name for each in kept if each.secret}


def _keep_untested_out(tool: Tool, actor: Actor) -> None:
    """Keep a changed tool out of the catalog until a test of it has passed; the library's own tools come tested.

    What a program changed leaves it in any case: a person publishes.
    """
    if tool.published and actor.user_id is not None and (is_program(actor) or cases.passed(tool) is None):
        tools.change(tool.pk, {"published": False}, actor)


def publish(tool: Tool, actor: Actor) -> Tool:
    """Put the tool into the catalog.

    OnlyPeople. NotTested: no test of it as it is now has passed. AuthoringError: its code does not pass the check, a
    variable has no value, or it was revoked.
    """
    check_publishing(actor)
    script: Script = tool.script
    if script.revoked:
        raise AuthoringError({"code": f"This tool was revoked: {script.revoked}"})
    if missing := variables.resolve(drafts.kept(script).values()).missing:
        raise AuthoringError({"variables": " ".join(missing.values())})
    _check_code(script)
    if cases.passed(tool) is None:
        raise NotTested
    # What was checked, or nothing: it may have been saved anew meanwhile.
    if not tools.change(tool.pk, {"published": True}, actor, only_if=Q(definition_hash=tool.definition_hash)):
        raise AuthoringError({"code": "The tool was changed while it was checked. Publish it again."})
    return Tool.objects.get(pk=tool.pk)


def _check_code(script: Script) -> None:
    if problems := async_to_sync(checking.problems)(script.code, capabilities.parse(script.capabilities)):
        first = problems[0]
        where = f"Line {first.line}: " if first.line else ""
        raise AuthoringError({"code": f"{where}{first.message}"})


def unpublish(tool: Tool, actor: Actor) -> Tool:
    """Take the tool out of the catalog; what waits is withdrawn."""
    with transaction.atomic():
        tools.change(tool.pk, {"published": False}, actor)
        withdraw.withdraw_tool(tool.pk, actor=actor, why="the tool was unpublished")
    return Tool.objects.get(pk=tool.pk)


def delete(tool: Tool, actor: Actor) -> None:
    """Remove the tool. Its calls stay on record; what waits is withdrawn. OnlyPeople."""
    check_deletion(tool, actor)
    with transaction.atomic():
        withdraw.withdraw_tool(tool.pk, actor=actor, why="the tool was deleted")
        tools.remove([tool], actor)


def restore(version: ScriptVersion, actor: Actor, *, confirmed: bool = False) -> Tool:
    """Save `version` again as the tool's newest. Stored secrets stay as they are now.

    NotConfirmed; Unreadable; AuthoringError: it is no longer sound; OnlyPeople.
    """
    with transaction.atomic():
        # Locked before it is judged: the mode may have been raised just now.
        tool = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=version.script_id)
        return change(tool, versions.draft_of(version, tool), actor, confirmed=confirmed)


def weaker(version: ScriptVersion, tool: Tool) -> tuple[str, ...]:
    """Say what restoring it would weaken, in plain words. Unreadable."""
    return loosening.weaker(guard_of(tool), guard(versions.draft_of(version, tool), tool.hitl_mode))
