"""A person's own tokens: listed, made, revoked; and for administrators, at which MCP clients a person sits.

The text of a token is in the answer to the POST that made it, only.
"""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from hitlchat.accounts.access import administrators_only, person
from hitlchat.accounts.models import TokenKind
from hitlchat.accounts.roles import may_administer
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import personal
from hitlchat.mcp_server.pages import connect
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
    session, name = Actor(user.pk, "session"), form.cleaned_data["name"]
    by = session if form.attended else None
    secret = personal.make(user, form.wanted, session, name, form.expires_at, attended_by=by, **form.limits)
    url = address(request)
    made = {
        "secret": secret,
        "name": name,
        "is_for_mcp": form.wanted == TokenKind.MCP,
        "clients": connect.clients(url, secret),
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


@administrators_only("Whether a person sits at an MCP client is for administrators to say.")
@require_http_methods(["POST"])
def mark(request: HttpRequest, token_id: int) -> HttpResponse:
    """`attended`: 1 or 0."""
    said = request.POST.get("attended")
    if said not in ("0", "1"):
        return HttpResponseBadRequest("attended: expected 1 or 0.")
    try:
        token = personal.mark(token_id, Actor(person(request).pk, "session"), attended=said == "1")
    except personal.NoSuchToken:
        raise Http404("There is no such MCP token.") from None
    except personal.OnlyAdministrators as error:
        raise PermissionDenied(str(error)) from error
    name = token.name or f"Token {token_id}"
    effect = (
        "The word of its client counts from now on." if token.attended else "The word of its client counts no more."
    )
    messages.success(request, f"{name} of {token.user.get_username()}: {effect}")
    return redirect("mcp:tokens")


def _told(name: str, withdrawn: int) -> str:
    more = "" if not withdrawn else f" {withdrawn} call{' was' if withdrawn == 1 else 's were'} withdrawn."
    return f"{name} is revoked.{more}"


def _page(request: HttpRequest, form: TokenForm, status: int = 200) -> HttpResponse:
    user = person(request)
    context: dict[str, Any] = {
        "form": form,
        "held": listed(user),
        "clients": list(personal.of_clients()) if may_administer(user) else None,
        "highest_said": settings.HITL_ELICITATION_MAX_RISK,
        "section": "tokens",
        "told": [str(each) for each in messages.get_messages(request)],
        "inbox_seconds": settings.MCP_INBOX_SECONDS,
    }
    return render(request, "mcp/tokens.html", context, status=status)
