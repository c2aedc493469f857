"""What the page of a server says of signing in there."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hitlchat.upstreams import values
from hitlchat.upstreams.models import ServerState, SignIn, Transport, UpstreamServer, origin_of
from hitlchat.upstreams.risk.server import is_privileged


@dataclass(frozen=True)
class Scope:
    """One right. `privileged`: it reaches far beyond a single task."""

    name: str
    privileged: bool


@dataclass(frozen=True)
class Shown:
    """`state`: none (nobody is signed in), fine, or broken; `why` says why it is broken."""

    state: str
    why: str = ""
    who: str = ""
    at: datetime | None = None
    host: str = ""
    scopes: tuple[Scope, ...] = ()
    lacking: tuple[Scope, ...] = ()
    expires_at: datetime | None = None
    renews: bool = False
    registration: str = ""
    last_error: str = ""


def block(server: UpstreamServer) -> dict[str, Any]:
    """The context of servers/sign_in/_block.html, beside `server`; `sign_in` is None where nobody could sign in."""
    return {"asks": server.state == ServerState.SIGN_IN, "sign_in": _shown(server)}


def scopes_of(names: str) -> tuple[Scope, ...]:
    """Of rights as OAuth writes them, with spaces between."""
    return tuple(Scope(name, is_privileged(name)) for name in dict.fromkeys(names.split()))


def _shown(server: UpstreamServer) -> Shown | None:
    if server.transport == Transport.STDIO:
        return None
    if any(each.name.lower() == "authorization" for each in values.read(server.headers)):
        return None
    kept = SignIn.objects.select_related("signed_in_by").filter(pk=server.pk).first()
    if kept is None:
        return Shown("none")
    if not kept.mark:
        return Shown("none", last_error=kept.last_error, host=kept.issuer_host)
    return _signed_in(kept, server)


def _signed_in(kept: SignIn, server: UpstreamServer) -> Shown:
    moved = kept.origin != origin_of(server.url)
    who = kept.signed_in_by
    return Shown(
        "broken" if kept.problem or moved else "fine",
        why=f"It was for {kept.origin}, and the server has another address now." if moved else kept.problem,
        who=(who.get_full_name() or who.get_username()) if who else "someone who has no account here any more",
        at=kept.signed_in_at,
        host=kept.issuer_host,
        scopes=scopes_of(kept.scopes_granted),
        lacking=scopes_of(kept.lacking),
        expires_at=kept.expires_at,
        renews=kept.renews,
        registration=kept.get_registration_display(),
        last_error=kept.last_error,
    )
