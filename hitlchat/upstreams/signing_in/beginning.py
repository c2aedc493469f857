"""The first half of a sign-in: who gives tokens is found out, and the person is told where to go."""

import base64
import hashlib
import secrets
from dataclasses import replace
from datetime import timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone
from mcp.client.auth.oauth2 import PKCEParameters

from hitlchat.upstreams import reaching, values
from hitlchat.upstreams.judge.server_rubric import reach
from hitlchat.upstreams.models import Transport, UpstreamServer
from hitlchat.upstreams.rights import require_administrator, require_person
from hitlchat.upstreams.sign_ins import Registration, SignIn, SignInAttempt, origin_of
from hitlchat.upstreams.signing_in import authorities, clients, sealed
from hitlchat.upstreams.signing_in.authorities import Authority
from hitlchat.upstreams.signing_in.clients import Client
from hitlchat.upstreams.signing_in.fetching import Bounds, NotPossible, bounds_of
from hitlchat.upstreams.signing_in.plans import Asking, Begun, Plan, Typed, state_hash

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
    return authorities.asked(f"{kept.scopes_granted} {kept.lacking}")


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
        found = await authorities.found(server, bounds, wanted=typed.scopes or "", **named)
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
