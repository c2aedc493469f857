"""Access to upstream servers: who may see and change what is offered of them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import Actor
from hitlchat.upstreams.models import UpstreamServer


class OnlyAdministrators(Exception):
    """Servers, and what is exposed of them, are for administrators."""

    def __init__(self) -> None:
        super().__init__("Only an administrator may change upstream servers and what is exposed of them.")


class OnlyPeople(Exception):
    """A program's credential tried to make a tool ask less often, or to accept something; that is for people."""

    def __init__(self) -> None:
        super().__init__(
            "Only a person may accept a change, or let a tool do more or ask less: sign in, or use an approver token."
        )


def require_administrator(actor: Actor) -> None:
    """OnlyAdministrators. The system itself is none: nothing is exposed by itself."""
    user = User.objects.filter(pk=actor.user_id).first() if actor.user_id is not None else None
    if user is None or not may_administer(user):
        raise OnlyAdministrators


def require_person(actor: Actor) -> None:
    """OnlyPeople."""
    if not actor.is_person:
        raise OnlyPeople


View = Callable[..., HttpResponseBase]


def administrator_only(view: View) -> View:
    """Asks to sign in first; answers 403 to everyone who is no administrator."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            # What asks for a part of a page must not get the page for signing in as that part.
            is_part = request.headers.get("HX-Request") == "true"
            return HttpResponse("Sign in again.", status=401) if is_part else redirect_to_login(request.get_full_path())
        if not may_administer(person(request)):
            raise PermissionDenied("Only administrators may see and change upstream servers.")
        return view(request, *args, **kwargs)

    return guarded


def server_named(name: str) -> UpstreamServer:
    """The server of this name, or the page that says there is none."""
    return get_object_or_404(UpstreamServer, name=name)
