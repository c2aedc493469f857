"""What is known of a sign-in while it is on its way."""

import hashlib
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hitlchat.gate.actor import Actor
from hitlchat.upstreams.judge.server_rubric import is_privileged
from hitlchat.upstreams.sign_ins import Registration, SignInAttempt
from hitlchat.upstreams.signing_in import sealed
from hitlchat.upstreams.signing_in.clients import Client


@dataclass(frozen=True)
class Asking:
    """`user_id` and `session`: the person and the browser that must bring the answer. `document`: where this
    installation describes itself."""

    actor: Actor
    user_id: int
    session: str
    redirect_uri: str
    document: str = ""


@dataclass(frozen=True)
class Typed:
    """What an administrator enters instead of what is found out; empty where nothing is. `scopes`: None for those of
    the last time."""

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: str | None = None
    issuer: str = ""


@dataclass(frozen=True)
class Plan:
    """All that the second half needs. The `origin` is where the tokens may be sent."""

    verifier: str = field(repr=False)
    client: dict[str, Any] = field(repr=False)
    issuer: str
    names_itself: bool
    token_endpoint: str
    revocation_endpoint: str
    redirect_uri: str
    resource: str
    scopes: str
    wanted: str
    origin: str

    def columns(self) -> dict[str, str]:
        """What of it stays."""
        return {
            "issuer": self.issuer,
            "token_endpoint": self.token_endpoint,
            "revocation_endpoint": self.revocation_endpoint,
            "redirect_uri": self.redirect_uri,
            "resource": self.resource,
            "wanted_scopes": self.wanted,
            "scopes_asked": self.scopes,
        }


@dataclass(frozen=True)
class Begun:
    """`url`: where the person goes now, at `host`; `plan`: what will be asked there."""

    url: str
    host: str
    plan: Plan
    client: Client

    @property
    def place(self) -> str:
        """How the address begins."""
        return f"{urlsplit(self.url).scheme}://{self.host}/"

    @property
    def other_host(self) -> str:
        """The authorization server, where the page for people is on another host."""
        host = urlsplit(self.plan.issuer).netloc
        return "" if host == self.host else host

    @property
    def known_as(self) -> str:
        return Registration(self.client.registration).label

    @property
    def far_reaching(self) -> bool:
        return any(map(is_privileged, self.plan.scopes.split()))


def plan_of(attempt: SignInAttempt) -> Plan:
    """Unreadable."""
    return Plan(**sealed.unseal(attempt.plan, "attempt", attempt.server_id, attempt.state_hash))


def state_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
