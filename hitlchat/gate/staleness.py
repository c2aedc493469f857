"""Staleness: why an approved call must not run after all, since something is not as it was shown."""

from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.utils.translation import gettext_noop

from hitlchat.accounts.roles import may_author
from hitlchat.base import canonical
from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.gate import deciders, disclosure, oversight, policy, provenance, sources, tools, transition
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.grants import scope
from hitlchat.gate.models import Approval, CallerKind, HitlMode, Tool, ToolCall
from hitlchat.gate.policies import Refuse
from hitlchat.gate.sources import Shown
from hitlchat.gate.status import Status
from hitlchat.gate.transition import move, withdraw

NOT_ON_RECORD = gettext_noop("the record does not say that it was approved or allowed")
NO_AUTHOR = gettext_noop("the person it was called for may not test tools any more")

# How often a person says yes to a call whose preview has changed by the time it is to start.
MOST_CHANGES = 3

CHANGED = gettext_noop("The effect changed after you approved.")
EDITED = gettext_noop("You changed the arguments: this is the effect with your changes.")
FAILED = gettext_noop("The effect could not be checked again after you approved.")


@dataclass(frozen=True)
class Look:
    """A look at what an approved call would do now; good for the round of asking that it was made in."""

    round: int
    preview: Shown


class LookFirst(Exception):
    """The call may not start before its preview was made again, in its present round."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"call {call.pk} was approved with a preview, which has to be made again first")
        self.call = call


def reason(call: ToolCall) -> str | None:
    """Return the reason in words; None if nothing has changed. `call` is read with its tool, approval and caller."""
    return _changed(call) or (None if transition.is_on_record(call) else NOT_ON_RECORD)


def is_due(call: ToolCall) -> bool:
    """Return whether `call` was approved with a preview.

    A preview that had failed promised nothing, save that with other arguments it may not fail.
    """
    if call.status != Status.APPROVED or (shown := call.approval.disclosure.get("preview")) is None:
        return False
    return not isinstance(shown, dict) or shown.get("error") is None or _edited(call)


async def look(call: ToolCall) -> Look:
    assert call.tool is not None
    caller = disclosure.caller_of(call.approval.disclosure)
    made = await sources.preview_of(call.tool, call.arguments, caller)
    return Look(call.round, made or sources.failed_preview("The tool gave no preview this time."))


def stands(call: ToolCall, seen: Look | None) -> bool:
    """Return whether an approved call would still do what was shown; otherwise ask about it again.

    LookFirst: `seen` is no look of this round. StaleCall: someone else moved the call first.
    """
    if seen is None or seen.round != call.round:
        raise LookFirst(call)
    if canonical.dumps(seen.preview) == canonical.dumps(call.approval.disclosure["preview"]):
        return True
    ask(call, seen)
    return False


def ask(call: ToolCall, seen: Look) -> None:
    """Put the question anew, with what was seen now and a fresh deadline; after too many changes, withdraw the call.

    StaleCall: someone else moved the call first.
    """
    approval, tool = call.approval, call.tool
    assert tool is not None
    # Rounds in which the person changed the arguments are the person's own doing.
    unedited = approval.decisions.filter(verdict="approve", edited_arguments=None)
    if unedited.order_by().values("round").distinct().count() >= MOST_CHANGES:
        void = translatable(f"what it would do kept changing, each of the {MOST_CHANGES} times that it was approved")
        withdraw(call, void, seen=seen.preview)
        return
    before, call.deadline = approval.disclosure, disclosure.deadline_of(tool)
    why = EDITED if _edited(call) else FAILED if seen.preview["error"] is not None else CHANGED
    shown = disclosure.renewed(before, call, tool, preview=seen.preview, why=why)
    digest = disclosure.digest(shown)
    data = {"approval": str(approval.pk), "digest": digest, "reason": why, "before": before}
    with transaction.atomic():
        times: dict[str, Any] = {"deadline": call.deadline, "escalates_at": call.escalates_at}
        move(call, Status.WAITING, actor=SYSTEM, data=data, round=call.round + 1, risk_level=shown["risk"], **times)
        Approval.objects.filter(pk=approval.pk).update(
            prompt=storable(shown["prompt"]), disclosure=shown, digest=digest, same=""
        )


def _changed(call: ToolCall) -> str | None:
    tool = call.tool
    if lost := _person_lost(call) or scope.why_not_run(call) or tools.why_lost(call):
        return lost
    if tool is None:
        return "the tool was deleted"
    if not tool.published and call.caller_kind != CallerKind.STUDIO:
        return "the tool was unpublished"
    if call.status == Status.APPROVED:
        try:
            return disclosure.difference(call.approval, call, tool) or _not_decided(call) or _refused_by_now(call, tool)
        except (ObjectDoesNotExist, LookupError, TypeError, canonical.NotJson):
            return "the record of what was shown cannot be read"
    if settings.HITL_ENABLED and tool.hitl_mode == HitlMode.REQUIRED:
        return "the tool asks every time now"
    # Also when the rule was changed while the verdict was on its way to the record.
    if call.rule != policy.rule_of(tool):
        return "the rule that allowed it was changed"
    same = (tool.name, tool.source, tool.definition_hash) == (call.tool_name, call.source, call.definition_hash)
    return None if same else "the tool's definition changed"


def _person_lost(call: ToolCall) -> str | None:
    """Return what the person it was called for may not do any more."""
    if not call.caller.is_active:
        return "the account it was called for was deactivated"
    if call.caller_kind == CallerKind.STUDIO and not may_author(call.caller):
        return NO_AUTHOR
    return None


def _not_decided(call: ToolCall) -> str | None:
    """Return why the yes does not count: it stands when people change, but not when the rules do."""
    if not deciders.quorum_is_reached(call.approval, call):
        return "fewer people approved it than have to"
    return oversight.CHANGED if oversight.has_changed(call) else None


def _refused_by_now(call: ToolCall, tool: Tool) -> str | None:
    """Return why the rules refuse the call now; a yes stands when they are others and do not."""
    if call.rule == policy.rule_of(tool):
        return None
    caller = disclosure.caller_of(call.approval.disclosure)
    outside = provenance.is_from_outside(call.approval.disclosure.get("provenance"))
    judge = async_to_sync(policy.judge)
    said = judge(tool, call.arguments, caller, call.conversation_id, args_from_outside=outside).verdict
    if not isinstance(said, Refuse):
        return None
    return translatable(f"the rules were changed, and refuse it now: {said.reason.rstrip('.')}")


def _edited(call: ToolCall) -> bool:
    return canonical.dumps(call.arguments) != canonical.dumps(call.approval.disclosure["arguments"])
