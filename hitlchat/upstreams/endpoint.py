"""Reaching a server: from its row to what its connection needs, and whether it is this installation itself."""

import shlex
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import get_script_prefix
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.outbound.addresses import DEFAULT_PORTS, reach
from hitlchat.secrets import references
from hitlchat.secrets.sealing import fingerprint
from hitlchat.upstreams import server_draft
from hitlchat.upstreams.client.spec import ServerSpec, Surroundings, Timeouts, TransportKind
from hitlchat.upstreams.models import SignIn, Transport, UpstreamServer, sign_in_of
from hitlchat.upstreams.risk.fingerprint import Connection
from hitlchat.upstreams.risk.rubric import Auth, ServerFacts, Trust

SENTENCE = "This is hitlchat's own address: its tools are here already, and need no connection."


def is_own_address(url: str, request: HttpRequest) -> bool:
    """Return whether an address is that of this installation.

    It is known by the name under which this page was asked for, or by one of this machine's names
    together with the port at which this process listens. Another name of this machine, or the port of another process
    of this installation, is not recognised.
    """
    try:
        parts = urlsplit(url)
        there = (parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 0))
    except ValueError:
        return False
    if unquote(parts.path).rstrip("/") != f"{get_script_prefix().rstrip('/')}/mcp":
        return False
    return there == _asked_for(request) or (_is_here(there[0]) and str(there[1]) == request.META.get("SERVER_PORT"))


def _asked_for(request: HttpRequest) -> tuple[str, int]:
    parts = urlsplit(f"//{request.get_host()}")
    return parts.hostname or "", parts.port or DEFAULT_PORTS[request.scheme or "http"]


def _is_here(host: str) -> bool:
    named = {name.strip("[].").lower() for name in settings.ALLOWED_HOSTS}
    return host in named or reach(host) == "local"


KEY = "hitlchat"
PURPOSE = "mcp installation"


def mark() -> dict[str, dict[str, Any]]:
    """The experimental capability by which our own MCP server says whose it is: of no use without our key."""
    return {KEY: {"installation": _installation()}}


def is_this_installation(experimental: dict[str, dict[str, Any]] | None) -> bool:
    """Return whether a server with these experimental capabilities is this installation, in any process."""
    told = (experimental or {}).get(KEY)
    return isinstance(told, dict) and told.get("installation") == _installation()


def _installation() -> str:
    return fingerprint("this one", PURPOSE)


def around() -> Surroundings:
    return Surroundings(allow_stdio=settings.MCP_ALLOW_STDIO, is_ours=is_this_installation)


# So much longer the connection waits for an answer: the person's time is looked after where the question is kept.
QUESTION_MARGIN_SECONDS = 5.0
LONGEST_PLACE = 120


class Unusable(Exception):
    """The server cannot be reached as it is set up; in words for the administrator."""


def spec_of(server: UpstreamServer) -> ServerSpec:
    """Return the spec with every reference replaced by its value. Raises: Unusable."""
    if server.transport == Transport.STDIO and not settings.MCP_ALLOW_STDIO:
        raise Unusable("Programs are not started on this machine: MCP_ALLOW_STDIO=1 allows it.")
    try:
        return _spec(server)
    except ValueError as error:
        raise Unusable(str(error)) from error


def _spec(server: UpstreamServer) -> ServerSpec:
    most = settings.MCP_CONNECT_SECONDS
    headers, env = (
        server_draft.fill_values(server_draft.read_values(stored)) for stored in (server.headers, server.env)
    )
    url, args = (
        server_draft.filled_template("url", server.url),
        tuple(server_draft.filled_template("args", arg) for arg in server.args),
    )
    told = [("url", server.url), *(("args", arg) for arg in server.args)]
    secrets = [secret for field, template in told for secret in server_draft.secrets_of(field, template)]
    return ServerSpec(
        server.name,
        cast("TransportKind", server.transport),
        url=url,
        headers=headers.values,
        command=server.command,
        args=args,
        env=env.values,
        secrets=(*headers.secrets, *env.secrets, *secrets),
        allow_private=may_be_private(server),
        older_protocol=server.older_protocol,
        timeouts=Timeouts(
            call=server.call_seconds,
            connect=most,
            listing=most,
            question=settings.MCP_QUESTION_SECONDS + QUESTION_MARGIN_SECONDS,
        ),
    )


def may_be_private(server: UpstreamServer) -> bool:
    """Only where an administrator said so, by the address itself or beside it: a public name that leads inside would
    be a way in for whoever owns that name.
    """
    if not settings.MCP_ALLOW_PRIVATE:
        return False
    return server.allow_private or reach(urlsplit(server.url).hostname or "") != "public"


def connection_of(server: UpstreamServer) -> Connection:
    """Return what of it belongs to the fingerprint of its tools."""
    return Connection(
        cast("TransportKind", server.transport),
        url=server.url,
        command=server.command,
        args=tuple(server.args),
        env_names=tuple(each.name for each in server_draft.read_values(server.env)),
    )


def identity_of(server: UpstreamServer) -> str:
    """A hash of all that leads to it, credentials included: an approval is for this connection and no other.

    Of a sign-in, the issuer, the client and the sign-in itself belong to it: whoever signs in anew may do so with
    another account. The tokens do not, which change by themselves. What the tools are is not touched by it: a sign-in
    voids approvals and grants, and withholds nothing, since an administrator made it and saw where it leads.
    """
    sent = [server_draft.values_identity(server_draft.read_values(stored)) for stored in (server.headers, server.env)]
    signed = sign_in_of(server)
    by = [signed.identity] if signed else []
    return canonical.sha256([str(server.pk), connection_of(server).identity(), urlsplit(server.url).query, *sent, *by])


def facts_of(server: UpstreamServer, *, writes: bool) -> ServerFacts:
    """`writes`: one of its tools says, by its name or by a hint, that it changes something."""
    used, signed = server.used_at or server.created_at, sign_in_of(server)
    return ServerFacts(
        transport=cast("TransportKind", server.transport),
        url=server.url,
        auth=_auth(server, signed),
        trust=cast("Trust", server.trust),
        scopes=signed.scopes if signed else (),
        writes=writes,
        documented=bool(server.docs_url),
        adequate=server.docs_adequate,
        idle_days=(timezone.now() - used).days,
    )


def secret_names(server: UpstreamServer) -> list[str]:
    """Return what is secret in what is sent to it, by name."""
    kept = [each for stored in (server.headers, server.env) for each in server_draft.read_values(stored)]
    others = [("the address", server.url), *(("an argument", arg) for arg in server.args)]
    referring = dict.fromkeys(where for where, text in others if any(references.names(text)))
    signed = sign_in_of(server)
    by = [f"the sign-in at {signed.issuer_host}"] if signed else []
    return [*(each.name for each in kept if each.secret), *referring, *by]


def _auth(server: UpstreamServer, signed: SignIn | None) -> Auth:
    has_secret = any(each.secret for each in server_draft.read_values(server.headers))
    if has_secret or any(references.names(server.url)):
        return "key"
    return "oauth" if signed else "none"


def place_of(server: UpstreamServer) -> str:
    """Return where it is, as administrators see it.

    Of a program, the beginning of its command line, with references as they were typed.
    """
    if server.transport != Transport.STDIO:
        return address_of(server)
    line = shlex.join([server.command, *server.args])
    return line if len(line) <= LONGEST_PLACE else f"{line[: LONGEST_PLACE - 1]}…"


def address_of(server: UpstreamServer) -> str:
    """Return where it is, in words, without anything secret."""
    identity: dict[str, Any] = connection_of(server).identity()
    return f"the program {server.command}" if server.transport == Transport.STDIO else str(identity["url"])
