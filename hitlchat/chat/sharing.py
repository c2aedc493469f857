"""A conversation that colleagues may read: its link, and the page that it leads to, on which nothing can be done."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from hitlchat.accounts.access import person
from hitlchat.agent import conversations
from hitlchat.agent.models import Conversation
from hitlchat.chat import transcript_view
from hitlchat.gate.actor import actor_of


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def share(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Show its owner what colleagues would see; then begin to share it, or end that."""
    own = get_object_or_404(conversations.of(person(request)), pk=conversation_id)
    if request.method == "POST":
        wanted = conversations.share if request.POST.get("shared") == "1" else conversations.unshare
        wanted(own, actor_of(request))
        return redirect("share-conversation", own.pk)
    link = request.build_absolute_uri(reverse("shared", args=[own.share])) if own.share else ""
    return render(request, "chat/share.html", {"link": link, **_context(own)})


@login_required
@require_GET
def shared(request: HttpRequest, link: UUID) -> HttpResponse:
    return render(request, "chat/shared.html", _context(_behind(link)))


@login_required
@require_GET
def earlier(request: HttpRequest, link: UUID, before: int) -> HttpResponse:
    """The messages before place `before`."""
    return render(request, "chat/_shared_turns.html", _context(_behind(link), before))


def _behind(link: UUID) -> Conversation:
    found = conversations.shared(link)
    if found is None:
        raise Http404
    return found


def _context(conversation: Conversation, before: int | None = None) -> dict[str, Any]:
    messages, more = transcript_view.messages(conversation.pk, before)
    return {"section": "chat", "conversation": conversation, "messages": messages, "earlier": more}
