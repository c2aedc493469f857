"""Well-known servers to start from, of vendors and communities.

Their addresses are checked as of November 2026, against what their makers publish, and never contacted until someone
connects. Nothing of this is fetched: the files beside this module are all there is.
"""

import json
from pathlib import Path
from urllib.parse import urlsplit

from hitlchat.upstreams.drafts import ServerDraft
from hitlchat.upstreams.gallery.entry import Entry
from hitlchat.upstreams.models import Trust

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
    """Of an address that was typed in. A host of the gallery counts for something only over https."""
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
