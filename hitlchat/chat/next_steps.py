"""What administrators of a new installation do after the first approval: a model, a server, a client."""

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from hitlchat.accounts.access import person
from hitlchat.accounts.models import Token, TokenKind
from hitlchat.accounts.preferences import A_YEAR
from hitlchat.accounts.roles import may_administer
from hitlchat.agent.model_client import uses_demo
from hitlchat.agent.models import ModelEndpoint
from hitlchat.gate.models import Decision, Verdict
from hitlchat.upstreams.models import UpstreamServer

DISMISSED: Final = "hitlchat_next_steps"


def left(request: HttpRequest) -> tuple[str, ...]:
    """Return which of model, server and client are still to be connected; none where the list is not shown."""
    if DISMISSED in request.COOKIES or not may_administer(person(request)):
        return ()
    if not Decision.objects.filter(verdict=Verdict.APPROVE).exists():
        return ()
    done = {
        "model": not uses_demo() or ModelEndpoint.objects.filter(removed_at=None).exists(),
        "server": UpstreamServer.objects.exists(),
        "client": Token.objects.filter(kind=TokenKind.MCP).exists(),
    }
    return tuple(step for step, is_done in done.items() if not is_done)


@login_required
@require_POST
def dismiss(request: HttpRequest) -> HttpResponse:
    """Hide the list in this browser."""
    response = redirect("chat")
    response.set_cookie(
        DISMISSED, "dismissed", max_age=A_YEAR, secure=request.is_secure(), httponly=True, samesite="Lax"
    )
    return response
