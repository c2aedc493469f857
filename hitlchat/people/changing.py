"""Changing what a person is: their role, and whether they may come in at all."""

from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from hitlchat.accounts import roles, sessions
from hitlchat.accounts.models import Invitation, Role, Token
from hitlchat.agent import runner
from hitlchat.agent.models import ACTIVE, Run
from hitlchat.gate import withdraw
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import CallerKind, ToolCall
from hitlchat.gate.staleness import NO_AUTHOR
from hitlchat.gate.transition import note
from hitlchat.people import rules
from hitlchat.people.rules import Refused

DEACTIVATED = "the account it was called for was deactivated"
NOT_STARTED = Q(status__in=withdraw.NOT_STARTED)
TESTS_NOT_STARTED = NOT_STARTED & Q(caller_kind=CallerKind.STUDIO)


def change_role(user_id: int, role: Role, actor: Actor, seen: str | None = None) -> User:
    """Give this person `role`, from now on. Refused; Stale: they are not as `seen` (rules.state) any more."""
    with transaction.atomic():
        administrators = rules.lock(actor)
        user = rules.lock_person(user_id)
        rules.check_not_oneself(user, actor)
        rules.check_seen(user, seen)
        rules.check_not_the_last(user, administrators, role)
        before = roles.role_of(user)
        if before == role:
            raise Refused(f"{user.get_username()} has this role already.")
        roles.give(user, role)
        void = _void_invitations(user) if role != Role.ADMINISTRATOR else 0
        is_author = roles.AUTHORING in roles.PERMISSIONS[role]
        # Tests are for authors, and what they run may never have been published.
        tests = 0 if is_author else _withdraw(user.pk, actor, TESTS_NOT_STARTED, NO_AUTHOR)
        ended = {"invitations_void": void, "calls_withdrawn": tests}
        _note("person.role_changed", user, actor, {"from": before.value, "to": role.value, **ended})
    return user


def deactivate(user_id: int, actor: Actor, seen: str | None = None) -> User:
    """Nothing opens to this person any more, and what they asked for does not start. Refused, Stale.

    Their sessions and tokens are gone for good, also if they are active again later. What executes goes on.
    """
    with transaction.atomic():
        administrators = rules.lock(actor)
        user = rules.lock_person(user_id)
        rules.check_not_oneself(user, actor)
        rules.check_seen(user, seen)
        if not user.is_active:
            raise Refused(f"{user.get_username()} is deactivated already.")
        rules.check_not_the_last(user, administrators)
        user.is_active = False
        user.save(update_fields=["is_active"])
        ended = {"sessions": sessions.end_all(user.pk), "tokens": _end_tokens(user)}
        ended |= {"invitations_void": _void_invitations(user)}
        # Before the calls tell of their end, which would have their runs go on. Once more: a call that came in just
        # now may not have shown yet.
        transaction.on_commit(partial(_stop, user.pk, actor))
        ended |= {"calls_withdrawn": _withdraw(user.pk, actor)}
        _note("person.deactivated", user, actor, {"from": "active", "to": "deactivated", **ended})
    return user


def reactivate(user_id: int, actor: Actor, seen: str | None = None) -> User:
    """They can sign in again, with their password and role of before. Refused, Stale."""
    with transaction.atomic():
        rules.lock(actor)
        user = rules.lock_person(user_id)
        rules.check_seen(user, seen)
        if user.is_active:
            raise Refused(f"{user.get_username()} is active already.")
        # Of a sign-in that was under way while they were deactivated.
        sessions.end_all(user.pk)
        _end_tokens(user)
        user.is_active = True
        user.save(update_fields=["is_active"])
        _note("person.reactivated", user, actor, {"from": "deactivated", "to": "active"})
    return user


def not_started(user: User) -> int:
    """How many calls would be withdrawn."""
    return ToolCall.objects.filter(NOT_STARTED, caller=user).count()


def _end_tokens(user: User) -> list[str]:
    # A call that is just coming in with one of them comes before this, or fails.
    tokens = list(Token.objects.select_for_update().filter(user=user))
    Token.objects.filter(user=user).delete()
    return [f"{token.kind} {token.name}".strip() for token in tokens]


def _void_invitations(user: User) -> int:
    return Invitation.objects.filter(invited_by=user).delete()[0]


def _withdraw(user_id: int, actor: Actor, which: Q = NOT_STARTED, why: str = DEACTIVATED) -> int:
    calls = ToolCall.objects.filter(which, caller_id=user_id)
    ids = list(calls.values_list("pk", flat=True))
    for call_id in ids:
        withdraw.withdraw_call(call_id, actor=actor, why=why)
    return len(ids)


def _stop(user_id: int, actor: Actor) -> None:
    for run in Run.objects.filter(conversation__owner_id=user_id, status__in=ACTIVE):
        runner.stop(run.pk, run.conversation_id, actor)
    _withdraw(user_id, actor)


def _note(name: str, user: User, actor: Actor, data: dict[str, object]) -> None:
    note(None, name, actor=actor, data={"person": user.get_username(), "person_id": user.pk, **data})
