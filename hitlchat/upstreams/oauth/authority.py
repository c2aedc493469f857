"""Discovery of the authorization server of an upstream server (RFC 9728, RFC 8414), at checked addresses only."""

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import utils
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed
from mcp_types import LATEST_PROTOCOL_VERSION

from hitlchat.outbound import guard
from hitlchat.outbound.addresses import reach
from hitlchat.upstreams import endpoint
from hitlchat.upstreams.client.spec import ServerSpec
from hitlchat.upstreams.models import UpstreamServer

SECONDS = 15.0
MOST_BYTES = 256 * 1024
LONGEST_URL = 2000
LONGEST_SCOPES = 4000
_SCOPE = re.compile(r"[!#-\[\]-~]+")
# Parameters that the address of the sign-in page must not have yet.
_OURS = {"client_id", "redirect_uri", "state", "scope", "code_challenge", "response_type", "resource"}


class NotPossible(Exception):
    """Signing in there is not possible; why, in a sentence for the administrator."""


class NoAnswer(NotPossible):
    """The authority did not answer now; another attempt may succeed."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of requests on behalf of one server. A server on this machine may name others on it; one of a private
    network, others of private networks, but nothing that listens on this machine alone.
    """

    allow_private: bool
    here: bool

    def checked(self, url: str, what: str) -> str:
        """Return the address unchanged. Raises: NotPossible, it must not be requested"""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise NotPossible(f"{what} is not a valid address.") from None
        if len(url) > LONGEST_URL or not parts.hostname or port == 0 or not url.isascii() or not url.isprintable():
            raise NotPossible(f"{what} is not a valid address.")
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise NotPossible(f"{what} must not contain a user name, a password or a fragment.")
        where = reach(parts.hostname)
        if parts.scheme != "https" and not (parts.scheme == "http" and where == "local" and self.here):
            raise NotPossible(f"{what} must begin with https://: otherwise secrets are sent unencrypted.")
        if (where == "local" and not self.here) or (where == "private" and not self.allow_private):
            raise NotPossible(f"{what} leads to {parts.hostname}, which must not be reached from this server.")
        return url


def bounds_of(server: UpstreamServer) -> Bounds:
    """Return the bounds of requests for a server. Raises: NotPossible, its own address is outside of them"""
    private = endpoint.may_be_private(server)
    bounds = Bounds(private, private and reach(urlsplit(server.url).hostname or "") == "local")
    bounds.checked(server.url.partition("?")[0], "The server's own address")
    return bounds


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
    def methods(self) -> tuple[str, ...]:
        return tuple(self.metadata.token_endpoint_auth_methods_supported or ("client_secret_basic",))


async def discover(server: UpstreamServer, bounds: Bounds, *, issuer: str, before: str, wanted: str) -> Authority:
    """Ask a server for its authority, and that for what it offers. `issuer`, `before`: the authority an administrator
    names, or did the last time; `wanted`: rights instead of the server's own. Raises: NotPossible, NoAnswer
    """
    spec = endpoint.spec_of(server)
    challenge = await _challenge(spec, bounds)
    resource = await _resource(server, challenge, bounds)
    metadata = await _metadata(_issuer(server, resource, issuer, before), bounds)
    return Authority(
        metadata=_checked(metadata, bounds),
        resource=str(resource.resource) if resource else address_of(server),
        scopes=scopes_in(wanted) or _scopes(utils.extract_scope_from_www_auth(challenge), resource, metadata),
    )


def address_of(server: UpstreamServer) -> str:
    """Return the resource identifier of the server: its address without the query, which may be secret."""
    address = str(endpoint.connection_of(server).identity()["url"])
    return address[:-1] if urlsplit(address).path == "/" else address


def scopes_in(text: str) -> tuple[str, ...]:
    """Return the rights in a text that separates them with spaces. Raises: NotPossible"""
    names = tuple(dict.fromkeys(text.split()))
    if len(names) > 100 or len(text) > LONGEST_SCOPES or not all(map(_SCOPE.fullmatch, names)):
        raise NotPossible("Separate the rights (scopes) with spaces, without quotation marks.")
    return names


async def fetched(request: httpx2.Request, bounds: Bounds, what: str, *, body: bool = True) -> httpx2.Response:
    """Return the answer, without following redirects. Raises: NotPossible, NoAnswer"""
    bounds.checked(str(request.url), what)
    request.headers["Accept-Encoding"] = "identity"
    request.headers["User-Agent"] = "hitlchat"
    request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), guard.CONNECT_SECONDS)
    refused = partial(guard.refusal, allow_private=bounds.allow_private, loopback=bounds.here)
    try:
        async with asyncio.timeout(SECONDS), guard.answered(request, guard.Transport(refused)) as response:
            if body and guard.is_packed(response):
                raise NotPossible(f"{what}: the answer is compressed, although this was not requested.")
            content = await guard.beginning(response, MOST_BYTES) if body else b""
    except TimeoutError:
        raise NoAnswer(f"{what}: no answer within {SECONDS:g} seconds.") from None
    except httpx2.TransportError as error:
        raise NoAnswer(f"{what}: {guard.in_words(error)}.") from error
    if len(content) > MOST_BYTES:
        raise NotPossible(f"{what}: the answer has more than {MOST_BYTES:,} bytes.")
    headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
    return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


async def _challenge(spec: ServerSpec, bounds: Bounds) -> httpx2.Response:
    """Return the server's answer to a request without a token."""
    headers = {**spec.headers, "Accept": "application/json, text/event-stream"}
    if spec.transport == "sse":
        request = httpx2.Request("GET", spec.url, headers=headers)
    else:
        client = {"name": "hitlchat", "version": "0"}
        params = {"protocolVersion": LATEST_PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        request = httpx2.Request("POST", spec.url, headers=headers, json=message)
    return await fetched(request, bounds, "The server", body=False)


async def _resource(
    server: UpstreamServer, challenge: httpx2.Response, bounds: Bounds
) -> ProtectedResourceMetadata | None:
    address = address_of(server)
    named = utils.extract_resource_metadata_from_www_auth(challenge)
    for url in utils.build_protected_resource_metadata_discovery_urls(named, address):
        request = utils.create_oauth_metadata_request(url)
        response = await fetched(request, bounds, "The server's resource metadata")
        if (metadata := await utils.handle_protected_resource_response(response)) is None:
            continue
        if not check_resource_allowed(requested_resource=address, configured_resource=str(metadata.resource)):
            raise NotPossible("The server says that it is a different resource, so a token would be valid elsewhere.")
        return metadata
    return None


def _issuer(server: UpstreamServer, resource: ProtectedResourceMetadata | None, wanted: str, before: str) -> str:
    if resource is None:
        # Servers from before June 2025 are their own authorities.
        parts = urlsplit(server.url)
        return wanted or before or f"{parts.scheme}://{parts.netloc}"
    named = [str(each) for each in resource.authorization_servers]
    chosen = next((each for each in named if utils.issuers_match(each, wanted or before)), None)
    if chosen is None and wanted:
        raise NotPossible("The issuer is not one of those that the server names.")
    return chosen or named[0]


async def _metadata(issuer: str, bounds: Bounds) -> OAuthMetadata:
    bounds.checked(issuer, "The issuer")
    for url in utils.build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
        request = utils.create_oauth_metadata_request(url)
        response = await fetched(request, bounds, "The authorization server's metadata")
        _, metadata = await utils.handle_auth_metadata_response(response)
        if metadata is None:
            continue
        if not utils.issuers_match(str(metadata.issuer), issuer):
            raise NotPossible("The authorization server says that it is not the one that the server named.")
        return metadata
    raise NotPossible(f"{urlsplit(issuer).netloc} does not say how to sign in there (no RFC 8414 metadata).")


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
        raise NotPossible("The address of the sign-in page already has a parameter that only hitlchat may set.")
    return metadata


def _scopes(
    challenged: str | None, resource: ProtectedResourceMetadata | None, metadata: OAuthMetadata
) -> tuple[str, ...]:
    """Return the rights that the server just asked for, else those it lists, but never all of its authority's."""
    listed = " ".join(resource.scopes_supported or ()) if resource else ""
    scopes = scopes_in(challenged or listed)
    if scopes and "offline_access" in (metadata.scopes_supported or ()):
        scopes = tuple(dict.fromkeys((*scopes, "offline_access")))
    return scopes
