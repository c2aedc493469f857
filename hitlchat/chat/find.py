"""Finding by Ctrl+K: the pages that a person may open, their conversations, and tools."""

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from hitlchat.accounts.access import person
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.agent import conversations, search
from hitlchat.gate.models import Tool

MOST: Final = 8
LONGEST: Final = 200
FOR_ALL: Final = (
    ("Chat", "chat"),
    ("Inbox", "approvals"),
    ("Grants", "grants"),
    ("History", "history"),
    ("Policies", "policies"),
    ("Insights", "insights"),
    ("Questions of servers", "servers:questions"),
    ("Notices", "notices:page"),
    ("Your account", "people:account"),
    ("Your tokens", "mcp:tokens"),
    ("Connect a client", "mcp:connect"),
    ("Inspector", "mcp:inspector"),
)
FOR_AUTHORS: Final = (
    ("Tool Studio", "studio"),
    ("New tool", "new-tool"),
    ("Import tools", "import-tools"),
    ("Tool Python", "tool-python"),
)
FOR_ADMINISTRATORS: Final = (
    ("Servers", "servers:list"),
    ("Add server", "servers:new"),
    ("Gallery of servers", "servers:gallery"),
    ("Composed tools", "servers:drawer"),
    ("Changes of tools, people and settings", "history-changes"),
    ("Record", "record:page"),
    ("People", "people:list"),
    ("Texts for models", "texts"),
    ("Sandbox", "sandbox-status"),
)


@dataclass(frozen=True)
class Hit:
    name: str
    url: str


@login_required
@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """List what the words find, by kind; without words the pages and the latest conversations."""
    user, text = person(request), request.GET.get("q", "").strip()[:LONGEST]
    groups = (
        ("Conversations", _conversations(user, text)),
        ("Tools", _tools(user, text)),
        ("Pages", _pages(user, text)),
    )
    return render(request, "chat/_found.html", {"groups": [each for each in groups if each[1]], "text": text})


def _conversations(user: User, text: str) -> list[Hit]:
    rows = conversations.of(user)
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
