"""How to connect an MCP client, to be copied: with this installation's address, and a new token if one is wanted."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.models import TokenKind
from hitlchat.accounts.people import person
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import personal
from hitlchat.mcp_server.listing import visible
from hitlchat.mcp_server.pages.connect_clients import clients
from hitlchat.mcp_server.serving import PATH
from hitlchat.mcp_server.tokens import Access
from hitlchat.upstreams import exposure

NAME = "Made on the Connect page"
VALID = timedelta(days=90)
UNKNOWN = "<token>"


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """POST makes the token, whose text is in this one answer."""
    user = person(request)
    secret = _made(user) if request.method == "POST" else ""
    url = address(request)
    context = {
        "url": url,
        "secret": secret,
        "name": NAME,
        "days": VALID.days,
        "clients": clients(url, secret or UNKNOWN),
        "count": visible(Access(0, user.pk, user.get_username())).count(),
        "mode": exposure.standing().mode,
        "highest_said": settings.HITL_ELICITATION_MAX_RISK,
        "inbox_seconds": settings.MCP_INBOX_SECONDS,
    }
    return render(request, "mcp/connect.html", context)


def _made(user: User) -> str:
    return personal.make(user, TokenKind.MCP, Actor(user.pk, "session"), NAME, timezone.now() + VALID)


def address(request: HttpRequest) -> str:
    """Of the MCP server, under the name by which this browser knows it."""
    scheme = "https" if settings.HTTPS else request.scheme
    return f"{scheme}://{request.get_host()}{PATH}"
