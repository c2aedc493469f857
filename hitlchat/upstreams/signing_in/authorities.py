"""Who gives tokens for a server: asked of the server itself (RFC 9728), then of the authority it names (RFC 8414)."""

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed
from mcp_types import LATEST_PROTOCOL_VERSION

from hitlchat.upstreams import reaching
from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.signing_in.fetching import Bounds, NotPossible, fetched
from hitlchat.upstreams.wire import ServerSpec

MOST_SCOPES = 100
LONGEST_SCOPES = 4000
# What the address of the sign-in page must not already say.
_OURS = {"client_id", "redirect_uri", "state", "scope", "code_challenge", "response_type", "resource"}


@dataclass(frozen=True)
class Authority:
    """`scopes`: the rights that the server itself asks for; `resource`: what the tokens are to be for."""

    metadata: OAuthMetadata
    resource: str
    scopes: tuple[str, ...]

    @property
    def issuer(self) -> str:
        return str(self.metadata.issuer)

    @property
    def host(self) -> str:
        return urlsplit(self.issuer).netloc

    @property
    def sign_in_host(self) -> str:
        """Where the person is sent."""
        return urlsplit(str(self.metadata.authorization_endpoint)).netloc

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.metadata.token_endpoint_auth_methods_supported or ("client_secret_basic",))

    @property
    def takes_documents(self) -> bool:
        return self.metadata.client_id_metadata_document_supported is True

    @property
    def names_itself(self) -> bool:
        """Its answers say whose they are (RFC 9207)."""
        return self.metadata.authorization_response_iss_parameter_supported is True


async def found(
    server: UpstreamServer, bounds: Bounds, *, issuer: str = "", before: str = "", wanted: str = ""
) -> Authority:
    """`issuer`: the authority an administrator names; `before`: the one they named the last time; `wanted`: the rights
    instead of those that the server asks for.

    NotPossible, NoAnswer.
    """
    spec = reaching.spec_of(server)
    challenge = await _challenge(spec, bounds)
    resource = await _resource(server, challenge, bounds)
    metadata = await _metadata(_issuer(server, resource, issuer, before), bounds)
    return Authority(
        metadata=_checked(metadata, bounds),
        resource=str(resource.resource) if resource else address_of(server),
        scopes=asked(wanted) or _scopes(extract_scope_from_www_auth(challenge), resource, metadata),
    )


def address_of(server: UpstreamServer) -> str:
    """The server as a resource that tokens are for: without query, which may be secret."""
    address = str(reaching.connection_of(server).identity()["url"])
    return address[:-1] if urlsplit(address).path == "/" else address


def asked(text: str) -> tuple[str, ...]:
    """Rights as they are written in OAuth, with spaces between. NotPossible."""
    names = tuple(dict.fromkeys(text.split()))
    if len(names) > MOST_SCOPES or len(text) > LONGEST_SCOPES or not all(map(_is_scope, names)):
        raise NotPossible("The rights (scopes) are expected to be words with spaces between, without quotation marks.")
    return names


def _is_scope(name: str) -> bool:
    return name.isascii() and name.isprintable() and not set(name) & {'"', "\\"}


async def _challenge(spec: ServerSpec, bounds: Bounds) -> httpx2.Response:
    """What the server says to whoever comes without a token."""
    headers = {**spec.headers, "Accept": "application/json, text/event-stream"}
    if spec.transport == "sse":
        request = httpx2.Request("GET", spec.url, headers=headers)
    else:
        told = {
            "protocolVersion": LATEST_PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "hitlchat", "version": "0"},
        }
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": told}
        request = httpx2.Request("POST", spec.url, headers=headers, json=message)
    return await fetched(request, bounds, "The server", body=False)


async def _resource(
    server: UpstreamServer, challenge: httpx2.Response, bounds: Bounds
) -> ProtectedResourceMetadata | None:
    address = address_of(server)
    named = extract_resource_metadata_from_www_auth(challenge)
    for url in build_protected_resource_metadata_discovery_urls(named, address):
        response = await fetched(
            create_oauth_metadata_request(url), bounds, "What the server says of itself as a resource"
        )
        if (told := await handle_protected_resource_response(response)) is None:
            continue
        if not check_resource_allowed(requested_resource=address, configured_resource=str(told.resource)):
            raise NotPossible(
                "The server says that it is another resource: a token for that would be of use elsewhere."
            )
        return told
    return None


def _issuer(server: UpstreamServer, resource: ProtectedResourceMetadata | None, wanted: str, before: str) -> str:
    if resource is None:
        # Servers of before June 2025 are their own authorities.
        parts = urlsplit(server.url)
        return wanted or before or f"{parts.scheme}://{parts.netloc}"
    named = [str(each) for each in resource.authorization_servers]
    chosen = next((each for each in named if issuers_match(each, wanted or before)), None)
    if chosen is None and wanted:
        raise NotPossible("The issuer is none of those that the server names.")
    return chosen or named[0]


async def _metadata(issuer: str, bounds: Bounds) -> OAuthMetadata:
    bounds.checked(issuer, "The issuer")
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
        response = await fetched(
            create_oauth_metadata_request(url), bounds, "What the authorization server says of itself"
        )
        _, told = await handle_auth_metadata_response(response)
        if told is None:
            continue
        if not issuers_match(str(told.issuer), issuer):
            raise NotPossible("The authorization server says that it is another one than the server named.")
        return told
    raise NotPossible(f"{urlsplit(issuer).netloc} does not say how to sign in there (no metadata by RFC 8414).")


def _checked(metadata: OAuthMetadata, bounds: Bounds) -> OAuthMetadata:
    named = (
        (metadata.authorization_endpoint, "The sign-in page"),
        (metadata.token_endpoint, "The token endpoint"),
        (metadata.registration_endpoint, "The registration endpoint"),
        (metadata.revocation_endpoint, "The revocation endpoint"),
    )
    for url, what in named:
        if url is not None:
            bounds.checked(str(url), what)
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise NotPossible(
            "The authorization server does not support PKCE with S256, without which a code can be stolen."
        )
    if _OURS & parse_qs(urlsplit(str(metadata.authorization_endpoint)).query).keys():
        raise NotPossible("The address of the sign-in page already says what only we may say there.")
    return metadata


def _scopes(
    challenged: str | None, resource: ProtectedResourceMetadata | None, metadata: OAuthMetadata
) -> tuple[str, ...]:
    """What the server asked for just now, else what it says it knows; never all that its authority has to give."""
    listed = " ".join(resource.scopes_supported or ()) if resource else ""
    scopes = asked(challenged or listed)
    if scopes and "offline_access" in (metadata.scopes_supported or ()):
        scopes = tuple(dict.fromkeys((*scopes, "offline_access")))
    return scopes
