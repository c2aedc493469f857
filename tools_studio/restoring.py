"""Going back to an earlier version: a new version with the old content."""

from django.db import transaction

from hitlchat.gate.actor import Actor
from hitlchat.gate.models import HitlMode, Tool
from tools_studio import authoring, versions
from tools_studio.models import ScriptVersion


class WouldLower(Exception):
    """The earlier version asked less often than the tool does now, and nobody has confirmed that."""

    def __init__(self, mode: str) -> None:
        super().__init__(f"It would be asked about less often than now: {HitlMode(mode).label}.")
        self.mode = mode


def restore(version: ScriptVersion, actor: Actor, *, lower_anyway: bool = False) -> Tool:
    """Save `version` again as the tool's newest. Stored secrets stay as they are now.

    WouldLower; Unreadable; AuthoringError: it is no longer sound; OnlyPeople.
    """
    with transaction.atomic():
        # Locked before it is judged: the mode may have been raised just now.
        tool = Tool.objects.select_for_update(of=("self",)).select_related("script").get(pk=version.script_id)
        wanted = versions.draft_of(version, tool)
        if authoring.lowers(tool, wanted.hitl_mode) and not lower_anyway:
            raise WouldLower(str(wanted.hitl_mode))
        return authoring.change(tool, wanted, actor)


def would_lower(version: ScriptVersion, tool: Tool) -> bool:
    """Does restoring it need a confirmation? Unreadable."""
    return authoring.lowers(tool, versions.draft_of(version, tool).hitl_mode)
