"""The person who acts on a page."""

from django.http import HttpRequest

from hitlchat.accounts.people import person
from hitlchat.accounts.sessions import signed_in_at
from hitlchat.gate.actor import Actor


def actor_of(request: HttpRequest) -> Actor:
    """Known by their session, with when they gave their password for it last."""
    user = person(request)
    return Actor(user.pk, "session", signed_in_at=signed_in_at(request.session), name=user.get_username())
