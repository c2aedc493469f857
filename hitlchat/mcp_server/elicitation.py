"""Elicitation about one call over MCP, in both protocols: the card in words, the ways to ask, the client's answer.

`requestState` is the question that a client of 2026-07-28 brings back with its answer. It is sealed with keys that all
processes share, holds for one token, tool and arguments, and is good for one answer, which the database sees to.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final
from uuid import UUID

import anyio
import mcp_types as types
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from hitlchat.base import canonical
from hitlchat.base.database import in_db
from hitlchat.base.visible import Seen, see
from hitlchat.gate import attention, decide, deciders, stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.card import card
from hitlchat.gate.models import Approval, Tool, ToolCall
from hitlchat.gate.settling import watched
from hitlchat.gate.status import Status
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.models import Submission, WithoutElicitation
from hitlchat.mcp_server.submissions import ToolRequest
from hitlchat.secrets import sealing

NOT_ENOUGH = "the client says that its user declined; a signed-in person must decide this call"
NOT_OPENED = "the client's user did not open the page where the call is decided"
# Nothing to fill in: yes or no is in the action.
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {}}
LOOK_SECONDS = 1.0
# The deadline is judged by the database's clock: not before it.
AFTER = timedelta(seconds=0.5)
# A client that cancels and leaves has said so by then.
GONE_SECONDS = 1.0
# Under which the question, and its answer, stand in a result and in the call made once more.
KEY: Final = "approval"
NO_LONGER: Final = gettext_noop("its token may no longer use this tool")
PURPOSE = "mcp request state"
LONGEST_STATE = 4096
# What is longer would be cut by someone on its way: then it is to be read on a page of ours.
LONGEST = 6000
# Words, which cannot look like several cells.
PLAIN = re.compile(r"[\w.@/ -]+\Z")


class Answer(StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"
    MALFORMED = "malformed"
    ERROR = "error"
    LATE = "late"
    GONE = "gone"
    ELSEWHERE = "elsewhere"
    UNHEARD = "unheard"


# What ends the question without being an answer to it.
WHY: Final = {
    Answer.CANCEL: "the question was dismissed without an answer",
    Answer.MALFORMED: "the client's answer did not fit the question",
    Answer.ERROR: "the client could not ask its user",
    Answer.LATE: "the client gave no answer in time",
    Answer.GONE: "the client went away before the question was answered",
}


@dataclass(frozen=True)
class Question:
    """One round of asking about a call. `client_may_answer`: it is trusted to report its user's answer."""

    call: ToolCall
    approval_id: UUID
    digest: str
    message: str
    client_may_answer: bool

    @property
    def round(self) -> int:
        return self.call.round


class Way(StrEnum):
    FORM = "form"  # the client asks its user
    PAGE = "page"  # the client sends its user to the page of the approval
    INBOX = "inbox"  # the client waits while its user is asked here
    LINK = "link"  # the client gets a link, and comes back
    DENY = "deny"


@dataclass(frozen=True)
class RequestState:
    """Ties an answer to a question: its round, and its way, since a yes to being sent to a page is none to the call."""

    call_id: UUID
    number: int
    round: int
    way: Way


def open_question(call_id: UUID) -> Question | None:
    """Return what is open about this call now; None if nothing is."""
    rows = Approval.objects.select_related("call__tool")
    found = rows.filter(call_id=call_id, call__status=Status.WAITING).first()
    if found is None:
        return None
    # Of a tool that was deleted nobody knows what was to hold for it.
    enough = found.call.tool is not None and deciders.will_do(found.call.tool, found)
    return Question(found.call, found.pk, found.digest, message(found), enough)


def message(approval: Approval) -> str:
    shown = card(approval)
    lines = [f"[Risk L{shown.risk}, {shown.risk_label}] {_line(shown.prompt)}"]
    if again := approval.disclosure.get("again"):
        lines.append(f"Asked again: {_line(see(again['why']))}")
    lines += [
        f"Tool: {_line(shown.tool_name)}, from {_line(shown.origin)}",
        f"Arguments: {_quoted(approval.disclosure['arguments'])}",
    ]
    if ran := approval.disclosure.get("ranBefore"):
        lines.append(f"Note: {ran}")
    lines += _effect(approval.disclosure.get("preview"))
    warnings = [*shown.warnings, *(each for row in (*shown.rows, *shown.more_rows) for each in row.warnings)]
    return "\n".join([*lines, *(f"Note: {warning}" for warning in dict.fromkeys(warnings))])


def way(incoming: ToolRequest, tool: Tool, question: Question | None = None) -> Way:
    """Return the way to ask. `question`: the one that is open, if the call is on record already."""
    if question is None:
        enough = incoming.access.trusted and deciders.will_do(tool)
    else:
        enough = len(question.message) <= LONGEST and question.client_may_answer
    if incoming.asks_forms and enough:
        return Way.FORM
    if incoming.opens_urls:
        return Way.PAGE
    match incoming.access.without_elicitation:
        case WithoutElicitation.URL:
            return Way.LINK
        case WithoutElicitation.INBOX:
            return Way.INBOX
        case WithoutElicitation.DENY:
            # Its user is there, and only must not answer through the client.
            return Way.INBOX if incoming.asks_forms else Way.DENY


def read_answer(given: object) -> Answer:
    """Return the answer in a result of elicitation. A yes comes without content: none was asked for."""
    if not isinstance(given, types.ElicitResult) or (given.action == "accept" and given.content):
        return Answer.MALFORMED
    return Answer(given.action)


async def elicit(incoming: ToolRequest, question: Question, request: types.ElicitRequest) -> Answer:
    """Return what the client says, or what came first: another outcome, the client's end, or the limit."""
    found: list[Answer] = []
    async with anyio.create_task_group() as race:

        async def run(racer: Callable[[], Awaitable[Answer]]) -> None:
            found.append(await racer())
            race.cancel_scope.cancel()

        race.start_soon(run, partial(_client_answer, incoming.ctx, request))
        race.start_soon(run, partial(_other_outcome, question))
        race.start_soon(run, partial(_client_gone, incoming))
    return found[0]


async def ask(
    incoming: ToolRequest, question: Question, chosen: Way, given: object = None
) -> types.InputRequiredResult | Answer:
    """Put the question to the client's user. On 2026-07-28 it is the result of the call, and `given` the answer that
    came; on older revisions it is a request of its own, and this waits.
    """
    request = _request(incoming, question, chosen)
    if chosen == Way.FORM and (given is None or not incoming.is_modern):
        await in_db(_delivered)(incoming, question)
    if not incoming.is_modern:
        answer = await elicit(incoming, question, request)
    elif given is None:
        state = await in_db(seal_state)(incoming, question, chosen)
        return types.InputRequiredResult(input_requests={KEY: request}, request_state=state)
    else:
        answer = read_answer(given)
    return await in_db(_take)(incoming, question, chosen, answer)


def seal_state(incoming: ToolRequest, question: Question, way: Way) -> str:
    rows = Submission.objects.filter(pk=question.call.pk)
    with transaction.atomic():
        rows.update(questions=F("questions") + 1)
        number = rows.get().questions
    bound = [*_binding(incoming), question.call.pk.hex, number, question.round, way]
    return sealing.seal(canonical.dumps(bound), PURPOSE)


def read_state(incoming: ToolRequest, text: str) -> RequestState:
    """Raises: MCPError, the state was not made here, or for another token, tool or arguments."""
    invalid = MCPError(types.INVALID_PARAMS, "requestState: expected the value given for this call, before it expired.")
    if len(text) > LONGEST_STATE:
        raise invalid
    try:
        match canonical.loads(sealing.unseal(text, PURPOSE)):
            case [*binding, str() as call_id, int() as number, int() as asked_in, str() as way]:
                state = RequestState(UUID(call_id), number, asked_in, Way(way))
            case _:
                raise invalid
    except (sealing.Unsealable, canonical.NotJson, ValueError) as error:
        raise invalid from error
    if binding != _binding(incoming) or not incoming.digest:
        raise invalid
    if not Submission.objects.filter(pk=state.call_id, token_id=incoming.access.token_id).exists():
        raise invalid
    return state


def use_up_state(state: RequestState) -> bool:
    """Use up the one answer that the question may have; False if it had that before: another one does not count."""
    rows = Submission.objects.filter(pk=state.call_id, answered__lt=state.number)
    return rows.update(answered=state.number) == 1


def _end(question: Question, user: Actor, why: str) -> None:
    stopping.withdraw_question(question.call.pk, question.round, actor=user, why=why)


async def _client_answer(ctx: ServerRequestContext, request: types.ElicitRequest) -> Answer:
    try:
        given = await ctx.session.send_request(
            request,
            types.ElicitResult,
            # On the stream of the call, which its client reads.
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
    except ValidationError:
        return Answer.MALFORMED
    except NoBackChannelError:
        return Answer.ERROR
    except MCPError as error:
        return {types.REQUEST_TIMEOUT: Answer.LATE, types.CONNECTION_CLOSED: Answer.GONE}.get(error.code, Answer.ERROR)
    return read_answer(given)


async def _other_outcome(question: Question) -> Answer:
    """Wait for another outcome of the question, or until its time is up: somebody may put its deadline off."""
    before = question.call.deadline
    assert before is not None
    limit = min(before, timezone.now() + timedelta(seconds=settings.MCP_ELICITATION_SECONDS)) + AFTER
    while True:
        call = await watched(question.call.pk, LOOK_SECONDS)
        if call.status != Status.WAITING or call.round != question.round:
            return Answer.ELSEWHERE
        assert call.deadline is not None
        if timezone.now() > limit + (call.deadline - before):
            return Answer.LATE


async def _client_gone(incoming: ToolRequest) -> Answer:
    await incoming.gone.wait()
    await asyncio.sleep(GONE_SECONDS)
    return Answer.GONE


def _delivered(incoming: ToolRequest, question: Question) -> None:
    """Note the delivery, as far as this server can tell: whether its user sees it, only the client knows."""
    rows = Approval.objects.select_related("call").defer("disclosure")
    attention.shown(rows.get(pk=question.approval_id), incoming.claimed_user)


def _take(incoming: ToolRequest, question: Question, chosen: Way, answer: Answer) -> Answer:
    user, tool_id = incoming.claimed_user, question.call.tool_id
    if answer == Answer.ACCEPT:
        # Its user may have taken long to answer: what counts is what the token may use now.
        access = tokens.current_access(incoming.access)
        if access is None or tool_id is None or not visible(access).filter(pk=tool_id).exists():
            _end(question, incoming.access.caller.actor, NO_LONGER)
            return answer
    if answer in WHY:
        if answer != Answer.LATE or not decide.expire(question.call):
            _end(question, user, WHY[answer])
    elif chosen == Way.FORM:
        return _decided(question, answer, user)
    elif answer == Answer.DECLINE:
        # A yes to being sent to the page means no more than that its user goes there.
        _end(question, user, NOT_OPENED)
    return answer


def _decided(question: Question, answer: Answer, user: Actor) -> Answer:
    """Do as the user said. UNHEARD: a yes did not count, since a signed-in person has to decide by now."""
    try:
        if answer == Answer.ACCEPT:
            decide.approve(question.approval_id, user, digest=question.digest)
        elif answer == Answer.DECLINE:
            decide.decline(question.approval_id, user)
    except (decide.NoSuchApproval, decide.CautionUnread):
        if answer == Answer.ACCEPT:
            return Answer.UNHEARD
        _end(question, user, NOT_ENOUGH)
    except (decide.AlreadySettled, decide.OtherDigest):
        # Decided elsewhere, expired, or asked about again: whoever waits sees what became of it.
        pass
    return answer


def _request(incoming: ToolRequest, question: Question, chosen: Way) -> types.ElicitRequest:
    if chosen == Way.FORM:
        return types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=question.message, requested_schema=FORM)
        )
    # The sentence, with the risk.
    first_line = question.message.partition("\n")[0]
    return types.ElicitRequest(
        params=types.ElicitRequestURLParams(
            message=f"A signed-in person must decide this call on the page at this URL. {first_line}",
            url=incoming.address_of(question.approval_id),
            elicitation_id=None if incoming.is_modern else str(question.approval_id),
        )
    )


def _binding(incoming: ToolRequest) -> list[Any]:
    return [incoming.access.token_id, incoming.access.user_id, incoming.digest]


def _line(text: Seen) -> str:
    """Return a value on one line: nothing filled in may look like a line of ours."""
    return text.plain.replace("\n", " ⏎ ")


def _effect(preview: dict[str, Any] | None) -> list[str]:
    if not preview:
        return []
    if preview.get("error") is not None:
        return [f"Its effect could not be determined: {_quoted(preview['error'])}"]
    text, table = preview.get("text"), preview.get("table")
    summary = f" {_quoted(text)}" if text else ""
    return [
        (f"Its effect, as reported by the tool (hitlchat has not checked this):{summary}"),
        *(_rows(table) if table else ()),
        *preview.get("cut", ()),
    ]


def _rows(table: dict[str, Any]) -> Iterator[str]:
    """A line for each row, with the name of each column, or of the row."""
    columns = [*map(_cell, table["columns"])]
    for row in table["rows"]:
        cells = [*map(_cell, row)]
        if columns:
            cells = [f"{name}: {cell}" for name, cell in zip(columns, cells, strict=True)]
            yield f"- {', '.join(cells)}"
        else:
            yield f"- {cells[0]}: {', '.join(cells[1:])}"


def _cell(text: str) -> str:
    """Return a value, in quotation marks if it could look like several cells."""
    return text if PLAIN.match(text) else _quoted(text)


def _quoted(value: Any) -> str:
    return see(canonical.pretty(value)).plain
