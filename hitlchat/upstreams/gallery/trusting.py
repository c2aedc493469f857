"""Who vouches for a server: the gallery, as far as the server is what its entry says. Never what was posted."""

from dataclasses import replace

from hitlchat.upstreams.drafts import ServerDraft
from hitlchat.upstreams.gallery import entries


def vouched(draft: ServerDraft, entry_id: str) -> ServerDraft:
    """`draft` with the trust that it deserves, and with its entry while it still leads where that does."""
    entry = entries.find(entry_id)
    kept = entry_id if entry and entry.is_where(draft) else ""
    return replace(draft, trust=entries.trust_of(kept, draft).value, gallery_entry=kept)
