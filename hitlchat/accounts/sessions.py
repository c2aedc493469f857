"""Is the person behind a long-lived connection still signed in?"""

from importlib import import_module

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User


def signed_in_user(session_key: str | None) -> User | None:
    """The active user of this session as stored now; None after sign-out, a changed password or deactivation."""
    if not session_key:
        return None
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = User.objects.filter(pk=store.get(SESSION_KEY), is_active=True).first() if store.get(SESSION_KEY) else None
    if user is None or store.get(HASH_SESSION_KEY) != user.get_session_auth_hash():
        return None
    return user
