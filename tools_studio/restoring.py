"""Going back to an earlier version: a new version with the old content."""

from django.db import transaction

from hitlchat.gate import loosening
from hitlchat.gate.actor import Actor
from hitlchat.gate.loosening import guard_of
from hitlchat.gate.models import Tool
from tools_studio import authoring, versions
from tools_studio.loosening import guard
from tools_studio.models import ScriptVersion


def restore(version: ScriptVersion, actor: Actor, *, confirmed: bool = False) -> Tool:
    """Save `version` again as the tool's newest. Stored secrets stay as they are now.

    NotConfirmed; Unreadable; AuthoringError: it is no longer sound; OnlyPeople.
    """
    with transaction.atomic():
        # Locked before it is judged: the mode may have been raised just now.
        tool = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=version.script_id)
        return authoring.change(tool, versions.draft_of(version, tool), actor, confirmed=confirmed)


def weaker(version: ScriptVersion, tool: Tool) -> tuple[str, ...]:
    """Say what restoring it would weaken, in plain words. Unreadable."""
    return loosening.weaker(guard_of(tool), guard(versions.draft_of(version, tool), tool.hitl_mode))
