"""Must a person be asked about this call? All rules are heard, and the strictest one wins."""

import asyncio
import logging
from typing import Any, assert_never
from uuid import UUID

from django.conf import settings

from hitlchat import sandbox
from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.policies import Abstain, Allow, Ask, Refuse, Verdict
from hitlchat.gate.policies.coverage import view
from hitlchat.gate.policies.loading import Unloadable, consult, fingerprint, in_force
from hitlchat.gate.policies.rule import Judgement, Rule, Said, Spoke, Unusable, strictest

logger = logging.getLogger(__name__)

CONDITION_SECONDS = 5.0
LONGEST_FAULT = 200

__all__ = ["Allow", "Ask", "Judgement", "NoAnswer", "Refuse", "Verdict", "holds", "judge", "rule_of"]


class NoAnswer(ValueError):
    """A condition says neither yes nor no; the message says why, as the end of a sentence about it."""


def rule_of(tool: Tool) -> str:
    """Return what decides about calls of `tool`, as one comparable word.

    A verdict holds as long as this stays the same.
    """
    rules = fingerprint()
    return canonical.sha256([settings.HITL_ENABLED, tool.hitl_mode, tool.condition, *([rules] if rules else [])])


async def judge(
    tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None = None
) -> Judgement:
    """Judge the call. Never raises: whatever goes wrong while deciding means that a person is asked."""
    if not settings.HITL_ENABLED:
        off = "Not asked because approvals are switched off for this whole installation (HITL_ENABLED=0)."
        return Judgement.alone("HITL_ENABLED", Allow(off), "installation")
    try:
        rules = in_force()
        heard = await _heard(rules, tool, arguments, caller, conversation_id)
    except Unloadable as error:
        logger.error("The policies of this installation cannot be read: %s", error)  # noqa: TRY400
        rules, heard = (), [Unusable("Asked because the policies of this installation (HITL_POLICIES) do not load.")]
    except Exception:
        logger.exception("The policies could not be asked about a call of %s", tool.name)
        rules, heard = (), [Unusable("Asked because what the policies need to know could not be read.")]
    names = [rule.name for rule in rules] or ["HITL_POLICIES"] * len(heard)
    name, own = await _of_tool(tool, arguments)
    spoke = Spoke.of_those(zip(names, heard, strict=True), "settings") + Spoke.of_those([(name, own)], "tool")
    return _together(tool, heard, own, spoke)


async def _heard(
    rules: tuple[Rule, ...], tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None
) -> list[Said]:
    if not rules:
        return []
    call, shown, context = await in_db(view)(rules, tool, arguments, caller, conversation_id)
    return list(await asyncio.gather(*(consult(rule, call, shown, context) for rule in rules)))


def _together(tool: Tool, heard: list[Said], own: Said, spoke: tuple[Spoke, ...]) -> Judgement:
    # A tool that never asks is not asked about because a rule says so; only because one could not say anything.
    counts = [each for each in heard if isinstance(each, Refuse | Unusable)] if tool.hitl_mode == "DISABLED" else heard
    # The tool's own word last: of two that are equally strict, the first one is told.
    found = strictest([*counts, own])
    if isinstance(found, Abstain):
        return Judgement.alone("mode", Ask("Asked because no rule allows this call without asking."), "tool")
    return Judgement(found, spoke)


async def _of_tool(tool: Tool, arguments: dict[str, Any]) -> tuple[str, Said]:
    """Return which of the tool's own settings speaks, and what it says."""
    try:
        mode = HitlMode(tool.hitl_mode)
    except ValueError:
        return "mode", Unusable("Asked because this tool's mode is not a known one.")
    match mode:
        case HitlMode.DISABLED:
            return "mode", Allow("Not asked because this tool is set to never ask.")
        case HitlMode.REQUIRED:
            return "mode", Ask("Asked because this tool asks every time.")
        case HitlMode.CONDITIONAL:
            return "condition", await _condition(tool.condition, arguments)
        case _:
            assert_never(mode)


async def _condition(condition: str, arguments: dict[str, Any]) -> Said:
    if not condition.strip():
        return Abstain()
    try:
        held = await holds(condition, arguments)
    except NoAnswer as error:
        return Unusable(f"Asked because this tool's condition {error}")
    if held:
        return Ask(f"Asked because the condition “{condition.strip()}” holds.")
    return Allow(f"Not asked because the condition “{condition.strip()}” does not hold.")


async def holds(condition: str, arguments: dict[str, Any]) -> bool:
    """Return whether a condition holds for `arguments`. NoAnswer."""
    source = f"def run(args):\n    return (\n{condition}\n)"
    try:
        async with asyncio.timeout(CONDITION_SECONDS):
            report = await sandbox.run(source, {"args": arguments})
    except Exception as error:
        logger.exception("The condition %r could not be evaluated", condition)
        raise NoAnswer("could not be evaluated.") from error
    if report.fault is not None:
        # The message may quote an argument: not so much of it that it could pose as the card's own words.
        raise NoAnswer(f"failed: {report.fault.message[:LONGEST_FAULT]}")
    if not isinstance(report.result, bool):
        raise NoAnswer("gave neither true nor false.")
    return report.result
