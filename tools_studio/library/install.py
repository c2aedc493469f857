"""Puts the tools that ship into the catalog, each of them once."""

import logging

from django.db import transaction

from hitlchat.gate.models import Tool
from tools_studio import authoring
from tools_studio.library.catalogue import TOOLS, ShippedTool
from tools_studio.models import Shipment

logger = logging.getLogger(__name__)


def install() -> int:
    """Add what was never installed here, and return how many; what was deleted or has a taken name is left out."""
    there = set(Shipment.objects.values_list("name", flat=True))
    missing = [shipped for shipped in TOOLS if shipped.name not in there]
    for shipped in missing:
        with transaction.atomic():
            Shipment.objects.create(name=shipped.name)
            if Tool.objects.filter(name=shipped.name).exists():
                logger.warning("The shipped tool %s was not installed: its name is taken", shipped.name)
            else:
                _add(shipped)
    return len(missing)


def _add(shipped: ShippedTool) -> None:
    draft = authoring.Draft(
        name=shipped.name,
        code=shipped.source,
        title=shipped.title,
        group=shipped.group,
        capabilities=shipped.capabilities,
        hitl_mode=shipped.hitl_mode,
        prompt_template=shipped.prompt_template,
        example=shipped.example,
    )
    tool = authoring.create(draft, None)
    tool.published = True
    tool.save(update_fields=["published"])
