"""The gallery as somebody looks through it: what is wanted, and what fits."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import QueryDict

from hitlchat.upstreams.gallery import entries
from hitlchat.upstreams.gallery.entry import AUTHS, CATEGORIES, KINDS, TAGS, Entry

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
