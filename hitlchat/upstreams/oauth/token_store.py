"""The tokens of a sign-in in the database, where all processes find them, and where one at a time renews them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now
from django.utils import timezone

from hitlchat.base.canonical import storable
from hitlchat.base.lease import SLACK
from hitlchat.upstreams.models import SignIn
from hitlchat.upstreams.oauth import clients, sealed
from hitlchat.upstreams.oauth.clients import Client
from hitlchat.upstreams.oauth.token_endpoint import Tokens

# Longer than a request for newer ones can take.
LEASE = timedelta(seconds=30)
SOON = timedelta(seconds=60)
MOST_LACKING = 1000


@dataclass(frozen=True, repr=False)
class Held:
    """A generation of tokens. `spoilt`: why they are of no use any more."""

    tokens: Tokens
    generation: int
    renewed_at: datetime
    spoilt: str
    client: Client
    endpoint: str
    resource: str

    @property
    def is_due(self) -> bool:
        """It runs out soon: at a fifth of its life or a minute before its end, whichever is later."""
        if (ends := self.tokens.expires_at) is None:
            return False
        return timezone.now() >= ends - min(SOON, (ends - self.renewed_at) / 5)

    @property
    def is_over(self) -> bool:
        return self.tokens.expires_at is not None and timezone.now() >= self.tokens.expires_at


def read(server_id: UUID, origin: str) -> Held | None:
    """None: nobody is signed in. Unreadable."""
    kept = SignIn.objects.filter(pk=server_id).exclude(mark="").first()
    if kept is None:
        return None
    if kept.origin != origin:
        raise sealed.Unreadable("The sign-in is for another address than the server has now: sign in again.")
    access, refresh = ("", "") if kept.problem else sealed.unseal(kept.tokens, "tokens", server_id, origin)
    return Held(
        Tokens(access, refresh, kept.scopes_granted, kept.expires_at),
        kept.generation,
        kept.renewed_at or timezone.now(),
        kept.problem,
        clients.of(kept),
        kept.token_endpoint,
        kept.resource,
    )


def columns(tokens: Tokens, server_id: UUID, origin: str) -> dict[str, Any]:
    """How tokens are kept."""
    return {
        "tokens": sealed.seal([tokens.access, tokens.refresh], "tokens", server_id, origin),
        "renews": bool(tokens.refresh),
        "expires_at": tokens.expires_at,
        "renewed_at": timezone.now(),
        "renewing_by": "",
        "renewing_until": None,
        "problem": "",
    }


def claim(server_id: UUID, generation: int, who: str) -> bool:
    """Whether `who` is the one to renew this generation: refresh tokens are often good for a single use."""
    row = SignIn.objects.filter(pk=server_id, generation=generation, tokens__gt="")
    free = row.filter(renewing_until=None) | row.filter(renewing_until__lt=Now())
    # Further ahead than it can be: the clock was set back since.
    free |= row.filter(renewing_until__gt=Now() + LEASE + SLACK)
    return free.update(renewing_by=who, renewing_until=Now() + LEASE) == 1


def release(server_id: UUID, who: str) -> None:
    SignIn.objects.filter(pk=server_id, renewing_by=who).update(renewing_by="", renewing_until=None)


def replace(server_id: UUID, origin: str, held: Held, tokens: Tokens) -> bool:
    """Keep the next generation, unless somebody has signed in anew, or out, in the meantime."""
    row = SignIn.objects.filter(pk=server_id, generation=held.generation, origin=origin).exclude(mark="")
    granted = {} if tokens.scopes is None else {"scopes_granted": storable(tokens.scopes)}
    kept = columns(tokens, server_id, origin)
    return row.update(generation=held.generation + 1, **kept, **granted) == 1


def spoil(server_id: UUID, generation: int, why: str) -> None:
    """These tokens are of no use any more: they are forgotten. The sign-in stays what it was, for a person to renew."""
    row = SignIn.objects.filter(pk=server_id, generation=generation)
    row.update(tokens="", renews=False, problem=storable(why), renewing_by="", renewing_until=None)


def lacks(server_id: UUID, scopes: str) -> None:
    """A call was refused for want of these rights."""
    kept = SignIn.objects.filter(pk=server_id).exclude(mark="").first()
    if kept is None:
        return
    lacking = " ".join(dict.fromkeys([*kept.lacking.split(), *storable(scopes).split()]))
    if lacking != kept.lacking and len(lacking) <= MOST_LACKING:
        SignIn.objects.filter(pk=server_id, mark=kept.mark).update(lacking=lacking)
