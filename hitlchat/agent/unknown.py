"""A person ends what is unknown about a call: marks it, or has it run again. Its conversation, if any, is told."""

from typing import Literal
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils.translation import gettext_noop

from hitlchat.agent import transcript, writing
from hitlchat.agent.models import Conversation
from hitlchat.base.problems import Conflict
from hitlchat.gate import queue, settling
from hitlchat.gate.actor import Actor, Caller
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare
from hitlchat.gate.transition import note

RUN_AGAIN = "call.run_again"


class NotAgain(Conflict):
    """The call was not submitted again; the message says why."""


def mark(call_id: UUID, outcome: Literal["done", "failed"], actor: Actor, *, remark: str = "") -> ToolCall:
    """NoSuchApproval, AlreadySettled, BadRemark as `resolve` raises them."""
    call = settling.resolve(call_id, outcome, actor, remark=remark)
    if call.conversation_id and Conversation.objects.filter(pk=call.conversation_id).exists():
        words = "did happen" if outcome == "done" else "did not happen"
        who = "You" if call.caller_id == actor.user_id else "An administrator"
        transcript.add_note(
            call.conversation_id,
            f"{who} marked {call.tool_name}: it {words}.",
            for_model=f"The user found out about the call {call.model_call_id} of {call.tool_name}: it {words}.",
            turn_id=call.turn_id,
        )
        writing.tell_soon(call.conversation_id, "resync")
    return call


def again(old: ToolCall, actor: Actor, name: str, *, remark: str = "") -> ToolCall:
    """Submit the same call anew: a new call, judged and asked about like any other. NotAgain, BadRemark.

    `old`: made for `actor`, whose name is `name`. Without the token of an MCP client, so on no grant of one.
    """
    if old.status != Status.UNKNOWN or actor.user_id is None or old.caller_id != actor.user_id:
        raise NotAgain(
            gettext_noop(
                "Only a call with an unknown outcome can be run again, and only by the person it was made for."
            )
        )
    remarks = {"remark": checked} if (checked := settling.checked(remark)) else {}
    request = CallRequest(
        tool_name=old.tool_name,
        arguments=old.arguments,
        caller=Caller(old.caller_kind, actor.user_id, name),  # type: ignore[arg-type]  # the database has the same words
        conversation_id=old.conversation_id,
        turn_id=old.turn_id,
        position=old.position,
        model_call_id=old.model_call_id,
    )
    prepared = async_to_sync(prepare)(request)
    with transaction.atomic():
        # Locked: of two tabs that ask for it, one gets it; and nobody marks it meanwhile.
        if not list(ToolCall.objects.select_for_update().filter(pk=old.pk, status=Status.UNKNOWN)):
            raise NotAgain(gettext_noop("The outcome is already known."))
        if AuditEvent.objects.filter(call=old, name=RUN_AGAIN).exists():
            raise NotAgain(gettext_noop("This call was already submitted again. The new call is below."))
        call = admit(prepared)
        if call.reason in queue.REASONS:
            # Said instead of recorded: a refused call in its place would be the one time that it can be run again.
            raise NotAgain(call.reason)
        note(old.pk, RUN_AGAIN, actor=actor, data={**remarks, "as": str(call.pk)})
    if call.conversation_id:
        writing.tell_soon(call.conversation_id, "resync")
    return call
