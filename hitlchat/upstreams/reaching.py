"""From a server's row to what its connection needs, to its identity, and to what the judges have to know of it."""

import shlex
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from hitlchat.base import canonical
from hitlchat.secrets import references
from hitlchat.upstreams import models, values
from hitlchat.upstreams.client import ServerSpec, Timeouts, TransportKind
from hitlchat.upstreams.models import SignIn, Transport, UpstreamServer
from hitlchat.upstreams.risk.offered import Connection
from hitlchat.upstreams.risk.rubric import ServerFacts
from hitlchat.upstreams.risk.server import Auth, Trust, reach

# So much longer the connection waits for an answer: the person's time is looked after where the question is kept.
QUESTION_MARGIN_SECONDS = 5.0
LONGEST_PLACE = 120


class Unusable(Exception):
    """The server cannot be reached as it is set up; in words for the administrator."""


def spec_of(server: UpstreamServer) -> ServerSpec:
    """With every reference replaced by its value. Unusable."""
    if server.transport == Transport.STDIO and not settings.MCP_ALLOW_STDIO:
        raise Unusable("Programs are not started on this machine: MCP_ALLOW_STDIO=1 allows it.")
    try:
        return _spec(server)
    except ValueError as error:
        raise Unusable(str(error)) from error


def _spec(server: UpstreamServer) -> ServerSpec:
    most = settings.MCP_CONNECT_SECONDS
    headers, env = (values.fill(values.read(stored)) for stored in (server.headers, server.env))
    url, args = values.filled("url", server.url), tuple(values.filled("args", arg) for arg in server.args)
    told = [("url", server.url), *(("args", arg) for arg in server.args)]
    secrets = [secret for field, template in told for secret in values.secrets_of(field, template)]
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
    be a way in for whoever owns that name."""
    if not settings.MCP_ALLOW_PRIVATE:
        return False
    return server.allow_private or reach(urlsplit(server.url).hostname or "") != "public"


def connection_of(server: UpstreamServer) -> Connection:
    """What of it belongs to the fingerprint of its tools."""
    return Connection(
        cast("TransportKind", server.transport),
        url=server.url,
        command=server.command,
        args=tuple(server.args),
        env_names=tuple(each.name for each in values.read(server.env)),
    )


def identity_of(server: UpstreamServer) -> str:
    """A hash of all that leads to it, credentials included: an approval is for this connection and no other.

    Of a sign-in, the issuer, the client and the sign-in itself belong to it: whoever signs in anew may do so with
    another account. The tokens do not, which change by themselves. What the tools are is not touched by it: a sign-in
    voids approvals and grants, and withholds nothing, since an administrator made it and saw where it leads.
    """
    sent = [values.identity(values.read(stored)) for stored in (server.headers, server.env)]
    signed = models.standing(server)
    by = [signed.identity] if signed else []
    return canonical.sha256([str(server.pk), connection_of(server).identity(), urlsplit(server.url).query, *sent, *by])


def facts_of(server: UpstreamServer, *, writes: bool) -> ServerFacts:
    """`writes`: one of its tools says, by its name or by a hint, that it changes something."""
    used, signed = server.used_at or server.created_at, models.standing(server)
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
    """What is secret in what is sent to it, by name."""
    kept = [each for stored in (server.headers, server.env) for each in values.read(stored)]
    others = [("the address", server.url), *(("an argument", arg) for arg in server.args)]
    referring = dict.fromkeys(where for where, text in others if any(references.names(text)))
    signed = models.standing(server)
    by = [f"the sign-in at {signed.issuer_host}"] if signed else []
    return [*(each.name for each in kept if each.secret), *referring, *by]


def _auth(server: UpstreamServer, signed: SignIn | None) -> Auth:
    has_secret = any(each.secret for each in values.read(server.headers))
    if has_secret or any(references.names(server.url)):
        return "key"
    return "oauth" if signed else "none"


def place_of(server: UpstreamServer) -> str:
    """Where it is, as administrators see it: of a program, the beginning of its command line, with references as they
    were typed."""
    if server.transport != Transport.STDIO:
        return address_of(server)
    line = shlex.join([server.command, *server.args])
    return line if len(line) <= LONGEST_PLACE else f"{line[: LONGEST_PLACE - 1]}…"


def address_of(server: UpstreamServer) -> str:
    """Where it is, in words, without anything secret."""
    identity: dict[str, Any] = connection_of(server).identity()
    return f"the program {server.command}" if server.transport == Transport.STDIO else str(identity["url"])
