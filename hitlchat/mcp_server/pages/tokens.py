"""A person's own tokens: listed, made, revoked. The text of one is in the answer to the POST that made it, only."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.models import TokenKind
from hitlchat.accounts.people import person
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import personal
from hitlchat.mcp_server.pages import connect_clients
from hitlchat.mcp_server.pages.connect import address
from hitlchat.mcp_server.pages.tokens_form import TokenForm
from hitlchat.mcp_server.pages.tokens_list import listed


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    user = person(request)
    form = TokenForm(user, request.POST if request.method == "POST" else None)
    if not form.is_bound:
        return _page(request, form)
    if not form.is_valid():
        return _page(request, form, status=422)
    session = Actor(user.pk, "session")
    secret = personal.make(user, form.wanted, session, form.cleaned_data["name"], form.expires_at, **form.limits)
    url = address(request)
    made = {
        "secret": secret,
        "name": form.cleaned_data["name"],
        "is_for_mcp": form.wanted == TokenKind.MCP,
        "clients": connect_clients.clients(url, secret),
        "url": url,
    }
    return render(request, "mcp/made.html", made)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    user = person(request)
    try:
        found = personal.one(user, token_id)
        if request.method == "POST":
            withdrawn = personal.revoke(user, token_id, Actor(user.pk, "session"))
            messages.success(request, _told(found.token.name or f"Token {token_id}", withdrawn))
            return redirect("mcp:tokens")
    except personal.NoSuchToken:
        raise Http404("You have no such token.") from None
    return render(request, "mcp/revoke.html", {"held": found, "waiting": personal.waiting(found.token)})


def _told(name: str, withdrawn: int) -> str:
    more = "" if not withdrawn else f" {withdrawn} call{' was' if withdrawn == 1 else 's were'} withdrawn."
    return f"{name} is revoked.{more}"


def _page(request: HttpRequest, form: TokenForm, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {
        "form": form,
        "held": listed(person(request)),
        "section": "tokens",
        "told": [str(each) for each in messages.get_messages(request)],
        "inbox_seconds": settings.MCP_INBOX_SECONDS,
    }
    return render(request, "mcp/tokens.html", context, status=status)
