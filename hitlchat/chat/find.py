"""Finding by Ctrl+K: the pages that a person may open, their conversations, and tools."""

from typing import Final

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_author
from hitlchat.agent import conversations, search
from hitlchat.agent.attachments import keeping
from hitlchat.chat import pages
from hitlchat.gate.models import Tool

MOST: Final = 8
LONGEST: Final = 200


# Name and address.
Hit = tuple[object, str]


@login_required
@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """List what the words find, by kind; without words the pages and the latest conversations."""
    user, text = person(request), request.GET.get("q", "").strip()[:LONGEST]
    groups = (
        (_("Conversations"), _conversations(user, text)),
        (_("Tools"), _tools(user, text)),
        (_("Pages"), _pages(user, text)),
    )
    return render(request, "chat/_found.html", {"groups": [each for each in groups if each[1]], "text": text})


def _conversations(user: User, text: str) -> list[Hit]:
    rows = conversations.own(user).exclude(pk__in=keeping.only_drafts().filter(owner=user).values("pk"))
    found = search.matching(rows, text) if text else rows
    return [(str(each), reverse("conversation", args=[each.pk])) for each in found[:MOST]]


def _tools(user: User, text: str) -> list[Hit]:
    """Tools that the person can open: authored ones in the Studio."""
    if not text or not may_author(user):
        return []
    named = Q(name__icontains=text) | Q(title__icontains=text)
    rows = Tool.objects.filter(named, script__isnull=False).order_by("name")
    return [(each.name, reverse("tool", args=[each.name])) for each in rows[:MOST]]


def _pages(user: User, text: str) -> list[Hit]:
    wanted = search.words(text)
    # A sign that is no word finds nothing, as it does among conversations.
    if text and not wanted:
        return []
    found = (each for each in pages.open_to(user) if all(word in each.name.casefold() for word in wanted))
    return [(each.name, reverse(each.url)) for each in found]
