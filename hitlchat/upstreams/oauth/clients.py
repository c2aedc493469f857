"""The client that this installation is at an authorization server; its secrets are sealed for one purpose."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlsplit
from uuid import UUID

import httpx2
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import create_client_registration_request, handle_registration_response
from mcp.shared.auth import OAuthClientMetadata, TokenEndpointAuthMethod
from pydantic import AnyHttpUrl, AnyUrl

from hitlchat.outbound.addresses import reach
from hitlchat.secrets import sealing
from hitlchat.upstreams.models import Registration, SignIn
from hitlchat.upstreams.oauth.authority import Authority, Bounds, NotPossible, fetched

PURPOSE = "upstream sign-in"
NAME = "hitlchat"
# The form comes before the header: the revocation endpoint of servers made with the SDK reads only the form.
METHODS: Final[tuple[TokenEndpointAuthMethod, ...]] = ("none", "client_secret_post", "client_secret_basic")
LONGEST = 4000


class Unreadable(Exception):
    """The sealed secret cannot be read, or is for another use; the message is for administrators."""


class NoClient(NotPossible):
    """The authorization server registers no clients automatically: an administrator has to enter a client ID."""


def seal(secret: Any, kind: str, server_id: UUID, place: str) -> str:
    """`secret`: a JSON value. It can only be unsealed with the same `kind`, server and `place`."""
    return sealing.seal(json.dumps([kind, str(server_id), place, secret], cls=DjangoJSONEncoder), PURPOSE)


def unseal(token: str, kind: str, server_id: UUID, place: str) -> Any:
    """Raises: Unreadable"""
    try:
        *bound, secret = json.loads(sealing.unseal(token, PURPOSE))
    except sealing.Unsealable as error:
        raise Unreadable(
            "It was sealed with another SECRET_KEY: name that one in SECRET_KEY_FALLBACKS, or sign in again."
        ) from error
    if bound != [kind, str(server_id), place]:
        raise Unreadable("The stored sign-in is for another server or address: sign in again.")
    return secret


@dataclass(frozen=True, repr=False)
class Client:
    """`method`: how it authenticates at the token endpoint. `expires_at`: when its secret expires, or None."""

    id: str
    secret: str
    method: str
    registration: str
    expires_at: int | None = None

    def request(self, endpoint: str, data: dict[str, str]) -> httpx2.Request:
        """Return an authenticated request with this form data."""
        headers: dict[str, str] = {"Accept": "application/json"}
        data = {**data, "client_id": self.id}
        if self.method == "client_secret_basic" and self.secret:
            pair = f"{quote(self.id, safe='')}:{quote(self.secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif self.secret:
            data["client_secret"] = self.secret
        return httpx2.Request("POST", endpoint, data=data, headers=headers)


def given(client_id: str, secret: str, authority: Authority) -> Client:
    """Return the client that an administrator registered by hand. Raises: NotPossible"""
    for text, what in ((client_id, "The client ID"), (secret, "The client secret")):
        if len(text) > LONGEST or not text.isprintable():
            raise NotPossible(f"{what}: expected one line of at most {LONGEST:,} characters.")
    method = "none"
    if secret:
        method = next((each for each in METHODS[1:] if each in authority.methods), "client_secret_basic")
    return Client(client_id, secret, method, Registration.TYPED.value)


def earlier(row: SignIn | None, authority: Authority, redirect_uri: str) -> Client | None:
    """Return the client of the last sign-in, if it can still be used."""
    if row is None or row.issuer != authority.issuer or not row.client_id:
        return None
    if row.registration != Registration.TYPED and row.redirect_uri != redirect_uri:
        return None
    if row.registration == Registration.DYNAMIC and not set(authority.scopes) <= set(row.scopes_asked.split()):
        # It may only request the rights that it was registered with.
        return None
    if row.client_expires_at is not None and row.client_expires_at <= timezone.now():
        return None
    try:
        return of(row)
    except Unreadable:
        return None


def of(row: SignIn) -> Client:
    """Raises: Unreadable"""
    secret = unseal(row.client_secret, "client", row.pk, row.issuer) if row.client_secret else ""
    return Client(row.client_id, secret, row.auth_method, row.registration)


def columns(client: Client, server_id: UUID, issuer: str) -> dict[str, Any]:
    """Return the columns that store a client. Its secret is sealed for this issuer."""
    expires = datetime.fromtimestamp(client.expires_at, UTC) if client.expires_at else None
    return {
        "client_id": client.id,
        "client_secret": seal(client.secret, "client", server_id, issuer) if client.secret else "",
        "client_expires_at": expires,
        "auth_method": client.method,
        "registration": client.registration,
    }


async def registered(authority: Authority, redirect_uri: str, document: str, bounds: Bounds) -> Client:
    """Register a new client. `document`: where this installation describes itself. Raises: NoClient, NotPossible"""
    is_public = document.startswith("https://") and reach(urlsplit(document).hostname or "") == "public"
    if is_public and authority.metadata.client_id_metadata_document_supported is True:
        return Client(document, "", "none", Registration.DOCUMENT.value)
    if authority.metadata.registration_endpoint is None:
        raise NoClient(
            f"{authority.host} does not register clients automatically. Register this installation there "
            "and enter the client ID."
        )
    wanted = wanted_metadata(redirect_uri, authority.methods)
    wanted.scope = " ".join(authority.scopes) or None
    request = create_client_registration_request(authority.metadata, wanted, authority.issuer)
    response = await fetched(request, bounds, "The registration endpoint")
    if response.status_code not in (200, 201):
        raise NoClient(f"{authority.host} did not register this installation (HTTP {response.status_code}).")
    try:
        information = await handle_registration_response(response)
        check_registration_usable(information)
    except (OAuthFlowError, UnicodeError) as error:
        # The error quotes the answer, which may contain the secret.
        raise NotPossible(f"{authority.host} registered this installation in a way that cannot be used.") from error
    client_id, secret = information.client_id, information.client_secret or ""
    method = information.token_endpoint_auth_method or ("client_secret_basic" if secret else "none")
    if len(client_id) > LONGEST or len(secret) > LONGEST or not (client_id + secret).isprintable():
        raise NotPossible("The authorization server gave a client ID or secret that cannot be used.")
    expires = information.client_secret_expires_at
    usable = expires if expires and 0 < expires < 2**32 else None
    return Client(client_id, secret, method, Registration.DYNAMIC.value, usable)


def wanted_metadata(redirect_uri: str, offered: tuple[str, ...] = ("none",)) -> OAuthClientMetadata:
    """Return this installation's description of itself. `offered`: the methods with which clients may authenticate."""
    here = reach(urlsplit(redirect_uri).hostname or "") == "local"
    return OAuthClientMetadata(
        client_name=NAME,
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method=next((each for each in METHODS if each in offered), None),
        application_type="native" if here else "web",
        client_uri=None if here else AnyHttpUrl(f"https://{urlsplit(redirect_uri).netloc}/"),
    )
