"""Finding by Ctrl+K: the pages that a person may open, their conversations, and tools."""

from dataclasses import dataclass
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
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.agent import conversations, search
from hitlchat.agent.attachments import keeping
from hitlchat.gate.models import Tool

MOST: Final = 8
LONGEST: Final = 200
FOR_ALL: Final = (
    (_("Chat"), "chat"),
    (_("Inbox"), "approvals"),
    (_("Grants"), "grants"),
    (_("History"), "history"),
    (_("Policies"), "policies"),
    (_("Insights"), "insights"),
    (_("Server questions"), "servers:questions"),
    (_("Notices"), "notices:page"),
    (_("Your account"), "people:account"),
    (_("Your tokens"), "mcp:tokens"),
    (_("Connect a client"), "mcp:connect"),
    (_("Inspector"), "mcp:inspector"),
)
FOR_AUTHORS: Final = (
    (_("Tool Studio"), "studio"),
    (_("New tool"), "new-tool"),
    (_("Agents"), "agents:list"),
    (_("Import tools"), "import-tools"),
    (_("Tool Python"), "tool-python"),
)
FOR_ADMINISTRATORS: Final = (
    (_("Servers"), "servers:list"),
    (_("Add server"), "servers:new"),
    (_("Server gallery"), "servers:gallery"),
    (_("Composed tools"), "servers:drawer"),
    (_("Models"), "models:list"),
    (_("Tool sets"), "tool-sets:list"),
    (_("Presets"), "presets:list"),
    (_("Changes to tools, people and settings"), "history-changes"),
    (_("Record"), "record:page"),
    (_("People"), "people:list"),
    (_("Texts for models"), "texts"),
    (_("Sandbox"), "sandbox-status"),
)


@dataclass(frozen=True)
class Hit:
    name: str
    url: str


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
    return [Hit(str(each), reverse("conversation", args=[each.pk])) for each in found[:MOST]]


def _tools(user: User, text: str) -> list[Hit]:
    """Tools that the person can open: authored ones in the Studio."""
    if not text or not may_author(user):
        return []
    named = Q(name__icontains=text) | Q(title__icontains=text)
    rows = Tool.objects.filter(named, script__isnull=False).order_by("name")
    return [Hit(each.name, reverse("tool", args=[each.name])) for each in rows[:MOST]]


def _pages(user: User, text: str) -> list[Hit]:
    for_authors = FOR_AUTHORS if may_author(user) else ()
    for_administrators = FOR_ADMINISTRATORS if may_administer(user) else ()
    wanted = search.words(text)
    # A sign that is no word finds nothing, as it does among conversations.
    if text and not wanted:
        return []
    pages = (*FOR_ALL, *for_authors, *for_administrators)
    return [Hit(name, reverse(url)) for name, url in pages if all(word in name.casefold() for word in wanted)]
