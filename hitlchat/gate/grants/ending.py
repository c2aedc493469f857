"""Ending a grant at once: revoked by a person, or void because something changed; whoever shows it is told."""

from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.dispatch import Signal

from hitlchat.accounts.roles import may_administer
from hitlchat.base.database import durable
from hitlchat.gate import stopping
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.grants import standing
from hitlchat.gate.models import Grant, ToolCall
from hitlchat.gate.models.calls import End
from hitlchat.gate.status import Status
from hitlchat.gate.transition import StaleCall, move, note

# Sent after the commit with grant_id and conversation_id: that of a call it was given with or used for, or None.
grant_changed = Signal()


def tell(grant: Grant, *conversations: UUID | None) -> None:
    for conversation_id in {grant.approval.call.conversation_id, *conversations}:
        transaction.on_commit(partial(_send, grant.pk, conversation_id), robust=True)


def _send(grant_id: UUID, conversation_id: UUID | None) -> None:
    grant_changed.send_robust(sender=Grant, grant_id=grant_id, conversation_id=conversation_id)


MOST_AT_ONCE = 500
DECLINED = "the call that it was given with was declined when it was asked about again"


class NoSuchGrant(LookupError):
    """There is none with this id, or it is not this person's: both look the same from outside."""

    def __init__(self) -> None:
        super().__init__("There is no grant with this id for you to revoke.")


def revoke(grant_id: UUID, actor: Actor) -> Grant:
    """End it now, also if it is used up: what it let in does not start. One that has ended stays as it ended.

    NoSuchGrant: it is someone else's, and `actor` neither an administrator nor the operator on the console.
    """
    grant = Grant.objects.select_related("approval__call").filter(pk=grant_id).first()
    by = _revoker(actor, grant) if grant is not None else ""
    if grant is None or not by:
        raise NoSuchGrant
    _end(grant, End.REVOKED, actor, f"{by} revoked it")
    return Grant.objects.get(pk=grant_id)


def _revoker(actor: Actor, grant: Grant) -> str:
    """Their name, if they may revoke it."""
    if actor.means == "console" and actor.user_id is None:
        return "the operator, on the console,"
    person = User.objects.filter(pk=actor.user_id or 0).first() if actor.is_person else None
    may = person is not None and (grant.person_id == person.pk or may_administer(person))
    return person.get_username() if person is not None and may else ""


def revoke_given_with(call_id: UUID, actor: Actor) -> None:
    """Those that were given together with the yes to this call."""
    for grant_id in Grant.objects.filter(approval__call_id=call_id).values_list("pk", flat=True):
        revoke(grant_id, actor)


def declined(call: ToolCall, actor: Actor) -> None:
    """Within the transaction of a no to `call`: what was given with a yes to it, before it was asked about again."""
    if call.round > 1:
        for grant in Grant.objects.select_related("approval__call").filter(approval__call_id=call.pk):
            _end(grant, End.REVOKED, actor, DECLINED)


def void(grant: Grant, why: str) -> None:
    """End it because of what changed; nothing if it has ended already."""
    _end(grant, End.VOIDED, SYSTEM, why)


def void_changed() -> None:
    """For the sweeper: what is void by now and nobody has come across."""
    rows = Grant.objects.filter(standing.ACTIVE).select_related("tool__oversight", "person")
    for grant in rows[:MOST_AT_ONCE]:
        if why := standing.why_void(grant):
            void(grant, why)


def _end(grant: Grant, end: End, actor: Actor, why: str) -> None:
    with durable():
        rows = Grant.objects.filter(standing.NOT_ENDED, pk=grant.pk)
        if rows.update(end=end, why=why[:300], ended_at=Now(), ended_by_id=actor.user_id) != 1:
            return
        data = {"grant": str(grant.pk), "tool": grant.tool_name, "why": why}
        note(None, f"grant.{end.value}", actor=actor, data=data)
        _fence(grant, f"its grant was {end.label.lower()}: {why}", actor)
        tell(grant)


def _fence(grant: Grant, why: str, actor: Actor) -> None:
    """Every call that it let in is on record by now: whoever counts one holds the grant's row until that is so."""
    for call in ToolCall.objects.filter(grant_id=grant.pk, status=Status.ALLOWED):
        try:
            move(call, Status.WITHDRAWN, actor=actor, data={"reason": why}, reason=f"Not run: {why}.")
        except StaleCall:
            # It started just then: among those that execute.
            continue
    stopping.request_grant(grant.pk, actor)
