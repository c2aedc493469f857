"""Who may ask the model why it made a call, how often, and what becomes of the answer: it is put on record.

Asking decides nothing: the call waits as it did, until when it did, and what was asked for stays what it was.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from hitlchat.base import database
from hitlchat.base.canonical import storable
from hitlchat.base.problems import Conflict, Invalid
from hitlchat.base.sentences import translatable
from hitlchat.gate import decide, why
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.deciders import NotEntitled
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note, remark

NO_MODEL: Final = gettext_noop("There is no model to ask: no assistant of hitlchat made this call in a conversation.")
NOT_THEIRS: Final = gettext_noop("Only the person whose conversation it is can ask its model.")
BUSY: Final = gettext_noop("The model is being asked already. Wait for its answer.")
NO_MORE: Final = translatable(f"The model was asked {why.MOST} times about this call, which is as often as it can be.")


class CannotAsk(Conflict):
    """Nobody is asked, and the sentence says why; the call waits as it did."""


class LongQuestion(Invalid):
    field = "question"
    sentence = translatable(f"Expected at most {why.LONGEST_QUESTION} characters.")


def open_to(approval_id: UUID, actor: Actor) -> Approval:
    """Return a waiting call that `actor` may ask about. NoSuchApproval, NotEntitled, AlreadySettled, CannotAsk.

    It is of a conversation of theirs, whoever decides: the model could tell others what else is in that.
    """
    approval = decide.waiting_before(approval_id, actor)
    if not why.has_model(approval.call):
        raise CannotAsk(NO_MODEL)
    if not why.may_ask(approval.call, actor):
        raise NotEntitled(NOT_THEIRS)
    return approval


def ask(approval_id: UUID, actor: Actor, question: str, *, lasts: timedelta) -> int:
    """Put a question on record, to be answered within that time; its number. NoSuchApproval, NotEntitled,
    AlreadySettled, CannotAsk, LongQuestion.
    """
    words = storable(question).strip()
    if len(words) > why.LONGEST_QUESTION:
        raise LongQuestion
    approval = open_to(approval_id, actor)
    until = database.now() + lasts
    with transaction.atomic():
        # Locked: it is on record as asked about an open call.
        call = ToolCall.objects.select_for_update().get(pk=approval.call_id)
        if call.status != Status.WAITING:
            raise decide.AlreadySettled(call)
        rows = Approval.objects.filter(Q(why_until=None) | Q(why_until__lte=Now()), pk=approval.pk)
        if not rows.filter(whys__lt=why.MOST).update(whys=F("whys") + 1, why_until=until):
            raise CannotAsk(BUSY if not rows.exists() else NO_MORE)
        approval.refresh_from_db(fields=["whys"])
        data = {"approval": str(approval.pk), "number": approval.whys, "question": words, "until": until.isoformat()}
        remark(call, why.ASKED_WHY, actor=actor, data=data)
    return approval.whys


def answered(approval_id: UUID, number: int, text: str = "", *, is_whole: bool = True, trouble: str = "") -> None:
    """Put on record what the model claims, or why there is no answer; also of a call that was decided meanwhile."""
    answer, cut, unfit = why.judged(text, is_whole=is_whole)
    data = {"approval": str(approval_id), "number": number, "answer": answer, "cut": cut}
    data["trouble"] = storable(trouble) or unfit
    with transaction.atomic():
        approval = Approval.objects.select_related("call").get(pk=approval_id)
        Approval.objects.filter(pk=approval_id, whys=number).update(why_until=None)
        call = approval.call
        if call.status == Status.WAITING:
            remark(call, why.WHY_ANSWERED, actor=SYSTEM, data=data)
        else:
            # Nothing that goes by the moves of a call is to hear of one that is over.
            note(call.pk, why.WHY_ANSWERED, actor=SYSTEM, data=data)
