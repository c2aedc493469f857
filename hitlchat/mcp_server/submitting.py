"""Putting a call to the gate, once for each tools/call that asks for it anew."""

from dataclasses import replace

import anyio
from django.conf import settings
from django.db import transaction

from hitlchat.base.canonical import storable
from hitlchat.base.database import in_db
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, Prepared, admit, prepare
from hitlchat.mcp_server import holding
from hitlchat.mcp_server.asked import Asked
from hitlchat.mcp_server.models import Submission
from hitlchat.mcp_server.ways import Way, way

MOST_WAITING = 50
NOBODY_TO_ASK = (
    "It needs a person's approval, this client cannot ask its user (elicitation), and its token allows no other way."
)
TOO_MANY = f"{MOST_WAITING} calls of this token wait for an answer already; let those be answered first."


async def submit(asked: Asked, tool: Tool) -> ToolCall:
    request = CallRequest(tool.name, asked.arguments, asked.access.caller, among=(tool.name,))
    prepared = await prepare(request, tool)
    waits = prepared.status == Status.WAITING
    askable = await in_db(_askable)(asked, prepared) if waits else prepared
    # Once it may be on record, whoever cancels must know which call that was.
    with anyio.CancelScope(shield=True):
        call = await in_db(_admit)(asked, prepared, askable)
    return call  # noqa: RET504 (to mypy a scope may swallow what it does not)


def storable_name(asked: Asked) -> str:
    return storable(asked.params.name[:65])


def _askable(asked: Asked, prepared: Prepared) -> Prepared:
    """As it was judged, if there is someone to ask and not too much is asked of them; else refused."""
    assert prepared.tool is not None
    chosen = way(asked, prepared.tool)
    if chosen == Way.DENY:
        return replace(prepared, status=Status.REFUSED, reason=NOBODY_TO_ASK)
    if Submission.objects.filter(token_id=asked.access.token_id, call__status=Status.WAITING).count() >= MOST_WAITING:
        return replace(prepared, status=Status.REFUSED, reason=TOO_MANY)
    if asked.is_modern or chosen != Way.FORM:
        return prepared
    # The question ends with the request that holds it open.
    return replace(prepared, request=replace(prepared.request, patience=settings.MCP_ELICITATION_SECONDS))


def _admit(asked: Asked, prepared: Prepared, askable: Prepared) -> ToolCall:
    with transaction.atomic():
        call = admit(prepared, instead=askable)
        waits = call.status == Status.WAITING
        Submission.objects.create(
            call=call,
            token_id=asked.access.token_id,
            request=asked.digest,
            held_until=holding.until() if waits else None,
            # An older client holds the question open; `outlives` says where that is not so.
            ends=waits and not asked.is_modern,
        )
        # Once this is committed its tool may be entered, and tell how far it is, before its client follows.
        asked.progress.expect(call.pk)
    return call
