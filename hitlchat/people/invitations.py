"""Invitations: a link that makes one account with a given role, good for seven days and for one person."""

import secrets
from datetime import timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from hitlchat.accounts import roles
from hitlchat.accounts.models import Invitation, Role, hashed
from hitlchat.base.visible import see
from hitlchat.gate import stated
from hitlchat.gate.actor import Actor
from hitlchat.gate.transition import note
from hitlchat.people import membership
from hitlchat.people.membership import Refused

LIFETIME: Final = timedelta(days=7)
MOST_OPEN: Final = 100


def invite(role: Role, for_whom: str, actor: Actor) -> tuple[Invitation, str]:
    """Make an invitation, and return it with the secret of its link; only now that is known. Raises: Refused"""
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        membership.lock(actor)
        if still_open().count() >= MOST_OPEN:
            raise Refused(f"{MOST_OPEN} invitations are open, which is the limit. Revoke some first.")
        made = Invitation.objects.create(
            digest=hashed(secret),
            role=role,
            note=for_whom,
            invited_by_id=actor.user_id,
            expires_at=timezone.now() + LIFETIME,
        )
        note(None, "person.invited", actor=actor, data=_facts(made))
    return made, secret


def revoke(invitation_id: int, actor: Actor) -> Invitation:
    """Revoke the link of an invitation. Raises: Refused, if it is not open."""
    with transaction.atomic():
        membership.lock(actor)
        found = Invitation.objects.select_for_update().filter(pk=invitation_id).first()
        if found is None:
            raise Refused("This invitation no longer works: it was used or revoked.")
        note(None, "person.invitation_revoked", actor=actor, data=_facts(found))
        Invitation.objects.filter(pk=found.pk).delete()
    return found


def still_open() -> QuerySet[Invitation]:
    """Return those that can be used now: not lapsed, and of someone who may still invite."""
    inviter = Q(invited_by=None) | Q(invited_by__is_superuser=True, invited_by__is_active=True)
    return Invitation.objects.filter(inviter, expires_at__gt=timezone.now())


def find(secret: str) -> Invitation | None:
    return still_open().select_related("invited_by").filter(digest=hashed(secret)).first()


def is_plain(name: str) -> bool:
    """Return whether a name has no hidden letters, and none that pass for others: approvals name people."""
    shown = see(name)
    return not shown.warnings and not any(piece.hidden for piece in shown.pieces)


def name_is_taken(username: str) -> bool:
    """Return whether the name is taken, also by one that differs in capitals only: approvals name people."""
    return User.objects.filter(username__iexact=username).exists()


def redeem(secret: str, username: str, password: str) -> User:
    """Make the account and use the link up. Raises: Refused, the link opens nothing, or somebody has that name."""
    with transaction.atomic():
        # Alone: also two who choose the same name, in other capitals.
        list(User.objects.select_for_update().filter(is_superuser=True, is_active=True).order_by("pk"))
        found = find(secret)
        if found is None or Invitation.objects.filter(pk=found.pk).delete()[0] != 1:
            raise Refused("This invitation no longer works.")
        if name_is_taken(username):
            raise Refused("This name is taken.")
        user = User.objects.create_user(username, password=password)
        roles.give(user, Role(found.role))
        facts = _facts(found) | membership.about(user) | stated.states("person", user.pk)
        note(None, "person.joined", actor=Actor(user.pk, "session"), data=facts)
    return user


def _facts(invitation: Invitation) -> dict[str, object]:
    by = invitation.invited_by
    return {
        "invitation": invitation.pk,
        "role": invitation.role,
        "note": invitation.note,
        "invited_by": by.get_username() if isinstance(by, User) else None,
        "until": invitation.expires_at.isoformat(),
    }
