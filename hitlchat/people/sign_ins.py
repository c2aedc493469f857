"""Sign-ins on record: of whom, and failed ones of people who exist. How many may fail, the lockout limits."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from hitlchat.accounts.sign_in import address
from hitlchat.gate.actor import SYSTEM, Actor
from hitlchat.gate.transition import note


def note_sign_in(*, request: HttpRequest | None, user: User, **_: Any) -> None:
    """Put a sign-in from a browser on record."""
    if request is not None and (where := address(request)) is not None:
        data = {"person": user.get_username(), "person_id": user.pk, "from": where}
        note(None, "person.signed_in", actor=Actor(user.pk, "session"), data=data)


def note_failure(*, credentials: Mapping[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """Put a failed sign-in on record. An unknown name is left out: it may be a password typed into the wrong field."""
    name = str(credentials.get("username") or "")
    user = User.objects.filter(username=name).first()
    if user is None or request is None or (where := address(request)) is None:
        return
    data = {"person": user.get_username(), "person_id": user.pk, "from": where}
    note(None, "person.sign_in_failed", actor=SYSTEM, data=data)
