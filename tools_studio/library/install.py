"""The tools that ship are put into the catalog, kept up to date unless edited, and revoked if their files changed."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.db import transaction

from hitlchat.base.lookalikes import mistakable
from hitlchat.gate import loosening, stopping, tools
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.secrets.values import Value
from tools_studio import authoring
from tools_studio.library import catalogue
from tools_studio.library.catalogue import TOOLS, ShippedTool
from tools_studio.models import Script, Shipment
from tools_studio.spec import AuthoringError, Draft, draft_of

logger = logging.getLogger(__name__)

FILE_CHANGED = "its file in the library does not match its recorded hash."
ROW_CHANGED = "its stored data was changed from outside and does not match its recorded hash."
# The fields of a tool that an update brings along, beside its code.
WORDS_AND_POWERS = ("title", "group", "category", "tags", "capabilities", "prompt_template", "example")


def revoke(script: Script, reason: str) -> None:
    """Unpublish the tool for this reason and withdraw its waiting calls; a second time changes nothing."""
    if script.revoked == reason and not script.tool.published:
        return
    with transaction.atomic():
        Script.objects.filter(pk=script.pk).update(revoked=reason)
        stopping.withdraw_tool(script.tool.pk, actor=SYSTEM, why="the tool was revoked")
        authoring.unpublish(script.tool, SYSTEM)
    logger.error("The shipped tool %s was revoked: %s", script.tool.name, reason)


def is_pristine(script: Script) -> bool:
    """Return whether the tool is still what the library installed."""
    return script.shipped == catalogue.fingerprint(script.code, script.capabilities)


def install(shipment: Iterable[ShippedTool] = TOOLS, recorded: Mapping[str, str] | None = None) -> int:
    """Add those of `shipment` that were never installed here, and return how many.

    Deleted tools stay deleted, and names in use are left alone. A tool whose file does not match its recorded hash is
    not installed, or is revoked if it is there already.
    """
    recorded = catalogue.recorded() if recorded is None else recorded
    there = {script.tool.name: script for script in Script.objects.exclude(shipped="").select_related("tool")}
    # Those that somebody changed without the Studio.
    for changed in there.values():
        if not is_pristine(changed):
            revoke(changed, ROW_CHANGED)
    shipments = set(Shipment.objects.values_list("name", flat=True))
    added = 0
    for shipped in shipment:
        script = there.get(shipped.name)
        if not catalogue.is_genuine(shipped, recorded):
            if script is None:
                logger.error("The shipped tool %s was not installed: %s", shipped.name, FILE_CHANGED)
            else:
                revoke(script, FILE_CHANGED)
        elif script is not None:
            _renew(shipped, script, recorded[shipped.name])
        elif shipped.name not in shipments:
            added += _add(shipped, recorded[shipped.name])
    return added


def _add(shipped: ShippedTool, fingerprint: str) -> bool:
    with transaction.atomic():
        _, is_new = Shipment.objects.get_or_create(name=shipped.name)
        if not is_new:  # another process was quicker
            return False
        if mistakable(shipped.name, Tool.objects.values_list("name", flat=True)):
            logger.warning("The shipped tool %s was not installed: its name, or one like it, is taken", shipped.name)
            return False
        tool = authoring.create(_draft(shipped), SYSTEM, confirmed=True)
        Script.objects.filter(tool=tool).update(shipped=fingerprint)
        if shipped.set_up:
            # The Studio says so on the tool's own page.
            logger.debug("The shipped tool %s is a draft: %s", shipped.name, shipped.set_up)
        else:
            tools.change(tool.pk, {"published": True}, SYSTEM)
    return True


def _renew(shipped: ShippedTool, script: Script, fingerprint: str) -> None:
    """Update an installed tool that nobody edited to what ships now."""
    if not is_pristine(script):
        return
    if script.revoked:
        logger.warning("The shipped tool %s is as recorded again; it may be published", shipped.name)
        Script.objects.filter(pk=script.pk).update(revoked="")
    if not _is_current(shipped, script, fingerprint):
        try:
            authoring.change(script.tool, _update(shipped, script), SYSTEM, confirmed=True)
        except AuthoringError:
            logger.exception("The shipped tool %s could not be updated and stays as it was", shipped.name)
            return
        logger.info("The shipped tool %s was updated", shipped.name)
    if script.shipped != fingerprint:
        Script.objects.filter(pk=script.pk).update(shipped=fingerprint)


def _is_current(shipped: ShippedTool, script: Script, fingerprint: str) -> bool:
    if script.author_id is not None:  # a person chose its words
        return catalogue.fingerprint(script.code, script.capabilities) == fingerprint
    here, new = draft_of(script.tool), _draft(shipped)
    return all(getattr(here, name) == getattr(new, name) for name in ("code", *WORDS_AND_POWERS))


def _update(shipped: ShippedTool, script: Script) -> Draft:
    """Return the draft of the update, which asks at least as often as before and keeps a person's words and values."""
    here, new = draft_of(script.tool), _draft(shipped)
    given = {each.name for each in here.variables}
    variables = (*here.variables, *(each for each in new.variables if each.name not in given))
    mode = max(script.tool.hitl_mode, shipped.hitl_mode, key=loosening.strictness)
    if script.author_id is None:
        merged = replace(new, description=here.description, deadline_seconds=here.deadline_seconds)
    else:
        merged = replace(here, code=new.code, capabilities=new.capabilities)
    return replace(
        merged,
        hitl_mode=HitlMode(mode).value,
        condition=here.condition,
        signed_in_only=here.signed_in_only,
        variables=variables,
    )


def _draft(shipped: ShippedTool) -> Draft:
    return Draft(
        name=shipped.name,
        code=shipped.source,
        hitl_mode=shipped.hitl_mode,
        variables=tuple(Value(name, value, secret) for name, secret, value in shipped.variables),
        **{name: getattr(shipped, name) for name in WORDS_AND_POWERS},
    )
