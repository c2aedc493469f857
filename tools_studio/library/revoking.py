"""Taking a tool of the library out of use whose content is not what was recorded."""

import logging

from django.db import transaction

from hitlchat.gate import withdraw
from hitlchat.gate.actor import SYSTEM
from tools_studio import authoring
from tools_studio.library.record import fingerprint
from tools_studio.models import Script

logger = logging.getLogger(__name__)

FILE_CHANGED = "its file in the library does not match its recorded hash."
ROW_CHANGED = "what is stored of it was changed from outside and does not match its recorded hash."


def revoke(script: Script, reason: str) -> None:
    """Unpublish the tool, withdraw what waits for an answer, and keep the reason; doing it again changes nothing."""
    if script.revoked == reason and not script.tool.published:
        return
    with transaction.atomic():
        Script.objects.filter(pk=script.pk).update(revoked=reason)
        withdraw.withdraw_tool(script.tool.pk, actor=SYSTEM, why="the tool was revoked")
        authoring.unpublish(script.tool, SYSTEM)
    logger.error("The shipped tool %s was revoked: %s", script.tool.name, reason)


def is_pristine(script: Script) -> bool:
    """Whether the tool is still what the library installed."""
    return script.shipped == fingerprint(script.code, script.capabilities)


def revoke_changed() -> None:
    """Revoke every installed tool of the library that somebody changed without the Studio."""
    for script in Script.objects.exclude(shipped="").select_related("tool"):
        if not is_pristine(script):
            revoke(script, ROW_CHANGED)
