"""Access to upstream servers: who may see and change what is offered of them."""

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from hitlchat.accounts.access import administrators_only
from hitlchat.accounts.roles import may_administer
from hitlchat.base.problems import Forbidden
from hitlchat.gate.actor import Actor
from hitlchat.upstreams.models import UpstreamServer


class OnlyAdministrators(Forbidden):
    """Servers, and what is exposed of them, are for administrators."""

    def __init__(self) -> None:
        super().__init__("Only an administrator may change upstream servers and what is exposed of them.")


class OnlyPeople(Forbidden):
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


administrator_only = administrators_only("Only administrators may see and change upstream servers.")


def server_named(name: str) -> UpstreamServer:
    """The server of this name, or the page that says there is none."""
    return get_object_or_404(UpstreamServer, name=name)
