"""Well-known servers to start from, as remote.json, local.json and words.json describe them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from django.http import QueryDict
from django.utils.translation import gettext, gettext_noop

from hitlchat.base.sentences import translatable, translated_parts
from hitlchat.secrets import references
from hitlchat.secrets.values import Value
from hitlchat.upstreams.models import Transport, Trust
from hitlchat.upstreams.risk.fingerprint import Connection
from hitlchat.upstreams.server_draft import ServerDraft


def _read(name: str) -> Any:
    return json.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))


AUTHS: Final[dict[str, str]] = {
    "oauth": "OAuth",
    "bearer": gettext_noop("Token"),
    "api-key": gettext_noop("API key"),
    "none": gettext_noop("No sign-in"),
}
KINDS: Final[dict[str, str]] = {
    "remote": gettext_noop("On the internet"),
    "local": gettext_noop("A program on this machine"),
}
_WORDS: Final[dict[str, Any]] = _read("words.json")
# In the order in which pages show them.
CATEGORIES: Final[tuple[str, ...]] = tuple(_WORDS["categories"])
TAGS: Final[tuple[str, ...]] = tuple(_WORDS["tags"])


@dataclass(frozen=True)
class Entry:
    """`setup`: the steps before and while connecting, in sentences. `privileges`: what it can do to what is yours.
    `draft` is to be looked over, completed and saved by a person; its headers and variables hold references such as
    `${GITHUB_TOKEN}`, never values.
    """

    id: str
    title: str
    maker: str
    summary: str
    category: str
    tags: tuple[str, ...]
    auth: str
    setup: tuple[str, ...]
    privileges: str
    draft: ServerDraft

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Entry":
        """Raises: KeyError, TypeError, a member is missing, or is none"""
        about = {name: given[name] for name in ("id", "title", "maker", "summary", "category", "auth", "privileges")}
        reached = {name: value for name, value in given.items() if name not in {*about, "tags", "setup"}}
        for name in ("headers", "env"):
            # Only a value that refers to a variable is a secret.
            pairs = reached.get(name, {}).items()
            reached[name] = tuple(Value(key, text, secret="${" in text) for key, text in pairs)
        reached["args"] = tuple(reached.get("args", ()))
        draft = ServerDraft(name=given["id"], gallery_entry=given["id"], **reached)
        setup = [*given.get("setup", ())]
        if wanted := [name for each in (*draft.headers, *draft.env) for name in references.names(each.value or "")]:
            listed = " and ".join(wanted)
            setup.append(
                translatable(f"Set {listed} in this server's environment, or enter the value when you connect.")
            )
        if given["auth"] == "oauth":
            maker = given["maker"]
            setup.append(translatable(f"Save the server, then sign in at {maker} when its page asks for it."))
        if launcher := _WORDS["launchers"].get(draft.command):
            setup.append(launcher)
        return cls(**about, tags=tuple(given["tags"]), setup=tuple(setup), draft=draft)

    @property
    def kind(self) -> str:
        return "local" if self.draft.transport == Transport.STDIO else "remote"

    @property
    def address(self) -> str:
        return self.draft.command_line if self.kind == "local" else self.draft.url

    @property
    def kind_words(self) -> str:
        return KINDS[self.kind]

    @property
    def auth_words(self) -> str:
        return AUTHS[self.auth]

    @property
    def by_vendor(self) -> bool:
        return self.draft.trust == Trust.VENDOR

    def is_where(self, draft: ServerDraft) -> bool:
        """Return whether `draft` still leads to this server, with no more filled in than the entry leaves open."""
        if draft.transport != self.draft.transport:
            return False
        if self.kind == "remote":
            return _identity(draft) == _identity(self.draft)
        own, given = self.draft.args, draft.args
        # An argument that refers to a variable may be replaced, but not by an option, which could do anything.
        fits = len(own) == len(given) and all(
            one == other or ("${" in one and other[:1] not in {"", "-"}) for one, other in zip(own, given, strict=True)
        )
        names = {each.name for each in self.draft.env}
        return fits and draft.command == self.draft.command and names >= {each.name for each in draft.env}


@dataclass(frozen=True)
class Wanted:
    """Filters. Empty ones narrow nothing; all others have to fit at once, but of the tags only one."""

    q: str = ""
    category: str = ""
    kind: str = ""
    auth: str = ""
    tags: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return self != Wanted()

    def fits(self, entry: Entry) -> bool:
        return (
            self.category in {"", entry.category}
            and self.kind in {"", entry.kind}
            and self.auth in {"", entry.auth}
            and (not self.tags or not set(self.tags).isdisjoint(entry.tags))
            and all(word in _searched(entry) for word in self.q.lower().split())
        )


ALL: Final[tuple[Entry, ...]] = tuple(
    sorted(map(Entry.from_json, [*_read("remote.json"), *_read("local.json")]), key=lambda each: each.title.lower())
)
_BY_ID: Final = {entry.id: entry for entry in ALL}
_HOSTS: Final = {urlsplit(entry.draft.url).hostname for entry in ALL if entry.draft.url}


def find(entry_id: str) -> Entry | None:
    return _BY_ID.get(entry_id)


def vouched(draft: ServerDraft, entry_id: str) -> ServerDraft:
    """Return `draft` with the trust that it deserves, and with its entry while it still leads where that does."""
    entry = find(entry_id)
    if entry and entry.is_where(draft):
        return replace(draft, trust=entry.draft.trust, gallery_entry=entry_id)
    return replace(draft, trust=_trust_in(draft.url).value, gallery_entry="")


def wanted(query: QueryDict) -> Wanted:
    """Return the filters of a query; a value that no filter has narrows nothing."""
    return Wanted(
        q=query.get("q", "").strip().replace("\x00", "")[:100],
        category=_one(query, "category", CATEGORIES),
        kind=_one(query, "kind", KINDS),
        auth=_one(query, "auth", AUTHS),
        tags=tuple(tag for tag in TAGS if tag in query.getlist("tag")),
    )


def found(filters: Wanted) -> list[Entry]:
    return sorted(filter(filters.fits, ALL), key=lambda entry: CATEGORIES.index(entry.category))


def _one(query: QueryDict, name: str, choices: Iterable[str]) -> str:
    given = query.get(name, "")
    return given if given in choices else ""


def _identity(draft: ServerDraft) -> dict[str, Any] | None:
    try:
        return Connection(cast("Any", draft.transport), url=draft.url).identity()
    except ValueError:
        return None


def _searched(entry: Entry) -> str:
    texts = (entry.summary, entry.category)
    here = (*map(gettext, texts), *map(translated_parts, entry.tags))
    return " ".join((entry.title, entry.maker, entry.address, *texts, *entry.tags, *here)).lower()


def _trust_in(url: str) -> Trust:
    """Return the trust in an address that was typed in. A host of the gallery counts for something only over https."""
    try:
        parts = urlsplit(url)
        is_known = parts.scheme.lower() == "https" and parts.hostname in _HOSTS and parts.port in {None, 443}
    except ValueError:
        return Trust.UNKNOWN
    return Trust.KNOWN_HOST if is_known else Trust.UNKNOWN
