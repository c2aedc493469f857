"""tools/call: through the one gate, followed while its client waits, and back with the truth about it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from hitlchat.base.background import background
from hitlchat.base.database import in_db, only
from hitlchat.gate import stopping, withdraw
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import elicitation, inbox, outcomes, question, states, submitting
from hitlchat.mcp_server.elicitation import Answer
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.models import WithoutElicitation
from hitlchat.mcp_server.question import Question, Way, way
from hitlchat.mcp_server.request import Asked
from hitlchat.mcp_server.states import AnsweredBefore, State

SECONDS = 5.0
CANCELLED = "its client cancelled it"
FAILED = "an error in hitlchat kept it from being asked about"


@asynccontextmanager
async def attached(asked: Asked, call: ToolCall) -> AsyncIterator[None]:
    """A call that its client cancels is withdrawn, or told to stop if it executes. One that we fail to ask about is
    withdrawn too; one that waits while the server restarts goes on waiting.
    """
    try:
        async with submitting.held(call), asked.progress.following(call.pk):
            yield
    except (Exception, asyncio.CancelledError) as error:
        cancelled = isinstance(error, asyncio.CancelledError)
        if not background.leaving:
            with anyio.move_on_after(SECONDS, shield=True):
                await in_db(_let_go)(asked, call.pk, cancelled=cancelled)
        raise


def _let_go(asked: Asked, call_id: UUID, *, cancelled: bool) -> None:
    actor = asked.access.caller.actor
    withdraw.withdraw_call(call_id, actor=actor, why=CANCELLED if cancelled else FAILED)
    if cancelled and ToolCall.objects.filter(pk=call_id, status=Status.EXECUTING).exists():
        stopping.request(call_id, actor)


logger = logging.getLogger(__name__)

Result = types.CallToolResult | types.InputRequiredResult


async def call_tool(ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> Result:
    """MCPError: there is no such tool for this token, or the state that came with it is none."""
    asked = Asked(ctx, params)
    try:
        if asked.is_modern and params.request_state is not None:
            return await _answered(asked, params.request_state)
        return await _called(asked)
    except MCPError:
        raise
    except Exception:
        # Older clients would be told the exception's text.
        logger.exception("A call of %r over MCP failed outside the tool", params.name[:64])
        return outcomes.internal()


async def _called(asked: Asked) -> Result:
    tool, call = await in_db(_found)(asked)
    if call is not None:
        async with attached(asked, call):
            return await inbox.attend(asked, call, wait=asked.access.without_elicitation != WithoutElicitation.URL)
    call = await submitting.submit(asked, tool)
    async with attached(asked, call):
        return await _follow(asked, call)


async def _answered(asked: Asked, text: str) -> Result:
    """The same call once more, with the question that it was answered with, and the answer."""
    state = await in_db(states.read)(asked, text)
    given = (asked.params.input_responses or {}).get(elicitation.KEY)
    try:
        if given is not None:
            await in_db(states.use_up)(state)
    except AnsweredBefore:
        return await in_db(outcomes.answered_before)(state.call_id)
    if not await in_db(_may_use)(asked):
        await in_db(_end)(asked, state)
    call = await in_db(ToolCall.objects.get)(pk=state.call_id)
    async with attached(asked, call):
        return await _follow(asked, call, given, to=state)


async def _follow(asked: Asked, call: ToolCall, given: object = None, to: State | None = None) -> Result:
    """Ask as often as the gate wants it, until there is a result."""
    while call.status == Status.WAITING:
        asks = await in_db(question.standing)(call.pk)
        if asks is None:
            # Decided in the very moment.
            call = await in_db(ToolCall.objects.get)(pk=call.pk)
            break
        assert asks.call.tool is not None
        chosen = way(asked, asks.call.tool, asks)
        if given is not None and to is not None and (to.round != asks.round or to.way != chosen):
            # An answer to another question: of an earlier round, or under rules that have changed since.
            given = None
        if chosen in (Way.INBOX, Way.LINK, Way.DENY):
            return await inbox.attend(asked, call, wait=chosen == Way.INBOX)
        answer = await elicitation.ask(asked, asks, chosen, given)
        given = None
        if isinstance(answer, types.InputRequiredResult):
            return answer
        if answer == Answer.UNHEARD:
            continue
        if chosen == Way.PAGE and answer == Answer.ACCEPT:
            return await _seen_off(asked, asks, await inbox.attend(asked, call))
        call = await inbox.until_asked_again(call)
    return await inbox.attend(asked, call)


async def _seen_off(asked: Asked, asks: Question, result: types.CallToolResult) -> types.CallToolResult:
    """An older client is told when the page that it sent its user to has done its part."""
    if not asked.is_modern and not outcomes.is_pending(result):
        await asked.ctx.session.send_elicit_complete(str(asks.approval_id), related_request_id=asked.ctx.request_id)
    return result


def _found(asked: Asked) -> tuple[Tool, ToolCall | None]:
    """The tool, and the call of it that this one picks up. MCPError: there is no such tool for this token."""
    tool = only(visible(asked.access).filter(name=submitting.storable_name(asked)))
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {asked.params.name[:64]!r}")
    return tool, inbox.pick_up(asked)


def _may_use(asked: Asked) -> bool:
    return visible(asked.access).filter(name=submitting.storable_name(asked)).exists()


def _end(asked: Asked, state: State) -> None:
    withdraw.withdraw_question(state.call_id, state.round, actor=asked.access.caller.actor, why=elicitation.NO_LONGER)
