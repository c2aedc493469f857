"""Must a person be asked about this call? All rules are heard, and the strictest one wins."""

import asyncio
import logging
from typing import Any, assert_never
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.utils.translation import gettext_noop

from hitlchat import sandbox
from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.gate import conditions, question, stated
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import HitlMode, Tool
from hitlchat.gate.policies import Abstain, Allow, Ask, Refuse, Verdict, strictness
from hitlchat.gate.policies.coverage import view
from hitlchat.gate.policies.loading import Unloadable, consult, fingerprint, in_force
from hitlchat.gate.policies.rule import Judgement, Rule, Said, Spoke, Unusable, strictest

logger = logging.getLogger(__name__)

CONDITION_SECONDS = 5.0
LONGEST_FAULT = 200
NOT_STATED = gettext_noop("Asked because the record does not say that this tool may run unasked.")

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
    judged = await _judged(tool, arguments, caller, conversation_id)
    return judged if conversation_id is None else _stricter(judged, await _own_word(conversation_id, tool))


async def _own_word(conversation_id: UUID, tool: Tool) -> Ask | None:
    """Return what the conversation says by itself, also where approvals are switched off for the installation."""
    try:
        return await in_db(strictness.about)(conversation_id, tool.risk_level)
    except Exception:
        logger.exception("What the conversation %s asks about could not be read", conversation_id)
        return Unusable(strictness.UNREADABLE)


def _stricter(judged: Judgement, said: Ask | None) -> Judgement:
    """Let the conversation ask where nothing else does; it softens no refusal."""
    if said is None:
        return judged
    verdict = said if isinstance(judged.verdict, Allow) else judged.verdict
    return Judgement(verdict, (*judged.spoke, Spoke.of("conversation", said, "conversation")))


async def _judged(tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None) -> Judgement:
    if not settings.HITL_ENABLED and not question.is_one(tool):
        off = "Not asked because approvals are switched off for this whole installation (HITL_ENABLED=0)."
        return Judgement.alone("HITL_ENABLED", Allow(off), "installation")
    try:
        rules = in_force()
        heard = await _heard(rules, tool, arguments, caller, conversation_id)
    except Unloadable as error:
        logger.error("The policies of this installation cannot be read: %s", error)  # noqa: TRY400
        rules, heard = (
            (),
            [Unusable(gettext_noop("Asked because the policies of this installation (HITL_POLICIES) do not load."))],
        )
    except Exception:
        logger.exception("The policies could not be asked about a call of %s", tool.name)
        rules, heard = (), [Unusable(gettext_noop("Asked because what the policies need to know could not be read."))]
    names = [rule.name for rule in rules] or ["HITL_POLICIES"] * len(heard)
    name, own = await _of_tool(tool, arguments, caller, conversation_id)
    spoke = Spoke.of_those(zip(names, heard, strict=True), "settings") + Spoke.of_those([(name, own)], "tool")
    return _together(tool, heard, own, spoke)


async def held_to_record(tool: Tool, judged: Judgement) -> Judgement:
    """Ask about a call that would run unasked, unless the record says that its tool is guarded as it is."""
    if not isinstance(judged.verdict, Allow) or not settings.HITL_ENABLED:
        return judged
    try:
        if await in_db(stated.is_as_stated)(tool):
            return judged
    except Exception:
        logger.exception("What the record states of the tool %s could not be read", tool.name)
    said = Unusable(NOT_STATED)
    return Judgement(said, (*judged.spoke, Spoke.of("record", said, "installation")))


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
        return Judgement.alone(
            "mode", Ask(gettext_noop("Asked because no rule allows this call without asking.")), "tool"
        )
    return Judgement(found, spoke)


async def _of_tool(
    tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None
) -> tuple[str, Said]:
    """Return which of the tool's own settings speaks, and what it says."""
    if question.is_one(tool):
        return "mode", Ask(gettext_noop("Asked because only a person can give the answer."))
    try:
        mode = HitlMode(tool.hitl_mode)
    except ValueError:
        return "mode", Unusable(gettext_noop("Asked because this tool's mode is not a known one."))
    match mode:
        case HitlMode.DISABLED:
            return "mode", Allow(gettext_noop("Not asked because this tool is set to never ask."))
        case HitlMode.REQUIRED:
            return "mode", Ask(gettext_noop("Asked because this tool asks every time."))
        case HitlMode.CONDITIONAL:
            return "condition", await _condition(tool.condition, arguments, caller, conversation_id)
        case _:
            assert_never(mode)


async def _condition(condition: str, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None) -> Said:
    if not condition.strip():
        return Abstain()
    try:
        held = await holds(condition, arguments, caller=await _facts(condition, caller, conversation_id))
    except NoAnswer as error:
        return Unusable(f"Asked because this tool's condition {error}")
    if held:
        return Ask(f"Asked because the condition “{condition.strip()}” holds.")
    return Allow(f"Not asked because the condition “{condition.strip()}” does not hold.")


async def _facts(condition: str, caller: Caller, conversation_id: UUID | None) -> dict[str, Any]:
    """Return what a condition may ask of who calls: the database only where it does. NoAnswer."""
    facts = {"kind": caller.kind, "user": caller.user_name, "conversation": conversation_id and str(conversation_id)}
    if "caller" not in condition:
        return facts
    try:
        return {**facts, "groups": await in_db(_groups)(caller.user_id)}
    except Exception as error:
        logger.exception("The groups of person %s could not be read for a condition", caller.user_id)
        raise NoAnswer("could not be evaluated.") from error


def _groups(user_id: int) -> list[str]:
    return sorted(Group.objects.filter(user=user_id).values_list("name", flat=True))


async def holds(condition: str, arguments: dict[str, Any], **more: Any) -> bool:
    """Return whether a condition holds for `arguments`, and for what else it is told by name. NoAnswer."""
    given = {"args": arguments, **more}
    try:
        async with asyncio.timeout(CONDITION_SECONDS):
            report = await sandbox.run(conditions.source(condition, ", ".join(given)), given)
    except Exception as error:
        logger.exception("The condition %r could not be evaluated", condition)
        raise NoAnswer("could not be evaluated.") from error
    if report.fault is not None:
        # The message may quote an argument: not so much of it that it could pose as the card's own words.
        raise NoAnswer(f"failed: {report.fault.message[:LONGEST_FAULT]}")
    if not isinstance(report.result, bool):
        raise NoAnswer("gave neither true nor false.")
    return report.result
