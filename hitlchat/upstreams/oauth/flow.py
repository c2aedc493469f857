"""A sign-in at an authorization server: the person is sent there, comes back with a code, and gets tokens for it."""

import hashlib
import secrets
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from mcp.client.auth.oauth2 import PKCEParameters
from mcp.client.auth.utils import issuers_match

from hitlchat.base.canonical import storable
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import Actor
from hitlchat.outbound.addresses import origin_of, reach
from hitlchat.upstreams import server_draft, servers
from hitlchat.upstreams.endpoint import Unusable
from hitlchat.upstreams.models import Registration, SignIn, SignInAttempt, Transport, UpstreamServer
from hitlchat.upstreams.oauth import clients
from hitlchat.upstreams.oauth.authority import Authority, NotPossible, bounds_of, discover, scopes_in
from hitlchat.upstreams.oauth.clients import Client
from hitlchat.upstreams.oauth.tokens import Tokens, granted, in_words, revoked, signed_in
from hitlchat.upstreams.oauth.tokens import columns as token_columns
from hitlchat.upstreams.risk.rubric import is_privileged
from hitlchat.upstreams.servers import require_administrator, require_person

LASTS = timedelta(minutes=10)
ATTEMPT = "sign-in attempt"
MOST_AT_ONCE = 20


@dataclass(frozen=True)
class Asking:
    """The answer must come from this `actor` in this browser `session`. `document`: the address of our description."""

    actor: Actor
    session: str
    redirect_uri: str
    document: str = ""


@dataclass(frozen=True)
class Typed:
    """Settings that an administrator entered to override discovery. `scopes`: None for those of the last time."""

    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: str | None = None
    issuer: str = ""


@dataclass(frozen=True)
class Plan:
    """All that the second half needs. `columns`: the sign-in, as far as it is certain; `origin`: where the tokens may
    be sent; `names_itself`: the answers of this authority name their issuer (RFC 9207).
    """

    verifier: str = field(repr=False)
    columns: dict[str, Any] = field(repr=False)
    names_itself: bool
    origin: str


@dataclass(frozen=True)
class Begun:
    """`url`: where the person goes now; `row`: the sign-in that it may become, not saved."""

    url: str
    row: SignIn

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def place(self) -> str:
        return f"{urlsplit(self.url).scheme}://{self.host}/"

    @property
    def other_host(self) -> str:
        """The authorization server, where the page for people is on another host."""
        return "" if self.row.issuer_host == self.host else self.row.issuer_host

    @property
    def far_reaching(self) -> bool:
        return any(map(is_privileged, self.row.scopes_asked.split()))


@dataclass(frozen=True)
class Brought:
    """The parts of the address with which the person came back, and the `session` of their browser."""

    session: str
    state: str
    code: str = ""
    issuer: str | None = None
    error: str = ""


def begin(server: UpstreamServer, asking: Asking, typed: Typed) -> Begun:
    """Find the authorization server and register there, which takes up to a minute; store what the second half needs.
    Raises: NotPossible; NoClient, a client ID has to be typed in; OnlyAdministrators, OnlyPeople
    """
    require_administrator(asking.actor)
    require_person(asking.actor)
    _check(server, asking)
    row = SignIn.objects.filter(pk=server.pk).first()
    wanted = typed.scopes or ""
    more: tuple[str, ...] = ()
    if row is not None and typed.scopes is None:
        wanted = row.wanted_scopes
        # Rights that calls lacked, with those granted already, so that none of them is lost.
        more = scopes_in(f"{row.scopes_granted} {row.lacking}") if row.lacking else ()
    if row and row.registration == Registration.TYPED and typed.scopes is not None and not typed.client_id:
        # Emptying the field means registering automatically.
        row = None
    authority, client = async_to_sync(_prepared)(server, asking, replace(typed, scopes=wanted), row, more)
    metadata, pkce, state = authority.metadata, PKCEParameters.generate(), secrets.token_urlsafe(32)
    columns = {
        "issuer": authority.issuer,
        "token_endpoint": str(metadata.token_endpoint),
        "revocation_endpoint": str(metadata.revocation_endpoint or ""),
        "redirect_uri": asking.redirect_uri,
        "resource": authority.resource,
        "wanted_scopes": wanted,
        "scopes_asked": " ".join(authority.scopes),
        **clients.columns(client, server.pk, authority.issuer),
    }
    names_itself = metadata.authorization_response_iss_parameter_supported is True
    _store(server, asking, Plan(pkce.code_verifier, columns, names_itself, origin_of(server.url)), state)
    row = SignIn(server=server, **columns)
    return Begun(_address(str(metadata.authorization_endpoint), row, state, pkce.code_challenge), row)


def finish(server_id: UUID, brought: Brought, actor: Actor) -> UpstreamServer:
    """Store the tokens and reconnect. Raises: NotPossible, LookupError, OnlyAdministrators, OnlyPeople"""
    require_administrator(actor)
    require_person(actor)
    plan = _used_up(server_id, brought, actor)
    try:
        server = _server_of(server_id, plan, brought)
        row = SignIn(server=server, **plan.columns)
        data = {"redirect_uri": row.redirect_uri, "resource": row.resource, "code": brought.code}
        data["code_verifier"] = plan.verifier
        client, bounds = clients.of(row), bounds_of(server)
        tokens = async_to_sync(granted)(client, row.token_endpoint, bounds, "authorization_code", **data)
        sign_in = partial(_store_sign_in, plan=plan, tokens=tokens, actor=actor)
        return servers.reach_anew(server_id, actor, sign_in, why="somebody signed in at its server again")
    except NotPossible as error:
        SignIn.objects.filter(pk=server_id).update(last_error=storable(str(error)), last_error_at=timezone.now())
        raise


def forget(server_id: UUID, actor: Actor) -> str:
    """Delete and revoke the tokens; return why revoking failed, if it did. Raises: LookupError, OnlyAdministrators"""
    require_administrator(actor)
    server = UpstreamServer.objects.filter(pk=server_id).first()
    row = signed_in(server_id).first()
    if server is None or row is None:
        raise LookupError("Nobody is signed in to this server.")
    servers.reach_anew(server_id, actor, _sign_out, why="somebody signed out of its server")
    if not row.tokens or not row.revocation_endpoint:
        return ""
    try:
        async_to_sync(_revoke)(server, row)
    except clients.Unreadable:
        # There is nothing that could be revoked.
        return ""
    except NotPossible as error:
        return translatable(f"{row.issuer_host} could not be told: {error}")
    return ""


def _check(server: UpstreamServer, asking: Asking) -> None:
    if server.transport == Transport.STDIO:
        raise NotPossible("Programs on this machine get their credentials from env, so there is no sign-in.")
    if any(each.name.lower() == "authorization" for each in server_draft.read_values(server.headers)):
        raise NotPossible("The server has its own Authorization header: remove it first.")
    parts = urlsplit(asking.redirect_uri)
    if parts.scheme != "https" and reach(parts.hostname or "") != "local":
        raise NotPossible("Open hitlchat over https:// or on localhost: the answer must not be sent unencrypted.")


async def _prepared(
    server: UpstreamServer, asking: Asking, typed: Typed, row: SignIn | None, more: tuple[str, ...]
) -> tuple[Authority, Client]:
    bounds = bounds_of(server)
    before = row.issuer if row and row.registration == Registration.TYPED else ""
    try:
        found = await discover(server, bounds, issuer=typed.issuer, before=before, wanted=typed.scopes or "")
    except Unusable as error:
        raise NotPossible(str(error)) from error
    authority = replace(found, scopes=tuple(dict.fromkeys((*found.scopes, *more))))
    earlier = clients.earlier(row, authority, asking.redirect_uri)
    if earlier is not None and not typed.client_secret and typed.client_id in {"", earlier.id}:
        return authority, earlier
    if typed.client_id:
        return authority, clients.given(typed.client_id, typed.client_secret, authority)
    return authority, await clients.registered(authority, asking.redirect_uri, asking.document, bounds)


def _store(server: UpstreamServer, asking: Asking, plan: Plan, state: str) -> None:
    now, user_id, hashed = timezone.now(), asking.actor.user_id or 0, _hash(state)
    mine = SignInAttempt.objects.filter(user_id=user_id)
    attempt = SignInAttempt(
        state_hash=hashed,
        server=server,
        user_id=user_id,
        session_hash=_hash(asking.session),
        plan=clients.seal(vars(plan), ATTEMPT, server.pk, hashed),
        expires_at=now + LASTS,
    )
    with transaction.atomic():
        SignInAttempt.objects.filter(expires_at__lt=now).delete()
        SignInAttempt.objects.filter(pk__in=mine.order_by("-expires_at")[MOST_AT_ONCE - 1 :].values("pk")).delete()
        attempt.save(force_insert=True)
        # So that no attempt registers another client. A sign-in that works keeps its own.
        if not signed_in(server.pk).exists():
            SignIn.objects.update_or_create(pk=server.pk, defaults=plan.columns)


def _address(page: str, row: SignIn, state: str, challenge: str) -> str:
    query = {
        "response_type": "code",
        "client_id": row.client_id,
        "redirect_uri": row.redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": row.resource,
        **({"scope": row.scopes_asked} if row.scopes_asked else {}),
        # Without it, some servers give no refresh token.
        **({"prompt": "consent"} if "offline_access" in row.scopes_asked.split() else {}),
    }
    parts = urlsplit(page)
    given = parse_qsl(parts.query, keep_blank_values=True)
    return urlunsplit(parts._replace(query=urlencode([*given, *query.items()])))


def _used_up(server_id: UUID, brought: Brought, actor: Actor) -> Plan:
    """Return the plan of this attempt and delete the attempt, which is valid for one answer."""
    mine = SignInAttempt.objects.filter(
        state_hash=_hash(brought.state),
        server_id=server_id,
        user_id=actor.user_id or 0,
        session_hash=_hash(brought.session),
        expires_at__gt=timezone.now(),
    )
    attempt = mine.first()
    if attempt is None or mine.delete()[0] != 1:
        raise NotPossible(
            "This answer belongs to no sign-in started in this browser in the last ten minutes, or was "
            "already used. Start again."
        )
    try:
        return Plan(**clients.unseal(attempt.plan, ATTEMPT, attempt.server_id, attempt.state_hash))
    except clients.Unreadable as error:
        raise NotPossible(str(error)) from error


def _server_of(server_id: UUID, plan: Plan, brought: Brought) -> UpstreamServer:
    """Return the server, unless it was moved, or the answer is a refusal or from another authority (RFC 9207)."""
    server = UpstreamServer.objects.filter(pk=server_id).first()
    if server is None or origin_of(server.url) != plan.origin:
        raise NotPossible("The server was moved or removed in the meantime.")
    if brought.issuer is None and plan.names_itself:
        raise NotPossible("The answer does not name its authorization server, although this one always does.")
    if brought.issuer is not None and not issuers_match(brought.issuer, plan.columns["issuer"]):
        raise NotPossible("The answer is from another authorization server than the one that was asked.")
    if brought.error:
        raise NotPossible(f"The authorization server did not sign you in: {in_words(brought.error)}.")
    if not brought.code or len(brought.code) > 8000:
        raise NotPossible("The authorization server sent you back without a code.")
    return server


def _store_sign_in(server: UpstreamServer, *, plan: Plan, tokens: Tokens, actor: Actor) -> None:
    if origin_of(server.url) != plan.origin:
        raise NotPossible("The server was moved in the meantime.")
    before = SignIn.objects.filter(pk=server.pk).first()
    columns = {
        **plan.columns,
        **token_columns(tokens, server.pk, plan.origin),
        "mark": str(uuid4()),
        "origin": plan.origin,
        "scopes_granted": storable(plan.columns["scopes_asked"] if tokens.scopes is None else tokens.scopes),
        "signed_in_by_id": actor.user_id,
        "signed_in_at": timezone.now(),
        # A new number, so that a process that is renewing earlier tokens does not overwrite these.
        "generation": before.generation + 1 if before else 1,
        "lacking": "",
        "last_error": "",
        "last_error_at": None,
    }
    SignIn.objects.update_or_create(pk=server.pk, defaults=columns)


def _sign_out(server: UpstreamServer) -> None:
    texts = ("tokens", "mark", "origin", "problem", "lacking", "scopes_granted", "renewing_by")
    times = ("expires_at", "renewed_at", "renewing_until")
    nothing = {**dict.fromkeys(texts, ""), **dict.fromkeys(times), "renews": False}
    SignIn.objects.filter(pk=server.pk).update(**nothing, generation=F("generation") + 1)


async def _revoke(server: UpstreamServer, row: SignIn) -> None:
    """Raises: Unreadable, NotPossible"""
    client = clients.of(row)
    access, refresh = clients.unseal(row.tokens, "tokens", row.pk, row.origin)
    bounds = bounds_of(server)
    # Revoking one of them should also revoke the other, but not every server does that.
    for token, kind in ((refresh, "refresh_token"), (access, "access_token")):
        if token:
            await revoked(client, row.revocation_endpoint, bounds, token, kind)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
