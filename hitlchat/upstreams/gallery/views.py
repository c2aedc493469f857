"""The gallery: well-known servers to start from."""

from collections import defaultdict
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from hitlchat.upstreams.access import administrator_only
from hitlchat.upstreams.drafts import draft_of
from hitlchat.upstreams.gallery import entries, finding
from hitlchat.upstreams.gallery.entry import AUTHS, CATEGORIES, KINDS, TAGS, Entry
from hitlchat.upstreams.models import UpstreamServer


@dataclass(frozen=True)
class Card:
    """One entry. `servers`: the names of those that are this one already; `startable`: a program may be started."""

    entry: Entry
    servers: tuple[str, ...]
    startable: bool


@administrator_only
@require_GET
def gallery(request: HttpRequest) -> HttpResponse:
    asked = finding.wanted(request.GET)
    shown = finding.found(asked)
    known = _known()
    programs = bool(settings.MCP_ALLOW_STDIO)
    context = {
        "section": "servers", "wanted": asked, "total": len(entries.ALL),
        "cards": [Card(each, tuple(known[each.id]), programs or each.kind == "remote") for each in shown],
        "categories": CATEGORIES, "kinds": KINDS.items(), "auths": AUTHS.items(), "tags": TAGS,
    }  # fmt: skip
    return render(request, "servers/gallery/gallery.html", context)


def _known() -> dict[str, list[str]]:
    """The names of the servers that are in the gallery, by its ids."""
    found: dict[str, list[str]] = defaultdict(list)
    for server in UpstreamServer.objects.exclude(gallery_entry=""):
        entry = entries.find(server.gallery_entry)
        # One that leads elsewhere by now is another one.
        if entry and entry.is_where(draft_of(server)):
            found[entry.id].append(server.name)
    return found
