"""The second half of a sign-in: the person comes back, and what they bring becomes tokens; and signing out."""

import logging
from dataclasses import dataclass
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.utils import timezone
from mcp.client.auth.utils import issuers_match

from hitlchat.base.canonical import storable
from hitlchat.gate.actor import Actor
from hitlchat.upstreams import servers
from hitlchat.upstreams.access import require_administrator, require_person
from hitlchat.upstreams.models import SignIn, SignInAttempt, UpstreamServer, origin_of
from hitlchat.upstreams.oauth import clients, sealed, token_endpoint, token_store
from hitlchat.upstreams.oauth.beginning import Plan, plan_of, state_hash
from hitlchat.upstreams.oauth.clients import Client
from hitlchat.upstreams.oauth.discovery import NotPossible, bounds_of
from hitlchat.upstreams.oauth.token_endpoint import Tokens

logger = logging.getLogger(__name__)

LONGEST_CODE = 8000


@dataclass(frozen=True)
class Brought:
    """What stands in the address with which the person came back; `user_id` and `session`: who, in which browser."""

    user_id: int
    session: str
    state: str
    code: str = ""
    issuer: str | None = None
    error: str = ""


def finish(server_id: UUID, brought: Brought, actor: Actor) -> UpstreamServer:
    """The tokens are kept, and the server is connected anew.

    NotPossible, LookupError, OnlyAdministrators, OnlyPeople.
    """
    require_administrator(actor)
    require_person(actor)
    plan = _taken(server_id, brought)
    try:
        return _finished(server_id, plan, brought, actor)
    except NotPossible as error:
        SignIn.objects.filter(pk=server_id).update(last_error=storable(str(error)), last_error_at=timezone.now())
        raise


def forget(server_id: UUID, actor: Actor) -> str:
    """Sign out: the tokens are forgotten, and given back. What went wrong with the latter, in a sentence, or nothing.

    LookupError, OnlyAdministrators.
    """
    require_administrator(actor)
    server = UpstreamServer.objects.filter(pk=server_id).first()
    kept = SignIn.objects.filter(pk=server_id).exclude(mark="").first()
    if server is None or kept is None:
        raise LookupError("Nobody is signed in at this server.")
    held = _readable(kept)
    servers.reach_anew(server_id, actor, _sign_out, why="somebody signed out of its server")
    if held is None or not kept.revocation_endpoint:
        return ""
    try:
        async_to_sync(_given_back)(server, kept, *held)
    except NotPossible as error:
        return f"{kept.issuer_host} could not be told: {error}"
    return ""


def _taken(server_id: UUID, brought: Brought) -> Plan:
    """The attempt that this is the end of, which cannot be used again."""
    mine = SignInAttempt.objects.filter(
        state_hash=state_hash(brought.state),
        server_id=server_id,
        user_id=brought.user_id,
        session_hash=state_hash(brought.session),
        expires_at__gt=timezone.now(),
    )
    attempt = mine.first()
    if attempt is None or mine.delete()[0] != 1:
        raise NotPossible(
            "This answer belongs to no sign-in that you began in this browser in the last ten minutes, "
            "or it was used already. Begin again."
        )
    try:
        return plan_of(attempt)
    except sealed.Unreadable as error:
        raise NotPossible(str(error)) from error


def _finished(server_id: UUID, plan: Plan, brought: Brought, actor: Actor) -> UpstreamServer:
    server = UpstreamServer.objects.filter(pk=server_id).first()
    if server is None or origin_of(server.url) != plan.origin:
        raise NotPossible("The server was moved or removed in the meantime.")
    _check(plan, brought)
    client = Client(**plan.client)
    told = {"redirect_uri": plan.redirect_uri, "code_verifier": plan.verifier, "resource": plan.resource}
    exchanging = async_to_sync(token_endpoint.exchanged)
    tokens = exchanging(client, plan.token_endpoint, bounds_of(server), code=brought.code, **told)

    def sign_in(locked: UpstreamServer) -> None:
        if origin_of(locked.url) != plan.origin:
            raise NotPossible("The server was moved in the meantime.")
        _keep(locked, plan, client, tokens, actor)

    return servers.reach_anew(server_id, actor, sign_in, why="somebody signed in at its server anew")


def _check(plan: Plan, brought: Brought) -> None:
    """That the answer is this authority's (RFC 9207), and that it is a yes."""
    if brought.issuer is None and plan.names_itself:
        raise NotPossible("The answer does not say which authorization server gave it, although this one always does.")
    if brought.issuer is not None and not issuers_match(brought.issuer, plan.issuer):
        raise NotPossible("The answer is from another authorization server than the one that was asked.")
    if brought.error:
        raise NotPossible(f"The authorization server did not sign you in: {token_endpoint.in_words(brought.error)}.")
    if not brought.code or len(brought.code) > LONGEST_CODE:
        raise NotPossible("The authorization server sent you back without a code.")


def _keep(server: UpstreamServer, plan: Plan, client: Client, tokens: Tokens, actor: Actor) -> None:
    before = SignIn.objects.filter(pk=server.pk).first()
    granted = plan.scopes if tokens.scopes is None else tokens.scopes
    found = {
        **plan.columns(),
        **clients.columns(client, server.pk, plan.issuer),
        **token_store.columns(tokens, server.pk, plan.origin),
        "mark": str(uuid4()),
        "origin": plan.origin,
        "scopes_granted": storable(granted),
        "signed_in_by_id": actor.user_id,
        "signed_in_at": timezone.now(),
        # Never one that was there before: a process that renews those must not put its own over these.
        "generation": before.generation + 1 if before else 1,
        "lacking": "",
        "last_error": "",
        "last_error_at": None,
    }
    SignIn.objects.update_or_create(pk=server.pk, defaults=found)


def _sign_out(server: UpstreamServer) -> None:
    kept = SignIn.objects.get(pk=server.pk)
    nothing = {
        "tokens": "",
        "renews": False,
        "mark": "",
        "origin": "",
        "problem": "",
        "lacking": "",
        "scopes_granted": "",
    }
    gone = {"expires_at": None, "renewed_at": None, "renewing_by": "", "renewing_until": None}
    SignIn.objects.filter(pk=server.pk).update(**nothing, **gone, generation=kept.generation + 1)


def _readable(kept: SignIn) -> tuple[Client, list[str]] | None:
    """Client and tokens, if there is something to give back."""
    if not kept.tokens:
        return None
    try:
        return clients.of(kept), sealed.unseal(kept.tokens, "tokens", kept.pk, kept.origin)
    except sealed.Unreadable:
        return None


async def _given_back(server: UpstreamServer, kept: SignIn, client: Client, tokens: list[str]) -> None:
    access, refresh = tokens
    bounds = bounds_of(server)
    # Whoever forgets the second also forgets what it renews, but not everyone does both.
    for token, kind in ((refresh, "refresh_token"), (access, "access_token")):
        if token:
            await token_endpoint.revoked(client, kept.revocation_endpoint, bounds, token, kind)
