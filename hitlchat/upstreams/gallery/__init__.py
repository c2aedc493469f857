"""Well-known servers to start from: what is known of each before anyone has connected to it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlencode, urlsplit

from django.http import QueryDict
from django.utils.translation import gettext, gettext_noop

from hitlchat.base.sentences import translatable, translated_parts
from hitlchat.secrets import references
from hitlchat.secrets.values import Value
from hitlchat.upstreams.models import Transport, Trust
from hitlchat.upstreams.risk.fingerprint import Connection
from hitlchat.upstreams.server_draft import ServerDraft

AuthKind = Literal["oauth", "bearer", "api-key", "none"]

AUTHS: dict[str, str] = {
    "oauth": "OAuth",
    "bearer": gettext_noop("Token"),
    "api-key": gettext_noop("API key"),
    "none": gettext_noop("No sign-in"),
}
KINDS: dict[str, str] = {
    "remote": gettext_noop("On the internet"),
    "local": gettext_noop("A program on this machine"),
}
CATEGORIES = (
    "Code",
    "Cloud and hosting",
    "Monitoring",
    "Data",
    "Search and web",
    "Documentation",
    "Work and planning",
    "Customers and sales",
    "Payments",
    "Design and content",
    "Files and this machine",
)
TAGS = (
    "reads only",
    "changes things",
    "analytics",
    "browser",
    "databases",
    "design",
    "documentation",
    "errors and logs",
    "files",
    "git",
    "hosting",
    "issues",
    "money",
    "people",
    "search",
)
_LAUNCHERS = {
    "npx": gettext_noop(
        "It needs Node.js: npx downloads the newest version at each start, unless you name one (package@1.2.3)."
    ),
    "uvx": gettext_noop(
        "It needs uv: uvx downloads the newest version when first started, unless you name one (package@1.2.3)."
    ),
}


@dataclass(frozen=True)
class Entry:
    """`setup`: what to do before and while connecting, in sentences. `privileges`: what it can do to what is yours.
    `headers` and `env` hold references such as `${GITHUB_TOKEN}`, never values.
    """

    id: str
    title: str
    maker: str
    summary: str
    category: str
    tags: tuple[str, ...]
    trust: str
    auth: AuthKind
    docs_url: str
    setup: tuple[str, ...]
    privileges: str
    transport: str = Transport.HTTP.value
    url: str = ""
    headers: tuple[Value, ...] = ()
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Value, ...] = ()

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Entry":
        """KeyError, TypeError: a member is missing, or is none."""
        read: dict[str, Any] = dict(given)
        for name in ("tags", "args"):
            read[name] = tuple(read.get(name, ()))
        for name in ("headers", "env"):
            read[name] = tuple(_value(*pair) for pair in read.get(name, {}).items())
        read["setup"] = (*read.get("setup", ()), *_steps(read))
        return cls(**read)

    @property
    def kind(self) -> str:
        """A key of KINDS."""
        return "local" if self.transport == Transport.STDIO else "remote"

    @property
    def address(self) -> str:
        """Return where it is, or what would be started, as a person reads it."""
        return self.draft().command_line if self.kind == "local" else self.url

    @property
    def kind_words(self) -> str:
        return KINDS[self.kind]

    @property
    def auth_words(self) -> str:
        return AUTHS[self.auth]

    @property
    def by_vendor(self) -> bool:
        return self.trust == Trust.VENDOR

    def draft(self) -> ServerDraft:
        """Return a draft, to be looked over, completed and saved by a person."""
        return ServerDraft(
            name=self.id,
            transport=self.transport,
            url=self.url,
            headers=self.headers,
            command=self.command,
            args=self.args,
            env=self.env,
            trust=self.trust,
            gallery_entry=self.id,
            docs_url=self.docs_url,
        )

    def is_where(self, draft: ServerDraft) -> bool:
        """Return whether `draft` still leads to this server and no other.

        Only what the entry leaves open was filled in.
        """
        if draft.transport != self.transport:
            return False
        if self.kind == "local":
            own = {each.name for each in self.env}
            return draft.command == self.command and _fits(self.args, draft.args) and own >= _names(draft.env)
        return _identity(draft) == _identity(self.draft())


def _steps(read: Mapping[str, Any]) -> Iterator[str]:
    """Yield what follows from how it is reached."""
    given = [*read["headers"], *read["env"]]
    if wanted := [name for value in given for name in references.names(value.value or "")]:
        listed = " and ".join(wanted)
        yield translatable(f"Set {listed} in the environment of this server, or type the value in when you connect.")
    if read["auth"] == "oauth":
        maker = read["maker"]
        yield translatable(f"Save it, then sign in at {maker} when the page of the server asks for it.")
    if launcher := _LAUNCHERS.get(read.get("command", "")):
        yield launcher


def _value(name: str, text: str) -> Value:
    """Return a value of an entry; only one that refers to a variable is a secret."""
    return Value(name, text, secret="${" in text)


def _fits(own: tuple[str, ...], given: tuple[str, ...]) -> bool:
    """An argument that refers to a variable may be replaced, but not by an option, which could do anything."""
    if len(own) != len(given):
        return False
    return all(
        one == other or ("${" in one and other[:1] not in {"", "-"}) for one, other in zip(own, given, strict=True)
    )


def _names(values: tuple[Value, ...]) -> set[str]:
    return {each.name for each in values}


def _identity(draft: ServerDraft) -> dict[str, Any] | None:
    try:
        return Connection(cast("Any", draft.transport), url=draft.url).identity()
    except ValueError:
        return None


_HERE = Path(__file__).resolve().parent


def _read(name: str) -> list[Entry]:
    return [Entry.from_json(each) for each in json.loads((_HERE / name).read_text(encoding="utf-8"))]


ALL: tuple[Entry, ...] = tuple(
    sorted([*_read("remote.json"), *_read("local.json")], key=lambda each: each.title.lower())
)
_BY_ID = {entry.id: entry for entry in ALL}
_HOSTS = {urlsplit(entry.url).hostname for entry in ALL if entry.url}


def find(entry_id: str) -> Entry | None:
    return _BY_ID.get(entry_id)


def trust_for(url: str) -> Trust:
    """Return the trust in an address that was typed in. A host of the gallery counts for something only over https."""
    try:
        parts = urlsplit(url)
        known = parts.scheme.lower() == "https" and parts.hostname in _HOSTS and parts.port in {None, 443}
    except ValueError:
        return Trust.UNKNOWN
    return Trust.KNOWN_HOST if known else Trust.UNKNOWN


def trust_of(entry_id: str, draft: ServerDraft) -> Trust:
    """The entry's own while `draft` still leads where the entry does, else that of the address alone."""
    entry = find(entry_id)
    if entry and entry.is_where(draft):
        return Trust(entry.trust)
    return trust_for(draft.url)


def vouched(draft: ServerDraft, entry_id: str) -> ServerDraft:
    """`draft` with the trust that it deserves, and with its entry while it still leads where that does."""
    entry = find(entry_id)
    kept = entry_id if entry and entry.is_where(draft) else ""
    return replace(draft, trust=trust_of(kept, draft).value, gallery_entry=kept)


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
        """Return the filters as a link says them."""
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
    """Return the filters of a query; a value that no filter has narrows nothing."""
    return Wanted(
        q=query.get("q", "").strip().replace("\x00", "")[:LONGEST],
        category=_one(query, "category", CATEGORIES),
        kind=_one(query, "kind", KINDS),
        auth=_one(query, "auth", AUTHS),
        tags=tuple(tag for tag in TAGS if tag in query.getlist("tag")),
    )


def found(asked: Wanted) -> list[Entry]:
    """Return the entries by category, in each by name."""
    fitting = [entry for entry in ALL if asked.fits(entry)]
    return sorted(fitting, key=lambda entry: CATEGORIES.index(entry.category))


def _one(query: QueryDict, name: str, known: Iterable[str]) -> str:
    given = query.get(name, "")
    return given if given in known else ""


def _text(entry: Entry) -> str:
    said, tags = (entry.summary, entry.category), entry.tags
    here = (*map(gettext, said), *map(translated_parts, tags))
    return " ".join((entry.title, entry.maker, entry.address, *said, *tags, *here)).lower()
