"""tools/call: through the one gate, followed while its client waits, and back with the truth about it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import anyio
import mcp_types as types
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from hitlchat.base.background import background
from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db, only
from hitlchat.gate import stopping
from hitlchat.gate.models import Approval, Tool, ToolCall
from hitlchat.gate.settling import watched
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, Prepared, admit, prepare
from hitlchat.mcp_server import elicitation, outcomes, submissions
from hitlchat.mcp_server.elicitation import Answer, Question, RequestState, Way, way
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.models import Submission, WithoutElicitation
from hitlchat.mcp_server.submissions import ToolRequest

SECONDS = 5.0
CANCELLED = gettext_noop("its client cancelled it")
FAILED = gettext_noop("an error in hitlchat kept it from being asked about")
SLICE_SECONDS = 1.0
TELL_SECONDS = 5.0
# Far longer than tools may take.
LONGEST_SECONDS = 900.0

Result = types.CallToolResult | types.InputRequiredResult

logger = logging.getLogger(__name__)


@asynccontextmanager
async def attached(incoming: ToolRequest, call: ToolCall) -> AsyncIterator[None]:
    """Follow a call for its client: what it cancels, or we fail to ask about, is withdrawn, or stopped."""
    try:
        async with submissions.leased(call), incoming.progress.following(call.pk):
            yield
    except (Exception, asyncio.CancelledError) as error:
        cancelled = isinstance(error, asyncio.CancelledError)
        if not background.leaving:
            with anyio.move_on_after(SECONDS, shield=True):
                await in_db(_let_go)(incoming, call.pk, cancelled=cancelled)
        raise


async def call_tool(ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> Result:
    """Answer tools/call. Raises: MCPError, for an unknown tool or request state."""
    incoming = ToolRequest(ctx, params)
    try:
        if incoming.is_modern and params.request_state is not None:
            return await _answered(incoming, params.request_state)
        tool, call = await in_db(_found)(incoming)
        if call is not None:
            async with attached(incoming, call):
                return await attend(incoming, call, wait=incoming.access.without_elicitation != WithoutElicitation.URL)
        call = await submit(incoming, tool)
        async with attached(incoming, call):
            return await _follow(incoming, call)
    except MCPError:
        raise
    except Exception:
        # Older clients would be told the exception's text.
        logger.exception("A call to %r over MCP failed outside the tool", params.name[:64])
        return outcomes.internal()


async def submit(incoming: ToolRequest, tool: Tool) -> ToolCall:
    request = CallRequest(tool.name, incoming.arguments, incoming.access.caller, among=(tool.name,))
    prepared = await prepare(request, tool)
    waits = prepared.status == Status.WAITING
    askable = await in_db(_askable)(incoming, prepared) if waits else prepared
    # Once it may be on record, whoever cancels must know which call that was.
    with anyio.CancelScope(shield=True):
        call = await in_db(_admit)(incoming, prepared, askable)
    return call  # noqa: RET504 (to mypy a scope may swallow what it does not)


async def attend(incoming: ToolRequest, call: ToolCall, *, wait: bool = True) -> types.CallToolResult:
    """Return what became of the call; or, if it takes long, that its client is to come back."""
    rows = Submission.objects.filter(pk=call.pk)
    if call.status == Status.WAITING and not incoming.is_modern:
        # It waits for others than its client, and goes on when that is gone.
        await in_db(rows.update)(ends=False)
    call = await _decided(incoming, call, settings.MCP_INBOX_SECONDS if wait else 0)
    if call.status != Status.WAITING and not call.settled:
        call = await watched(call.pk, LONGEST_SECONDS, "tool")
    if call.settled:
        return await outcomes.outcome_of(call)
    parked_at = timezone.now()
    await in_db(rows.update)(parked_at=parked_at)
    if (pending := await in_db(outcomes.pending)(call.pk, incoming.address_of)) is not None:
        return pending
    # Its outcome is told now, and so is not there to be come back for.
    await in_db(rows.filter(parked_at=parked_at).update)(parked_at=None)
    return await outcomes.outcome_of(await in_db(ToolCall.objects.get)(pk=call.pk))


async def until_asked_again(call: ToolCall) -> ToolCall:
    """Return the call once nothing more happens to it by itself, or it waits for another answer."""
    end = time.monotonic() + LONGEST_SECONDS
    while True:
        now = await watched(call.pk, SLICE_SECONDS)
        asked_again = now.status == Status.WAITING and now.round > call.round
        if now.settled or asked_again or time.monotonic() > end:
            return now


def _let_go(incoming: ToolRequest, call_id: UUID, *, cancelled: bool) -> None:
    actor = incoming.access.caller.actor
    stopping.withdraw_call(call_id, actor=actor, why=CANCELLED if cancelled else FAILED)
    if cancelled and ToolCall.objects.filter(pk=call_id, status=Status.EXECUTING).exists():
        stopping.request(call_id, actor)


async def _answered(incoming: ToolRequest, text: str) -> Result:
    """Answer the same call made once more, with the question that it had and the answer to that."""
    state = await in_db(elicitation.read_state)(incoming, text)
    given = (incoming.params.input_responses or {}).get(elicitation.KEY)
    if given is not None and not await in_db(elicitation.use_up_state)(state):
        return await in_db(outcomes.answered_before)(state.call_id)
    if await in_db(_tool)(incoming) is None:
        actor, why = incoming.access.caller.actor, elicitation.NO_LONGER
        await in_db(stopping.withdraw_question)(state.call_id, state.round, actor=actor, why=why)
    call = await in_db(ToolCall.objects.get)(pk=state.call_id)
    async with attached(incoming, call):
        return await _follow(incoming, call, given, to=state)


async def _follow(
    incoming: ToolRequest, call: ToolCall, given: object = None, to: RequestState | None = None
) -> Result:
    """Ask as often as the gate needs it, until there is a result."""
    while call.status == Status.WAITING:
        asks = await in_db(elicitation.open_question)(call.pk)
        if asks is None:
            # Decided in the very moment.
            call = await in_db(ToolCall.objects.get)(pk=call.pk)
            break
        assert asks.call.tool is not None
        chosen = way(incoming, asks.call.tool, asks)
        if given is not None and to is not None and (to.round != asks.round or to.way != chosen):
            # An answer to another question: of an earlier round, or under rules that have changed since.
            given = None
        if chosen in (Way.INBOX, Way.LINK, Way.DENY):
            return await attend(incoming, call, wait=chosen == Way.INBOX)
        answer = await elicitation.ask(incoming, asks, chosen, given)
        given = None
        if isinstance(answer, types.InputRequiredResult):
            return answer
        if answer == Answer.UNHEARD:
            continue
        if chosen == Way.PAGE and answer == Answer.ACCEPT:
            return await _seen_off(incoming, asks, await attend(incoming, call))
        call = await until_asked_again(call)
    return await attend(incoming, call)


async def _seen_off(incoming: ToolRequest, asks: Question, result: types.CallToolResult) -> types.CallToolResult:
    """Tell an older client when the page that it sent its user to has done its part."""
    if not incoming.is_modern and outcomes.APPROVAL not in (result.meta or {}):
        await incoming.ctx.session.send_elicit_complete(
            str(asks.approval_id), related_request_id=incoming.ctx.request_id
        )
    return result


def _tool(incoming: ToolRequest) -> Tool | None:
    return only(visible(incoming.access).filter(name=storable(incoming.params.name[:65])))


def _found(incoming: ToolRequest) -> tuple[Tool, ToolCall | None]:
    """Return the tool, and the call of it that this one picks up. Raises: MCPError, if the token has no such tool."""
    if (tool := _tool(incoming)) is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {incoming.params.name[:64]!r}")
    return tool, submissions.pick_up(incoming)


def _askable(incoming: ToolRequest, prepared: Prepared) -> Prepared:
    """Return it as judged, if there is someone to ask and not too much is asked of them; else refused."""
    assert prepared.tool is not None
    chosen = way(incoming, prepared.tool)
    if chosen == Way.DENY:
        return replace(prepared, status=Status.REFUSED, reason=outcomes.NOBODY_TO_ASK)
    waiting = Submission.objects.filter(token_id=incoming.access.token_id, call__status=Status.WAITING)
    if waiting.count() >= outcomes.MOST_WAITING:
        return replace(prepared, status=Status.REFUSED, reason=outcomes.TOO_MANY)
    if incoming.is_modern or chosen != Way.FORM:
        return prepared
    # The question ends with the request that holds it open.
    return replace(prepared, request=replace(prepared.request, patience=settings.MCP_ELICITATION_SECONDS))


def _admit(incoming: ToolRequest, prepared: Prepared, askable: Prepared) -> ToolCall:
    with transaction.atomic():
        call = admit(prepared, instead=askable)
        waits = call.status == Status.WAITING
        Submission.objects.create(
            call=call,
            token_id=incoming.access.token_id,
            request=incoming.digest,
            held_until=submissions.until() if waits else None,
            # An older client holds the question open, unless `attend` says otherwise.
            ends=waits and not incoming.is_modern,
        )
        # Once this is committed its tool may be entered, and tell how far it is, before its client follows.
        incoming.progress.expect(call.pk)
    return call


async def _decided(incoming: ToolRequest, call: ToolCall, seconds: float) -> ToolCall:
    begun, reported, message = time.monotonic(), 0.0, ""
    while call.status == Status.WAITING and (left := begun + seconds - time.monotonic()) > 0:
        if time.monotonic() - reported > TELL_SECONDS:
            if not message:
                approval = await in_db(Approval.objects.only("pk").get)(call_id=call.pk)
                message = f"Waits for a person's approval, at {incoming.address_of(approval.pk)}"
            reported = time.monotonic()
            await incoming.progress.waits(message)
        call = await watched(call.pk, min(left, SLICE_SECONDS))
    return call
