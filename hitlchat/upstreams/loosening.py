"""What of a server only a person may set: its tools would be trusted more by it, or a credential would go elsewhere."""

from hitlchat.secrets import references
from hitlchat.upstreams.drafts import ServerDraft, draft_of
from hitlchat.upstreams.models import UpstreamServer

# They lower the risk of its tools, widen where it may be, or change what the person who approves reads of it.
_TRUSTED_BY = ("docs_url", "docs_adequate", "allow_private")
_MORE_OF_A_STANDING_ONE = ("name", "trust", "gallery_entry")
_WHERE = ("transport", "url", "command", "args")


def needs_person(draft: ServerDraft, standing: UpstreamServer | None = None) -> bool:
    """Whether a program may not make `standing`, or a new server, what `draft` says (SR-27)."""
    before = draft_of(standing) if standing else ServerDraft(draft.name)
    watched = (*_TRUSTED_BY, *(_MORE_OF_A_STANDING_ONE if standing else ()))
    if any(getattr(draft, name) != getattr(before, name) for name in watched):
        return True
    if standing and draft.enabled and not before.enabled:
        return True
    if _referred(draft) - _referred(before):
        return True
    is_elsewhere = any(getattr(draft, name) != getattr(before, name) for name in _WHERE)
    return bool(standing) and is_elsewhere and _has_credentials(before)


def _has_credentials(draft: ServerDraft) -> bool:
    return bool(_referred(draft)) or any(each.secret for each in (*draft.headers, *draft.env))


def _referred(draft: ServerDraft) -> set[str]:
    """The variables of the server's environment that are sent along."""
    given = [each.value or "" for each in (*draft.headers, *draft.env)]
    return {name for text in (draft.url, *draft.args, *given) for name in references.names(text)}
