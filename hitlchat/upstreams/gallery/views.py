"""The gallery, as somebody looks through it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_GET

from hitlchat.upstreams.access import administrator_only
from hitlchat.upstreams.drafts import draft_of
from hitlchat.upstreams.gallery import entries
from hitlchat.upstreams.gallery.entries import AUTHS, CATEGORIES, KINDS, TAGS, Entry
from hitlchat.upstreams.models import UpstreamServer

LONGEST = 100


@dataclass(frozen=True)
class Wanted:
    """Empty ones narrow nothing; all others have to fit at once, but of the tags only one."""

    q: str = ""
    category: str = ""
    kind: str = ""
    auth: str = ""
    tags: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return self != Wanted()

    @property
    def query(self) -> str:
        """As a link says it."""
        given = [(name, value) for name in ("q", "category", "kind", "auth") if (value := getattr(self, name))]
        return urlencode([*given, *(("tag", tag) for tag in self.tags)])

    def fits(self, entry: Entry) -> bool:
        return (
            self.category in {"", entry.category}
            and self.kind in {"", entry.kind}
            and self.auth in {"", entry.auth}
            and (not self.tags or not set(self.tags).isdisjoint(entry.tags))
            and all(word in _text(entry) for word in self.q.lower().split())
        )


def wanted(query: QueryDict) -> Wanted:
    """What is no value of a filter narrows nothing."""
    return Wanted(
        q=query.get("q", "").strip().replace("\x00", "")[:LONGEST],
        category=_one(query, "category", CATEGORIES),
        kind=_one(query, "kind", KINDS),
        auth=_one(query, "auth", AUTHS),
        tags=tuple(tag for tag in TAGS if tag in query.getlist("tag")),
    )


def found(asked: Wanted) -> list[Entry]:
    """By category, in each by name."""
    fitting = [entry for entry in entries.ALL if asked.fits(entry)]
    return sorted(fitting, key=lambda entry: CATEGORIES.index(entry.category))


def _one(query: QueryDict, name: str, known: Iterable[str]) -> str:
    given = query.get(name, "")
    return given if given in known else ""


def _text(entry: Entry) -> str:
    said = (entry.title, entry.maker, entry.summary, entry.category, entry.address, *entry.tags)
    return " ".join(said).lower()


@dataclass(frozen=True)
class Card:
    """One entry. `servers`: the names of those that are this one already; `startable`: a program may be started."""

    entry: Entry
    servers: tuple[str, ...]
    startable: bool


@administrator_only
@require_GET
def gallery(request: HttpRequest) -> HttpResponse:
    asked = wanted(request.GET)
    shown = found(asked)
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
