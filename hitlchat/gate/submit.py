"""The one entrance: a request is checked, judged by policy, and recorded as rejected, refused, allowed or waiting.

A call is asked about again here, too: one that was to run unasked, and one that would do something else by now.
"""

import asyncio
import reprlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from hitlchat.base import canonical, database
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.base.statements import compiled
from hitlchat.gate import disclosure, oversight, policy, provenance, question, queue, schema, sources, tools, transition
from hitlchat.gate.actor import SYSTEM, Caller
from hitlchat.gate.disclosure import Suggested
from hitlchat.gate.grants import giving, scope
from hitlchat.gate.grants.scope import may_be_granted
from hitlchat.gate.models import Approval, AuditEvent, Grant, Tool, ToolCall, new_id
from hitlchat.gate.policies import Allow, Ask, Spoke
from hitlchat.gate.provenance import Heard, Origin
from hitlchat.gate.sources import Shown
from hitlchat.gate.status import Status
from hitlchat.gate.stopping import NotYet
from hitlchat.gate.transition import enter

OF_ONE_CALL = ("call", "deadline", "whoDecides")

AT_A_TIME = 4
# After so many, a person is not asked about another attempt in the same run.
MOST_SUGGESTED: Final = 3
SUGGESTED_ENOUGH: Final = translatable(
    f"Nobody was asked: in this run a person declined {MOST_SUGGESTED} calls of this tool, and said each time what to "
    "do instead. Do not call it again. Tell the user what you could not do."
)

# How often a person says yes to a call whose preview has changed by the time it is to start.
MOST_CHANGES = 3
CHANGED = gettext_noop("The effect changed after you approved.")
EDITED = gettext_noop("You changed the arguments: this is the effect with your changes.")
FAILED = gettext_noop("The effect could not be checked again after you approved.")


@dataclass(frozen=True)
class CallRequest:
    """`arguments` is the JSON text a model wrote, or an object. `among` narrows the catalog; None means all of it.
    `patience`: seconds after which the caller gives up, whatever the tool's own deadline. `heard`: the texts of its
    conversation, among which the values of the arguments are looked for. `suggested`: what people said to do instead of
    calls of the tool that they declined in the same run, the last one at the end.
    """

    tool_name: str
    arguments: str | dict[str, Any]
    caller: Caller
    among: Collection[str] | None = None
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    position: int = 0
    model_call_id: str = ""
    user_prompt: str = ""
    patience: int | None = None
    heard: Heard | None = None
    suggested: Sequence[Suggested] = ()


@dataclass(frozen=True)
class Prepared:
    """A request with the gate's answer, not yet on record; with what it would do, if a person is to be asked."""

    request: CallRequest
    status: Status
    reason: str
    tool: Tool | None = None
    arguments: dict[str, Any] | None = None
    preview: Shown | None = None
    spoke: tuple[Spoke, ...] = ()
    provenance: list[Origin] | None = None
    # Of one that waits: whether the tool alone asks, and the grants that may cover it.
    grantable: bool = False
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True)
class Look:
    """A look at what an approved call would do now; good for the round of asking that it was made in."""

    round: int
    preview: Shown


class LookFirst(NotYet):
    """It was approved with a preview, which has to be made again first, in its present round."""


async def submit(request: CallRequest) -> ToolCall:
    """Judge and record one call. It runs by itself if allowed; if waiting, once a person approves."""
    prepared = await prepare(request)
    return await in_db(admit)(prepared)


async def prepare(request: CallRequest, tool: Tool | None = None) -> Prepared:
    """Judge `request` without recording anything; for callers that record several calls in one transaction.

    `tool`: as just read from the caller's catalog, by who had to look there anyway.
    """
    why = ""
    if tool is None or request.conversation_id is not None:
        tool, why = await in_db(_find)(request)
    if tool is None or why:
        return Prepared(request, Status.REJECTED, why, tool)
    try:
        # With the defaults, so that the person sees every value that the tool will get (SR-7).
        arguments = await sources.accepted(tool, request.arguments)
        if question.is_one(tool):
            question.check(arguments)
    except (schema.BadArguments, question.BadQuestion) as error:
        return Prepared(request, Status.REJECTED, str(error), tool)
    place = f"{tool.name} {tool.origin}"
    origins = await asyncio.to_thread(provenance.of, arguments, request.heard, tool.input_schema, place)
    outside = provenance.is_from_outside(origins)
    judgement = await policy.judge(tool, arguments, request.caller, request.conversation_id, args_from_outside=outside)
    judgement = await policy.held_to_record(tool, judgement)
    verdict, spoke = judgement.verdict, judgement.spoke
    if not isinstance(verdict, Ask):
        status = Status.ALLOWED if isinstance(verdict, Allow) else Status.REFUSED
        return Prepared(request, status, verdict.reason, tool, arguments, spoke=spoke, provenance=origins)
    if len(request.suggested) >= MOST_SUGGESTED:
        return Prepared(request, Status.REJECTED, SUGGESTED_ENOUGH, tool, arguments, spoke=spoke)
    # Also for what a grant may cover: another call may take its last use first.
    shown = await sources.preview_of(tool, arguments, request.caller)
    waiting = Prepared(request, Status.WAITING, verdict.reason, tool, arguments, shown, spoke, origins)
    if not (judgement.only_the_tool_asks and may_be_granted(tool)):
        return waiting
    where = request.conversation_id
    found = await giving.covering(tool, arguments, request.caller, where, args_from_outside=outside)
    return replace(waiting, grantable=True, grants=found)


async def prepare_all(requests: Iterable[CallRequest]) -> list[Prepared]:
    """`prepare` for the calls of one answer, in order; some at a time, since conditions and previews take time."""
    room = asyncio.Semaphore(AT_A_TIME)

    async def one(request: CallRequest) -> Prepared:
        async with room:
            return await prepare(request)

    return list(await asyncio.gather(*map(one, requests)))


def admit(prepared: Prepared, instead: Prepared | None = None) -> ToolCall:
    """Put a judged request on record, with its approval if it has to wait; all of it or nothing.

    `instead`: what to record in place of a request that waits and that no grant covers after all.
    """
    # No savepoints: whoever records several calls records all of them or none.
    with transaction.atomic(savepoint=False):
        prepared = _unless_gone(prepared)
        call = _call(prepared)
        if prepared.status == Status.WAITING:
            # It may have been made stricter since the call was judged: then no grant counts.
            grants = () if oversight.asks_about(call.conversation_id, call.risk_level) else prepared.grants
            if (grant := giving.take(grants, call)) is not None:
                call.grant, call.reason = grant, storable(scope.reason(grant))
                data = {**_reasons(prepared), "reason": call.reason, "isAutomatic": True, "grant": str(grant.pk)}
                data |= _undisclosed_facts(call, prepared)
                enter(call, Status.ALLOWED, actor=prepared.request.caller.actor, data=data)
                giving.record(grant, call)
                return call
            prepared = instead or prepared
            request, waits = prepared.request, prepared.status == Status.WAITING
            # Enough questions may be open already.
            if full := queue.reason(request.caller.user_id, request.conversation_id) if waits else "":
                prepared = replace(prepared, status=Status.REFUSED, reason=full, preview=None)
            call = _call(prepared)
        if prepared.status != Status.WAITING:
            data = _reasons(prepared) | _undisclosed_facts(call, prepared)
            return enter(call, prepared.status, actor=prepared.request.caller.actor, data=data)
        return _ask(call, prepared)


async def look_first(call: ToolCall) -> Shown | None:
    """Return what a call would do that was to run unasked, for asking about it."""
    assert call.tool is not None
    return await sources.preview_of(call.tool, call.arguments, _caller(call))


def ask_after_all(call: ToolCall, ask: Ask, shown: Shown | None) -> None:
    """Ask about a call that was to run unasked and has not started, since its conversation now asks about it.

    What it would have used of a grant is given back. `call` is read with its tool and caller.
    StaleCall: it started, or was withdrawn, just then.
    """
    tool, caller, grant_id = call.tool, _caller(call), call.grant_id
    assert tool is not None
    call.reason, call.deadline, call.grantable, call.grant_id = ask.reason, disclosure.deadline_of(tool), False, None
    decides = oversight.freeze(call, tool)
    allowed = AuditEvent.objects.filter(call=call, name="call.allowed").first()
    values = allowed.data.get("values", {}) if allowed else {}
    disclosed = disclosure.disclose(call, tool, caller, user_prompt="", preview=shown, decides=decides, **values)
    approval = _approval(call, tool, disclosed)
    spoke = [Spoke.of("conversation", ask, "conversation").as_json]
    data = {"spoke": spoke, "isAutomatic": False, **_question_facts(approval, caller)}
    columns = {name: getattr(call, name) for name in ("reason", "deadline", "grantable", "grant_id", *oversight.FROZEN)}
    with transaction.atomic():
        transition.move(call, Status.WAITING, actor=SYSTEM, data=data, **columns)
        approval.save(force_insert=True)
        if grant_id is not None:
            giving.give_back(grant_id, call)


def must_look(call: ToolCall) -> bool:
    """Return whether `call` was approved with a preview.

    A preview that had failed promised nothing, save that with other arguments it may not fail.
    """
    if call.status != Status.APPROVED or (shown := call.approval.disclosure.get("preview")) is None:
        return False
    return not isinstance(shown, dict) or shown.get("error") is None or _edited(call)


async def look_again(call: ToolCall) -> Look:
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
    ask_again(call, seen)
    return False


def ask_again(call: ToolCall, seen: Look) -> None:
    """Ask again, with the present preview and a new deadline; after too many changes, withdraw the call.

    StaleCall: someone else moved the call first.
    """
    approval, tool = call.approval, call.tool
    assert tool is not None
    # Rounds in which the person changed the arguments are the person's own doing.
    unedited = approval.decisions.filter(verdict="approve", edited_arguments=None)
    if unedited.order_by().values("round").distinct().count() >= MOST_CHANGES:
        void = translatable(f"what it would do kept changing, each of the {MOST_CHANGES} times that it was approved")
        transition.withdraw(call, void, seen=seen.preview)
        return
    before, call.deadline = approval.disclosure, disclosure.deadline_of(tool)
    why = EDITED if _edited(call) else FAILED if seen.preview["error"] is not None else CHANGED
    shown = disclosure.renewed(before, call, tool, preview=seen.preview, why=why)
    digest = disclosure.digest(shown)
    data = {"approval": str(approval.pk), "digest": digest, "reason": why, "before": before}
    with transaction.atomic():
        times: dict[str, Any] = {"deadline": call.deadline, "escalates_at": call.escalates_at}
        if groups := oversight.in_turn(shown["whoDecides"]):
            # A chain begins again with its first group.
            times["decider_group"] = groups[0]
        transition.move(
            call, Status.WAITING, actor=SYSTEM, data=data, round=call.round + 1, risk_level=shown["risk"], **times
        )
        Approval.objects.filter(pk=approval.pk).update(
            prompt=storable(shown["prompt"]), disclosure=shown, digest=digest, same=""
        )


def _of_values(prepared: Prepared) -> dict[str, Any]:
    """Return, for `disclose`, what is known of the values only as long as the request is at hand."""
    assert prepared.tool is not None
    absent = disclosure.not_given(prepared.tool.input_schema, prepared.request.arguments)
    return {"provenance": prepared.provenance, "not_given": absent}


def _undisclosed_facts(call: ToolCall, prepared: Prepared) -> dict[str, Any]:
    """Return the facts of a call that nobody is asked about; of one that may be after all, what its card would say."""
    facts = transition.origin_facts(call, prepared.request.caller)
    facts["argumentsDigest"] = canonical.sha256(call.arguments)
    may_be_asked = call.conversation_id is not None and prepared.status in (Status.ALLOWED, Status.WAITING)
    return facts | ({"values": _of_values(prepared)} if may_be_asked else {})


def _reasons(prepared: Prepared) -> dict[str, Any]:
    """Return, for the record, why: every rule that spoke, and whether it runs without a person being asked."""
    spoke = [each.as_json for each in prepared.spoke]
    facts = {"reason": prepared.reason, "spoke": spoke, "isAutomatic": prepared.status == Status.ALLOWED}
    # Refused by no policy: told apart on the record as well.
    return facts | ({"nobodyAsked": True} if prepared.reason in queue.REASONS else {})


def _unless_gone(prepared: Prepared) -> Prepared:
    """While the call was judged its tool may have been deleted, or its conversation held to other tools."""
    tool, request = prepared.tool, prepared.request
    if tool is None:
        return prepared
    if not _of_id(tool.pk).exists():
        gone = translatable(f"The tool {tool.name!r} was deleted while this call was being checked.")
        return replace(prepared, status=Status.REJECTED, reason=gone, tool=None, preview=None)
    starts = prepared.status in (Status.ALLOWED, Status.WAITING)
    why = tools.why_out_of_reach(tool, request.conversation_id) if starts else ""
    return replace(prepared, status=Status.REJECTED, reason=why, preview=None) if why else prepared


@compiled
def _of_id(tool_id: UUID) -> QuerySet[Tool]:
    return Tool.objects.filter(pk=tool_id)


def _ask(call: ToolCall, prepared: Prepared) -> ToolCall:
    request, tool = prepared.request, prepared.tool
    assert tool is not None
    call.deadline = disclosure.deadline_of(tool, request.patience)
    decides = oversight.freeze(call, tool)
    shown = disclosure.disclose(
        call,
        tool,
        request.caller,
        user_prompt=request.user_prompt,
        preview=prepared.preview,
        decides=decides,
        **_of_values(prepared),
    )
    shown |= disclosure.attempt(request.suggested, call.arguments)
    approval = _approval(call, tool, shown)
    data = _reasons(prepared) | _question_facts(approval, request.caller)
    enter(call, Status.WAITING, actor=request.caller.actor, data=data)
    approval.save(force_insert=True)
    return call


def _approval(call: ToolCall, tool: Tool, shown: disclosure.Disclosure) -> Approval:
    return Approval(
        id=new_id(),
        call=call,
        prompt=storable(shown["prompt"]),
        disclosure=shown,
        digest=disclosure.digest(shown),
        # What became of other calls in the meantime makes it no other question.
        same=_sameness(disclosure.with_edit(shown, canonical.alike(call.arguments), tool) | {"facts": tool.facts}),
    )


def _edited(call: ToolCall) -> bool:
    return canonical.dumps(call.arguments) != canonical.dumps(call.approval.disclosure["arguments"])


def _sameness(shown: dict[str, Any]) -> str:
    """Return the digest of a disclosure, without which call it is of and until when, its numbers being alike.

    Empty where calls are not joined.
    """
    if shown["conversation"] is None:
        return ""
    # After how long others may decide too is a rule; at what time is of the one call, like its deadline.
    rules = {name: part for name, part in shown["whoDecides"].items() if name != "escalatesAt"}
    return canonical.sha256({name: part for name, part in shown.items() if name not in OF_ONE_CALL} | {"rules": rules})


def _question_facts(approval: Approval, caller: Caller) -> dict[str, Any]:
    """Return, for the record, what was asked, of whose call of what."""
    call = approval.call
    facts = {"approval": str(approval.pk), "digest": approval.digest, "reason": call.reason}
    return facts | transition.origin_facts(call, caller)


def _caller(call: ToolCall) -> Caller:
    # The database has the same words.
    kind: Any = call.caller_kind
    return Caller(kind, call.caller_id, call.caller.get_username(), call.token_id)


def _call(prepared: Prepared) -> ToolCall:
    request, tool = prepared.request, prepared.tool
    return ToolCall(
        tool=tool,
        tool_name=tool.name if tool else storable(request.tool_name[:64]),
        source=tool.source if tool else "",
        definition_hash=tool.definition_hash if tool else "",
        risk_level=tool.risk_level if tool else 0,
        arguments=prepared.arguments if prepared.arguments is not None else _best_reading(request.arguments),
        caller_kind=request.caller.kind,
        caller_id=request.caller.user_id,
        created_at=database.now(),
        conversation_id=request.conversation_id,
        turn_id=request.turn_id,
        position=request.position,
        model_call_id=storable(request.model_call_id[:200]),
        rule=policy.rule_of(tool) if tool else "",
        reason=storable(prepared.reason),
        grantable=prepared.grantable,
        token_id=request.caller.token_id,
    )


def _find(request: CallRequest) -> tuple[Tool | None, str]:
    name = storable(request.tool_name)
    tool = tools.callable_by(request.caller, name, request.among)
    if tool is None:
        return None, tools.not_here(storable(request.tool_name[:64]))
    return tool, tools.why_out_of_reach(tool, request.conversation_id)


def _best_reading(given: str | dict[str, Any]) -> dict[str, Any]:
    """Return a rejected call's arguments for the record; what is no object is kept as text, cut at 2,000 characters."""
    try:
        arguments = schema.parse_arguments(given) if isinstance(given, str) else given
        if len(canonical.dumps(arguments)) <= canonical.most_argument_bytes():
            return arguments
    except (schema.BadArguments, canonical.NotJson):
        pass
    text = given if isinstance(given, str) else reprlib.repr(given)
    return {"(unreadable)": text[:2000], "(characters)": len(text)}
