"""Must a person be asked about this call? A pure answer with its reason; the strictest rule wins."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, assert_never

from django.conf import settings

from hitlchat import sandbox
from hitlchat.gate import canonical
from hitlchat.gate.models import HitlMode, Tool

logger = logging.getLogger(__name__)

CONDITION_SECONDS = 5.0
LONGEST_FAULT = 200


@dataclass(frozen=True)
class Allow:
    reason: str


@dataclass(frozen=True)
class Ask:
    reason: str


@dataclass(frozen=True)
class Refuse:
    reason: str


Verdict = Allow | Ask | Refuse


def rule_of(tool: Tool) -> str:
    """What decides about calls of `tool`, as one comparable word: a verdict holds as long as this stays the same."""
    return canonical.sha256([settings.HITL_ENABLED, tool.hitl_mode, tool.condition])


async def verdict(tool: Tool, arguments: dict[str, Any]) -> Verdict:
    """Never raises: whatever goes wrong while deciding means that a person is asked."""
    if not settings.HITL_ENABLED:
        return Allow("Not asked because approvals are switched off for this whole installation (HITL_ENABLED=0).")
    try:
        mode = HitlMode(tool.hitl_mode)
    except ValueError:
        return Ask("Asked because this tool's mode is not a known one.")
    match mode:
        case HitlMode.DISABLED:
            return Allow("Not asked because this tool is set to never ask.")
        case HitlMode.REQUIRED:
            return Ask("Asked because this tool asks every time.")
        case HitlMode.CONDITIONAL:
            return await _condition(tool.condition, arguments)
        case _:
            assert_never(mode)


async def _condition(condition: str, arguments: dict[str, Any]) -> Verdict:
    if not condition.strip():
        return Ask("Asked because no rule allows this call without asking.")
    source = f"def run(args):\n    return (\n{condition}\n)"
    try:
        async with asyncio.timeout(CONDITION_SECONDS):
            report = await sandbox.run(source, {"args": arguments})
    except Exception:
        logger.exception("The condition %r could not be evaluated", condition)
        return Ask("Asked because this tool's condition could not be evaluated.")
    if report.fault is not None:
        # The message may quote an argument: not so much of it that it could pose as the card's own words.
        return Ask(f"Asked because this tool's condition failed: {report.fault.message[:LONGEST_FAULT]}")
    if report.result is False:
        return Allow(f"Not asked because the condition “{condition.strip()}” does not hold.")
    if report.result is True:
        return Ask(f"Asked because the condition “{condition.strip()}” holds.")
    return Ask("Asked because this tool's condition gave neither true nor false.")
