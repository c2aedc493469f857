"""Must a person be asked about this call? All rules are heard, and the strictest one wins."""

import asyncio
import copy
import logging
from dataclasses import fields
from functools import partial
from typing import Any, assert_never
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.utils import timezone
from django.utils.translation import gettext_noop

from hitlchat import sandbox
from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.gate import conditions, oversight, question, stated
from hitlchat.gate.actor import Caller
from hitlchat.gate.models import HitlMode, Tool, ToolCall, delegation
from hitlchat.gate.policies import Abstain, Allow, Ask, Refuse, Verdict, strictness
from hitlchat.gate.policies.loading import Rule, Unloadable, consult, fingerprint, in_force
from hitlchat.gate.policies.rule import CallView, Context, Judgement, Said, Spoke, ToolView, Unusable, strictest
from hitlchat.gate.status import Status

logger = logging.getLogger(__name__)

CONDITION_SECONDS = 5.0
LONGEST_FAULT = 200
# The latest ones: what was approved longer ago is asked about again.
LOOKED_THROUGH = 1000
SIGNED_IN = ("session", "token", "console")
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
    if conversation_id is None:
        return judged
    try:
        # Also where approvals are switched off for the installation.
        said = await in_db(strictness.about)(conversation_id, tool.risk_level)
    except Exception:
        logger.exception("What the conversation %s asks about could not be read", conversation_id)
        said = Unusable(strictness.UNREADABLE)
    if said is None:
        return judged
    # The conversation asks where nothing else does; it softens no refusal.
    verdict = said if isinstance(judged.verdict, Allow) else judged.verdict
    return Judgement(verdict, (*judged.spoke, Spoke.of("conversation", said, "conversation")))


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


def view_of(tool: Tool) -> ToolView:
    return ToolView(**{field.name: getattr(tool, field.name) for field in fields(ToolView)})


def approved_before(tool: Tool, arguments: dict[str, Any], user_id: int) -> bool:
    """Return whether that person said yes, signed in, to a call of `tool` as it is now, from where it is, with exactly
    `arguments`, and the call succeeded.
    """
    wanted = canonical.dumps(canonical.alike(arguments))
    rows = ToolCall.objects.filter(
        # What was enough for a yes once need not be enough now.
        oversight.stands(),
        caller_id=user_id,
        tool_id=tool.pk,
        tool_name=tool.name,
        source=tool.source,
        definition_hash=tool.definition_hash,
        status=Status.SUCCEEDED,
        approval__isnull=False,
    ).select_related("approval")
    return any(
        canonical.dumps(canonical.alike(row.arguments)) == wanted and _said_yes(row, tool, user_id)
        for row in rows.order_by("-created_at", "-id")[:LOOKED_THROUGH].iterator()
    )


async def _judged(tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None) -> Judgement:
    if not settings.HITL_ENABLED and not question.is_one(tool):
        off = "Not asked because approvals are switched off for this whole installation (HITL_ENABLED=0)."
        return Judgement.alone("HITL_ENABLED", Allow(off), "installation")
    heard: list[Said] = []
    try:
        if rules := in_force():
            views = await in_db(_views)(rules, tool, arguments, caller, conversation_id)
            heard += await asyncio.gather(*(consult(rule, *views) for rule in rules))
    except Unloadable as error:
        logger.error("The policies of this installation cannot be read: %s", error)  # noqa: TRY400
        why = gettext_noop("Asked because the policies of this installation (HITL_POLICIES) do not load.")
        rules, heard = (), [Unusable(why)]
    except Exception:
        logger.exception("The policies could not be asked about a call of %s", tool.name)
        rules, heard = (), [Unusable(gettext_noop("Asked because what the policies need to know could not be read."))]
    names = [rule.name for rule in rules] or ["HITL_POLICIES"] * len(heard)
    name, own = await _of_tool(tool, arguments, caller, conversation_id)
    spoke = Spoke.of_those(zip(names, heard, strict=True), "settings") + Spoke.of_those([(name, own)], "tool")
    return _together(tool, heard, own, spoke)


def _views(
    rules: tuple[Rule, ...], tool: Tool, arguments: dict[str, Any], caller: Caller, conversation_id: UUID | None
) -> tuple[CallView, ToolView, Context]:
    """Return what rules are told about the call. Reads the person's groups from the database."""
    named = frozenset(name for rule in rules for name in rule.groups)
    own = Group.objects.filter(user=caller.user_id).values_list("name", flat=True)
    call = CallView(
        tool_name=tool.name,
        arguments=copy.deepcopy(arguments),
        caller_kind=caller.kind,
        user_id=caller.user_id,
        user_name=caller.user_name,
        groups=frozenset(own),
        conversation_id=conversation_id and delegation.root(conversation_id),
        agents=tuple(each["tool"] for each in delegation.agents(conversation_id)),
    )
    existing = frozenset(Group.objects.filter(name__in=named).values_list("name", flat=True)) if named else frozenset()
    before = partial(approved_before, tool, call.arguments, caller.user_id)
    return call, view_of(tool), Context(timezone.now(), before, existing)


def _said_yes(call: ToolCall, tool: Tool, user_id: int) -> bool:
    """Return whether the person approved the call while signed in, of the tool from where it is now."""
    asked: Any = call.approval.disclosure.get("tool", {})
    if (asked.get("id"), asked.get("origin")) != (str(tool.pk), tool.origin):
        return False
    answers = call.approval.decisions.filter(person_id=user_id, round=call.round)
    return answers.filter(verdict="approve", means__in=SIGNED_IN).exists()


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
            return "mode", Ask(gettext_noop("This tool always needs approval."))
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
        return Ask(f"Asked because the condition “{condition.strip()}” is true.")
    return Allow(f"Not asked because the condition “{condition.strip()}” is false.")


async def _facts(condition: str, caller: Caller, conversation_id: UUID | None) -> dict[str, Any]:
    """Return what a condition may ask of who calls: the database only where it does. NoAnswer."""
    facts = {"kind": caller.kind, "user": caller.user_name, "conversation": conversation_id and str(conversation_id)}
    if "caller" not in condition:
        return facts
    try:
        names = Group.objects.filter(user=caller.user_id).values_list("name", flat=True)
        return {**facts, "groups": await in_db(sorted)(names)}
    except Exception as error:
        logger.exception("The groups of person %s could not be read for a condition", caller.user_id)
        raise NoAnswer("could not be evaluated.") from error
