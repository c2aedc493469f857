"""The pages that people open by name, in the bar and by Ctrl+K, which finds conversations, tools and documents as well.

A new page is named here and routed in urls.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from hitlchat.accounts.access import person, signed_in
from hitlchat.accounts.roles import may_administer, may_author
from hitlchat.agent import conversations, search
from hitlchat.chat import documents
from hitlchat.gate.models import Tool

MOST: Final = 8
LONGEST: Final = 200

# Name and address.
Hit = tuple[object, str]


@dataclass(frozen=True)
class Page:
    """`icon`: it is in the bar, by `label`; a `lesser` one moves to its menu where the window is narrow."""

    name: Any
    url: str
    may_open: Callable[[User], bool] = lambda _user: True
    icon: str = ""
    lesser: bool = False
    label: str = ""

    @property
    def section(self) -> str:
        """What a view calls its part of the site, to mark it in the bar."""
        return self.url.partition(":")[0]


ALL: Final = (
    Page(_("Chat"), "chat", icon="chat"),
    Page(_("Inbox"), "approvals", icon="inbox"),
    Page(_("History"), "history", icon="list"),
    Page(_("Tool Studio"), "studio", may_author, icon="tool", label="Studio"),
    Page(_("Servers"), "servers:list", may_administer, icon="server", lesser=True),
    Page(_("Policies"), "policies", icon="shield", lesser=True),
    Page(_("Insights"), "insights", icon="chart", lesser=True),
    Page(_("Record"), "record:page", may_administer, icon="seal", lesser=True),
    Page(_("People"), "people:list", may_administer, icon="people", lesser=True),
    Page(_("Grants"), "grants"),
    Page(_("Attention checks"), "attention-checks"),
    Page(_("Server questions"), "servers:questions"),
    Page(_("Notices"), "notices:page"),
    Page(_("Your account"), "people:account"),
    Page(_("Documentation"), "documents"),
    Page(_("Your tokens"), "mcp:tokens"),
    Page(_("Connect a client"), "mcp:connect"),
    Page(_("Inspector"), "mcp:inspector"),
    Page(_("New tool"), "new-tool", may_author),
    Page(_("Agents"), "agents:list", may_author),
    Page(_("Import tools"), "import-tools", may_author),
    Page(_("Add server"), "servers:new", may_administer),
    Page(_("Server gallery"), "servers:gallery", may_administer),
    Page(_("Composed tools"), "servers:drawer", may_administer),
    Page(_("Models"), "models:list", may_administer),
    Page(_("Tool sets"), "tool-sets:list", may_administer),
    Page(_("Presets"), "presets:list", may_administer),
    Page(_("Changes to tools, people and settings"), "history-changes", may_administer),
    Page(_("Texts for models"), "texts", may_administer),
    Page(_("Sandbox"), "sandbox-status", may_administer),
)


def open_to(user: User) -> list[Page]:
    return [each for each in ALL if each.may_open(user)]


@signed_in.reads
def find(request: HttpRequest) -> HttpResponse:
    """List what the words find, by kind; without words the pages and the latest conversations."""
    user, text = person(request), request.GET.get("q", "").strip()[:LONGEST]
    rows = conversations.listed(user)
    talks = (search.matching(rows, text) if text else rows)[:MOST]
    groups = (
        (_("Conversations"), [(str(each), reverse("conversation", args=[each.pk])) for each in talks]),
        (_("Tools"), _tools(user, text)),
        (_("Pages"), _pages(user, text)),
        (_("Documentation"), _documents(text)),
    )
    return render(request, "chat/_found.html", {"groups": [each for each in groups if each[1]], "text": text})


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
    found = (each for each in open_to(user) if all(word in each.name.casefold() for word in wanted))
    return [(each.name, reverse(each.url)) for each in found]


def _documents(text: str) -> list[Hit]:
    wanted = search.words(text)
    return list(documents.find(wanted)[:MOST]) if wanted else []
