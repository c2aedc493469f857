"""Test connection: with a client of its own, whatever becomes of the live one."""

from asgiref.sync import async_to_sync

from hitlchat.upstreams import drafts, reaching
from hitlchat.upstreams.around import around
from hitlchat.upstreams.drafts import ServerDraft
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.signing_in import holding
from hitlchat.upstreams.wire import Trial, try_connect


def attempt(server: UpstreamServer) -> Trial:
    """Connect to `server`, a row or one that is not saved yet, read its list of tools, and disconnect.

    May take a minute, and never raises for the server's sake. What is secret is masked in all that it says.
    """
    try:
        spec = reaching.spec_of(server)
    except reaching.Unusable as error:
        return Trial(str(error))
    return async_to_sync(try_connect)(spec, around(), auth=holding.credential(server))


def unsaved(draft: ServerDraft, standing: UpstreamServer | None = None) -> UpstreamServer:
    """What `draft` would be kept as; secrets that are not given again are those of `standing`. BadServer."""
    return UpstreamServer(**drafts.columns(draft, standing))
