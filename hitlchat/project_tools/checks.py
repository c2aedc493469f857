"""System checks: declarations that are right, and that somebody should know of all the same."""

from typing import Any

from django.core.checks import CheckMessage
from django.core.checks import Warning as Caution

from hitlchat.gate.models import HitlMode
from hitlchat.project_tools import catalogue
from hitlchat.project_tools.declaring import HIGHEST_RISK


def check_project_tools(**_: Any) -> list[CheckMessage]:
    hint = "Give it hitl='REQUIRED' to have people asked."
    return [
        Caution(f"{made.path} (L{made.risk}) runs without asking anybody.", hint=hint, id="hitlchat.W003")
        for made in catalogue.tools().values()
        if made.risk == HIGHEST_RISK and made.hitl_mode == HitlMode.DISABLED
    ]
