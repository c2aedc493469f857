"""Conversations to read, on pages where nothing can be done: shared ones, and those of agents for whom they work."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from hitlchat.accounts.access import person
from hitlchat.agent import conversations
from hitlchat.agent.attachments import keeping
from hitlchat.agent.models import Conversation
from hitlchat.base.visible import see
from hitlchat.chat import layout, transcript_view
from hitlchat.gate.actor import actor_of
from hitlchat.gate.models import delegation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def share(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Show its owner what colleagues would see; then begin to share it, or end that."""
    own = get_object_or_404(conversations.own(person(request)), pk=conversation_id)
    if request.method == "POST":
        wanted = conversations.share if request.POST.get("shared") == "1" else conversations.unshare
        wanted(own, actor_of(request))
        return redirect("share-conversation", own.pk)
    link = request.build_absolute_uri(reverse("shared", args=[own.share])) if own.share else ""
    return render(request, "chat/share.html", {"link": link, **_context(own)})


@login_required
@require_safe
def shared(request: HttpRequest, link: UUID) -> HttpResponse:
    return render(request, "chat/shared.html", _context(_behind(link)))


def of_agent(request: HttpRequest, conversation: Conversation) -> HttpResponse:
    """Show what an agent did to the person for whom it works; it is stopped and answered where it was called."""
    top = delegation.root(conversation.pk)
    shown = {"top": conversations.of(person(request)).filter(pk=top, call=None).first()}
    through = [see(each["tool"]) for each in delegation.agents(conversation.pk)]
    return render(request, "chat/agent.html", shown | {"agents": through, **_context(conversation)})


@login_required
@require_safe
def earlier(request: HttpRequest, link: UUID, before: int) -> HttpResponse:
    """The messages before place `before`."""
    return render(request, "chat/_shared_turns.html", _context(_behind(link), before))


@login_required
@require_safe
def attachment(_request: HttpRequest, link: UUID, attachment_id: UUID) -> HttpResponse:
    """Return a file of a message that is shown."""
    return keeping.fetched(get_object_or_404(keeping.shared(_behind(link)), pk=attachment_id))


def _behind(link: UUID) -> Conversation:
    found = conversations.shared(link)
    if found is None:
        raise Http404
    return found


def _context(conversation: Conversation, before: int | None = None) -> dict[str, Any]:
    messages, more = transcript_view.messages(conversation.pk, before)
    return {"section": "chat", "conversation": conversation, "messages": layout.lay_out(messages), "earlier": more}
