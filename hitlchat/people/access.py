"""Who may see a page about people, and what each of these pages does with what it is told."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache

from hitlchat.accounts.people import person
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import Actor

View = Callable[..., HttpResponseBase]


def administrator_only(view: View) -> View:
    """Asks to sign in first; answers 403 to everyone who is no administrator."""

    @login_required
    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not may_administer(person(request)):
            raise PermissionDenied("Only administrators may see and change people.")
        return view(request, *args, **kwargs)

    return guarded


def actor_of(request: HttpRequest) -> Actor:
    return Actor(person(request).pk, "session")


def told(request: HttpRequest) -> list[str]:
    """What was just done."""
    return [str(each) for each in messages.get_messages(request)]
