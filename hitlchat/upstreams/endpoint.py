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
from hitlchat.upstreams.client.spec import ServerSpec, Timeouts, TransportKind
from hitlchat.upstreams.models import Transport, UpstreamServer, sign_in_of
from hitlchat.upstreams.risk.fingerprint import Connection
from hitlchat.upstreams.risk.rubric import ServerFacts, Trust

KEY = "hitlchat"
PURPOSE = "mcp installation"
# Added to the time for an answer, which ends where the question is stored, not at the connection.
QUESTION_MARGIN_SECONDS = 5.0
LONGEST_PLACE = 120
SENTENCE = "This is hitlchat's own address: these tools are already here and need no connection."


def is_own_address(url: str, request: HttpRequest) -> bool:
    """Return whether an address is this installation's: by the name of this request, or a name of this machine with the
    port of this process. The ports of other processes are not recognised.
    """
    try:
        parts = urlsplit(url)
        there = (parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 0))
    except ValueError:
        return False
    if unquote(parts.path).rstrip("/") != f"{get_script_prefix().rstrip('/')}/mcp":
        return False
    here = urlsplit(f"//{request.get_host()}")
    if there == (here.hostname or "", here.port or DEFAULT_PORTS[request.scheme or "http"]):
        return True
    named = {name.strip("[].").lower() for name in settings.ALLOWED_HOSTS}
    is_this_machine = there[0] in named or reach(there[0]) == "local"
    return is_this_machine and str(there[1]) == request.META.get("SERVER_PORT")


def mark() -> dict[str, dict[str, Any]]:
    """The experimental capability that marks our own MCP server; it cannot be forged without our key."""
    return {KEY: {"installation": _installation()}}


def is_this_installation(experimental: dict[str, dict[str, Any]] | None) -> bool:
    """Return whether a server with these experimental capabilities is this installation, in any process."""
    ours = (experimental or {}).get(KEY)
    return isinstance(ours, dict) and ours.get("installation") == _installation()


def _installation() -> str:
    return fingerprint("this one", PURPOSE)


class Unusable(Exception):
    """The server cannot be reached as it is set up; in words for the administrator."""


def spec_of(server: UpstreamServer) -> ServerSpec:
    """Return the spec with every reference replaced by its value. Raises: Unusable"""
    if server.transport == Transport.STDIO and not settings.MCP_ALLOW_STDIO:
        raise Unusable("Programs are not started on this machine: MCP_ALLOW_STDIO=1 allows it.")
    most, secrets = settings.MCP_CONNECT_SECONDS, list[str]()
    try:
        return ServerSpec(
            server.name,
            cast("TransportKind", server.transport),
            headers=server_draft.filled_values(server.headers, secrets),
            env=server_draft.filled_values(server.env, secrets),
            url=server_draft.filled("url", server.url, secrets),
            args=tuple(server_draft.filled("args", arg, secrets) for arg in server.args),
            command=server.command,
            # Last: the lines above fill it.
            secrets=tuple(secrets),
            allow_private=may_be_private(server),
            older_protocol=server.older_protocol,
            is_ours=is_this_installation,
            timeouts=Timeouts(
                call=server.call_seconds,
                connect=most,
                listing=most,
                question=settings.MCP_QUESTION_SECONDS + QUESTION_MARGIN_SECONDS,
            ),
        )
    except ValueError as error:
        raise Unusable(str(error)) from error


def may_be_private(server: UpstreamServer) -> bool:
    """Return whether its address may be private: only where an administrator said so, by the address itself or beside
    it. A public name that leads inside would be a way in for whoever owns that name.
    """
    if not settings.MCP_ALLOW_PRIVATE:
        return False
    return server.allow_private or reach(urlsplit(server.url).hostname or "") != "public"


def connection_of(server: UpstreamServer) -> Connection:
    """Return the part of a server that belongs to the fingerprint of its tools."""
    return Connection(
        cast("TransportKind", server.transport),
        url=server.url,
        command=server.command,
        args=tuple(server.args),
        env_names=tuple(each.name for each in server_draft.read_values(server.env)),
    )


def identity_of(server: UpstreamServer) -> str:
    """Return a hash of all that leads to it, credentials included: an approval is for this connection and no other.

    A sign-in belongs to it, since the next may be with another account; its tokens do not, which change by themselves.
    """
    of_values = map(server_draft.read_values, (server.headers, server.env))
    sent = [sorted([each.name, each.mark] for each in values) for values in of_values]
    signed = sign_in_of(server)
    by = [[signed.issuer, signed.client_id, signed.mark]] if signed else []
    return canonical.sha256([str(server.pk), connection_of(server).identity(), urlsplit(server.url).query, *sent, *by])


def facts_of(server: UpstreamServer, *, writes: bool) -> ServerFacts:
    """`writes`: one of its tools says, by its name or by a hint, that it changes something."""
    used, signed = server.used_at or server.created_at, sign_in_of(server)
    has_key = any(each.secret for each in server_draft.read_values(server.headers)) or any(references.names(server.url))
    return ServerFacts(
        transport=cast("TransportKind", server.transport),
        url=server.url,
        auth="key" if has_key else "oauth" if signed else "none",
        trust=cast("Trust", server.trust),
        scopes=signed.scopes if signed else (),
        writes=writes,
        documented=bool(server.docs_url),
        adequate=server.docs_adequate,
        idle_days=(timezone.now() - used).days,
    )


def secret_names(server: UpstreamServer) -> list[str]:
    values = [each for stored in (server.headers, server.env) for each in server_draft.read_values(stored)]
    others = [("the address", server.url), *(("an argument", arg) for arg in server.args)]
    referring = dict.fromkeys(where for where, text in others if any(references.names(text)))
    signed = sign_in_of(server)
    by = [f"the sign-in at {signed.issuer_host}"] if signed else []
    return [*(each.name for each in values if each.secret), *referring, *by]


def place_of(server: UpstreamServer) -> str:
    """Return where a server is, as administrators see it: of a program the beginning of its command line."""
    if server.transport != Transport.STDIO:
        return address_of(server)
    line = shlex.join([server.command, *server.args])
    return line if len(line) <= LONGEST_PLACE else f"{line[: LONGEST_PLACE - 1]}…"


def address_of(server: UpstreamServer) -> str:
    """Return where a server is, in words, without anything secret."""
    if server.transport == Transport.STDIO:
        return f"the program {server.command}"
    return str(connection_of(server).identity()["url"])
