"""Saving, publishing and deleting authored tools: the one way for pages, REST and the library alike."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction
from django.utils import timezone

from hitlchat import sandbox
from hitlchat.gate import withdraw
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode, Tool
from tools_studio import capabilities
from tools_studio.drafts import SOURCE, AuthoringError, Checked, Draft, check
from tools_studio.models import Script

__all__ = [
    "SOURCE",
    "AuthoringError",
    "Checked",
    "Draft",
    "NameTaken",
    "OnlyPeople",
    "amend",
    "change",
    "check",
    "create",
    "delete",
    "draft_of",
    "lowers",
    "publish",
    "unpublish",
]


class NameTaken(AuthoringError):
    """Another tool has the draft's name."""

    def __init__(self, name: str) -> None:
        super().__init__({"name": f"There is a tool named {name!r} already."})


class OnlyPeople(Exception):
    """A program's credential tried to make a tool ask less often; that is for people (SR-27)."""


def create(draft: Draft, author_id: int | None) -> Tool:
    """A new tool, not published. AuthoringError."""
    sound = check(draft)
    try:
        with transaction.atomic():
            tool = Tool(source=SOURCE, **_columns(sound, version=1))
            tool.save(force_insert=True)
            Script.objects.create(tool=tool, author_id=author_id, **_script_columns(sound, version=1))
    except IntegrityError as error:
        raise NameTaken(draft.name) from error
    return tool


def change(tool: Tool, draft: Draft, actor: Actor) -> Tool:
    """Save a new version and withdraw what waits for an answer about the old definition. AuthoringError, OnlyPeople."""
    return _save(tool, lambda _: draft, actor)


def amend(tool: Tool, fields: dict[str, Any], actor: Actor) -> Tool:
    """The same for the given fields of a Draft alone; the others stay as they are then, not as the caller saw them."""
    return _save(tool, lambda standing: replace(standing, **fields), actor)


def _save(tool: Tool, edit: Callable[[Draft], Draft], actor: Actor) -> Tool:
    name = tool.name
    try:
        with transaction.atomic():
            # Locked before anything is judged: what a program may change depends on what a person has just set.
            standing = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=tool.pk)
            draft = edit(draft_of(standing))
            name = draft.name
            _store(standing, check(draft), actor)
    except IntegrityError as error:
        raise NameTaken(name) from error
    return Tool.objects.get(pk=tool.pk)


def _store(tool: Tool, sound: Checked, actor: Actor) -> None:
    if not actor.is_person and _loosens(tool, sound):
        raise OnlyPeople("Only a person may let a tool do more, or ask less: sign in, or use an approver token.")
    script: Script = tool.script
    is_other = sound.definition_hash != tool.definition_hash
    rules_changed = (sound.hitl_mode, sound.draft.condition) != (tool.hitl_mode, tool.condition)
    version = script.version + 1 if is_other else script.version
    Tool.objects.filter(pk=tool.pk).update(**_columns(sound, version), updated_at=timezone.now())
    Script.objects.filter(tool=tool).update(author_id=actor.user_id, **_script_columns(sound, version))
    if is_other:
        withdraw.withdraw_tool(tool.pk, actor=actor, why="the tool was changed")
    if rules_changed:
        withdraw.withdraw_allowed(tool.pk, actor=actor, why="the rule that allowed it was changed")


def publish(tool: Tool) -> Tool:
    """Put the tool into the catalog. AuthoringError when its code does not pass the check."""
    script: Script = tool.script
    stubs = capabilities.parse(script.capabilities).stubs()
    problems = async_to_sync(sandbox.check)(script.code, stubs=stubs, known=capabilities.ALL_NAMES)
    if problems:
        first = problems[0]
        where = f"Line {first.line}: " if first.line else ""
        raise AuthoringError({"code": f"{where}{first.message}"})
    # What was checked, or nothing: it may have been saved anew meanwhile.
    same = Tool.objects.filter(pk=tool.pk, definition_hash=tool.definition_hash)
    if same.update(published=True, updated_at=timezone.now()) != 1:
        raise AuthoringError({"code": "The tool was changed while it was checked. Publish it again."})
    return Tool.objects.get(pk=tool.pk)


def unpublish(tool: Tool, actor: Actor) -> Tool:
    """Take the tool out of the catalog; what waits is withdrawn."""
    with transaction.atomic():
        Tool.objects.filter(pk=tool.pk).update(published=False, updated_at=timezone.now())
        withdraw.withdraw_tool(tool.pk, actor=actor, why="the tool was unpublished")
    return Tool.objects.get(pk=tool.pk)


def delete(tool: Tool, actor: Actor) -> None:
    """Remove the tool. Its calls stay on record; what waits is withdrawn."""
    with transaction.atomic():
        withdraw.withdraw_tool(tool.pk, actor=actor, why="the tool was deleted")
        tool.delete()


def draft_of(tool: Tool) -> Draft:
    script: Script = tool.script
    return Draft(
        name=tool.name,
        code=script.code,
        title=tool.title,
        description=script.description,
        group=script.group,
        capabilities=script.capabilities,
        hitl_mode=tool.hitl_mode,
        prompt_template=tool.prompt_template,
        condition=tool.condition,
        deadline_seconds=tool.deadline_seconds,
        example=tool.example,
    )


def lowers(tool: Tool, mode: str | None) -> bool:
    """Would `mode` ask less often than the tool does now?"""
    order = [HitlMode.DISABLED, HitlMode.CONDITIONAL, HitlMode.REQUIRED]
    return mode is not None and order.index(HitlMode(mode)) < order.index(HitlMode(tool.hitl_mode))


def _loosens(tool: Tool, sound: Checked) -> bool:
    """Could the tool do, without anyone being asked, what it could not do before?"""
    if lowers(tool, sound.hitl_mode):
        return True
    if sound.hitl_mode == HitlMode.REQUIRED:
        return False
    has_power = sound.risk_level > 0 and sound.definition_hash != tool.definition_hash
    return sound.draft.condition != tool.condition or has_power


def _columns(sound: Checked, version: int) -> dict[str, Any]:
    draft = sound.draft
    return {
        "name": draft.name,
        "title": draft.title,
        "description": sound.description,
        "input_schema": sound.signature.input_schema,
        "output_schema": sound.signature.output_schema,
        "origin": f"Tool Studio, version {version}",
        "hitl_mode": sound.hitl_mode,
        "prompt_template": draft.prompt_template,
        "condition": draft.condition,
        "deadline_seconds": draft.deadline_seconds,
        "risk_level": sound.risk_level,
        "facts": sound.capabilities.sentences(),
        "definition_hash": sound.definition_hash,
        "example": draft.example,
    }


def _script_columns(sound: Checked, version: int) -> dict[str, Any]:
    return {
        "code": sound.draft.code,
        "group": sound.draft.group,
        "description": sound.draft.description,
        "capabilities": sound.capabilities.as_json(),
        "version": version,
    }
