"""The first half of a sign-in: who gives tokens is found out, and the person is told where to go."""

import base64
import hashlib
import secrets
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone
from mcp.client.auth.oauth2 import PKCEParameters

from hitlchat.gate.actor import Actor
from hitlchat.upstreams import reaching, values
from hitlchat.upstreams.access import require_administrator, require_person
from hitlchat.upstreams.models import Registration, SignIn, SignInAttempt, Transport, UpstreamServer, origin_of
from hitlchat.upstreams.oauth import clients, discovery, sealed
from hitlchat.upstreams.oauth.clients import Client
from hitlchat.upstreams.oauth.discovery import Authority, Bounds, NotPossible, bounds_of
from hitlchat.upstreams.risk.server import is_privileged, reach


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


LASTS = timedelta(minutes=10)
MOST_AT_ONCE = 20


def begin(server: UpstreamServer, asking: Asking, typed: Typed) -> Begun:
    """Takes up to a minute. NotPossible; NoClient: a client ID has to be typed in. OnlyAdministrators, OnlyPeople."""
    require_administrator(asking.actor)
    require_person(asking.actor)
    _check(server, asking)
    kept = SignIn.objects.filter(pk=server.pk).first()
    wanted = (kept.wanted_scopes if kept else "") if typed.scopes is None else typed.scopes
    more = _missed(kept) if typed.scopes is None else ()
    if kept and kept.registration == Registration.TYPED and typed.scopes is not None and not typed.client_id:
        # Whoever empties the field wants to be registered without.
        kept = None
    typed = replace(typed, scopes=wanted)
    authority, client = async_to_sync(_prepared)(server, asking, typed, kept, more)
    return _begun(server, asking, wanted, authority, client)


def _missed(kept: SignIn | None) -> tuple[str, ...]:
    """If calls were refused for want of rights: those, and the ones there are, so that none of them is lost."""
    if kept is None or not kept.lacking:
        return ()
    return discovery.asked(f"{kept.scopes_granted} {kept.lacking}")


def _check(server: UpstreamServer, asking: Asking) -> None:
    if server.transport == Transport.STDIO:
        raise NotPossible("A program on this machine is given what it needs by env: nobody signs in to it.")
    if any(each.name.lower() == "authorization" for each in values.read(server.headers)):
        raise NotPossible("The server has an Authorization header of its own: remove it first.")
    parts = urlsplit(asking.redirect_uri)
    if parts.scheme != "https" and reach(parts.hostname or "") != "local":
        raise NotPossible("Open hitlchat with https://, or at localhost: the answer must not come back openly.")


async def _prepared(
    server: UpstreamServer, asking: Asking, typed: Typed, kept: SignIn | None, more: tuple[str, ...]
) -> tuple[Authority, Client]:
    bounds = bounds_of(server)
    try:
        before = kept.issuer if kept and kept.registration == Registration.TYPED else ""
        named = {"issuer": typed.issuer, "before": before}
        found = await discovery.found(server, bounds, wanted=typed.scopes or "", **named)
    except reaching.Unusable as error:
        raise NotPossible(str(error)) from error
    authority = replace(found, scopes=tuple(dict.fromkeys((*found.scopes, *more))))
    return authority, await _client(authority, asking, typed, kept, bounds)


async def _client(authority: Authority, asking: Asking, typed: Typed, kept: SignIn | None, bounds: Bounds) -> Client:
    known = clients.known(kept, authority, asking.redirect_uri)
    if known is not None and not typed.client_secret and typed.client_id in {"", known.id}:
        return known
    if typed.client_id:
        return clients.typed(typed.client_id, typed.client_secret, authority)
    return await clients.made(authority, asking.redirect_uri, asking.document, bounds)


def _begun(server: UpstreamServer, asking: Asking, wanted: str, authority: Authority, client: Client) -> Begun:
    metadata, verifier = authority.metadata, PKCEParameters.generate().code_verifier
    plan = Plan(
        verifier=verifier,
        client=client.as_json(),
        issuer=authority.issuer,
        names_itself=authority.names_itself,
        token_endpoint=str(metadata.token_endpoint),
        revocation_endpoint=str(metadata.revocation_endpoint or ""),
        redirect_uri=asking.redirect_uri,
        resource=authority.resource,
        scopes=" ".join(authority.scopes),
        wanted=wanted,
        origin=origin_of(server.url),
    )
    state = secrets.token_urlsafe(32)
    _store(server, asking, plan, client, state)
    endpoint = str(metadata.authorization_endpoint)
    return Begun(_address(endpoint, plan, client, state), authority.sign_in_host, plan, client)


def _store(server: UpstreamServer, asking: Asking, plan: Plan, client: Client, state: str) -> None:
    now = timezone.now()
    mine = SignInAttempt.objects.filter(user_id=asking.user_id)
    hashed = state_hash(state)
    attempt = SignInAttempt(
        state_hash=hashed,
        server=server,
        user_id=asking.user_id,
        session_hash=state_hash(asking.session),
        plan=sealed.seal(vars(plan), "attempt", server.pk, hashed),
        expires_at=now + LASTS,
    )
    with transaction.atomic():
        SignInAttempt.objects.filter(expires_at__lt=now).delete()
        SignInAttempt.objects.filter(pk__in=mine.order_by("-expires_at")[MOST_AT_ONCE - 1 :].values("pk")).delete()
        attempt.save(force_insert=True)
        _keep_client(server, plan, client)


def _keep_client(server: UpstreamServer, plan: Plan, client: Client) -> None:
    """So that nobody registers anew for every attempt. A sign-in that works keeps its own until there is another."""
    if SignIn.objects.filter(pk=server.pk).exclude(mark="").exists():
        return
    columns = plan.columns() | clients.columns(client, server.pk, plan.issuer)
    SignIn.objects.update_or_create(pk=server.pk, defaults=columns)


def _address(endpoint: str, plan: Plan, client: Client, state: str) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(plan.verifier.encode()).digest()).decode().rstrip("=")
    parts = urlsplit(endpoint)
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": plan.redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": plan.resource,
        **({"scope": plan.scopes} if plan.scopes else {}),
        # Without it, some give nothing to renew the sign-in with.
        **({"prompt": "consent"} if "offline_access" in plan.scopes.split() else {}),
    }
    return urlunsplit(
        parts._replace(query=urlencode([*parse_qsl(parts.query, keep_blank_values=True), *query.items()]))
    )
