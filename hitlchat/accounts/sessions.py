"""Is the person behind a long-lived connection still signed in? And how all sessions of one are ended."""

from datetime import datetime
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.utils import timezone

from hitlchat.base import database

SIGNED_IN_AT = "signed_in_at"


def note_sign_in(*, request: Any, **_: Any) -> None:
    """The person behind this request has just proved who they are."""
    if request is not None:
        request.session[SIGNED_IN_AT] = database.now().isoformat()


def signed_in_at(session: SessionBase) -> datetime | None:
    """When that was last; None for a session from before it was noted."""
    noted = session.get(SIGNED_IN_AT)
    return datetime.fromisoformat(noted) if isinstance(noted, str) else None


def stored(session_key: str) -> SessionBase:
    """The session as it is by now: what a long-lived connection has of it is of when it was made."""
    found: SessionBase = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return found


def signed_in_user(session_key: str | None) -> User | None:
    """The active user of this session as stored now; None after sign-out, a changed password or deactivation."""
    if not session_key:
        return None
    store = stored(session_key)
    user_id = store.get(SESSION_KEY)
    user = User.objects.filter(pk=user_id, is_active=True).first() if user_id else None
    if user is None or store.get(HASH_SESSION_KEY) != user.get_session_auth_hash():
        return None
    return user


def is_still_active(user_id: int) -> bool:
    return User.objects.filter(pk=user_id, is_active=True).exists()


def end_all(user_id: int) -> int:
    """End every session of this person: how many. They cannot come back with one of them, also when active again."""
    # Whose a session is stands inside of it.
    going_on = Session.objects.filter(expire_date__gt=timezone.now()).iterator()
    theirs = [each.pk for each in going_on if each.get_decoded().get(SESSION_KEY) == str(user_id)]
    return Session.objects.filter(pk__in=theirs).delete()[0]
