"""I'm on it: a person says for five minutes that they look at a question, so that others need not.

It is a courtesy where several may decide, and locks nothing: whoever may answer still may.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from hitlchat.base import database
from hitlchat.base.problems import Conflict
from hitlchat.base.sentences import translatable
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Handling
from hitlchat.gate.transition import remark

LASTS: Final = timedelta(minutes=5)
TAKEN_UP, LET_GO = "call.taken_up", "call.let_go"


class TakenUp(Conflict):
    """Somebody else is on it."""

    def __init__(self, row: Handling) -> None:
        super().__init__(translatable(f"{row.person.get_username()} is on it already."))


def take_up(approval_id: UUID, actor: Actor) -> None:
    """Say that `actor` is on it for five minutes from now, also once more. NoSuchApproval, NotEntitled, AlreadySettled;
    TakenUp: somebody else is.
    """
    approval = decide.open_to(approval_id, actor)
    until = database.now() + LASTS
    own = {"person_id": actor.user_id, "until": until}
    with transaction.atomic():
        row, is_new = Handling.objects.get_or_create(approval=approval, defaults=own)
        is_free = Q(person_id=actor.user_id) | Q(until__lte=Now()) | Q(person__is_active=False)
        if not is_new and not Handling.objects.filter(is_free, pk=row.pk).update(**own):
            raise TakenUp(row)
        data = {"approval": str(approval.pk), "until": until.isoformat()}
        remark(approval.call, TAKEN_UP, actor=actor, data=data)


def let_go(approval_id: UUID, actor: Actor) -> None:
    """Say that `actor` is not on it any more, if they are. NoSuchApproval, NotEntitled, AlreadySettled."""
    approval = decide.open_to(approval_id, actor)
    with transaction.atomic():
        gone, _ = Handling.objects.filter(approval=approval, person_id=actor.user_id, until__gt=Now()).delete()
        if gone:
            remark(approval.call, LET_GO, actor=actor, data={"approval": str(approval.pk)})
