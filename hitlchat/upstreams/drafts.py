"""A server as an administrator describes it, and what may be wrong with that."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError

from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.secrets import references
from hitlchat.upstreams import values
from hitlchat.upstreams.client import ServerSpec, can_be_found_with
from hitlchat.upstreams.models import SERVER_NAME, Transport, Trust, UpstreamServer
from hitlchat.upstreams.values import Kept, Value

SENTENCE = (
    "The address leads to another host now: type the secrets once more, so that no other server gets them unmeant."
)


def takes_secrets_along(standing: UpstreamServer, url: str, headers: Iterable[Value]) -> bool:
    """Would what is stored for the host of `standing` be sent to another one, or without encryption?"""
    return bool(url) and any(each.value is None for each in headers) and _host(url) != _host(standing.url)


def _host(url: str) -> object:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url


MOST_ARGS = 100
LONGEST_ARG = 8000
LONGEST_CALL_SECONDS = 3600
NOT_FOUND = "No such program was found on this machine: give its whole path, or have it installed where PATH leads."
# What of the draft belongs to which transport, and something that is right in place of the rest.
_OF_PROGRAMS, _OF_ADDRESSES = ("command", "env"), ("url", "headers")
_RIGHT: dict[str, Any] = {"url": "https://localhost", "command": "true", "headers": {}, "env": {}}


class BadServer(Invalid):
    """The description cannot be kept: `errors` has a sentence for each field."""


@dataclass(frozen=True)
class ServerDraft:
    """`${NAME}` may stand in headers, args, env and in the query of the URL, for the server's environment."""

    name: str
    transport: str = "http"
    url: str = ""
    headers: tuple[Value, ...] = ()
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[Value, ...] = ()
    allow_private: bool = False
    call_seconds: int = 60
    older_protocol: bool = False
    enabled: bool = True
    trust: str = Trust.UNKNOWN.value
    gallery_entry: str = ""
    docs_url: str = ""
    docs_adequate: bool = True

    @property
    def command_line(self) -> str:
        """Return what would be started, as a shell would be told."""
        return shlex.join([self.command, *self.args])


def draft_of(server: UpstreamServer) -> ServerDraft:
    """`server` as it is, to be changed; its secrets are left out, which keeps them."""
    plain = {each.name: getattr(server, each.name) for each in fields(ServerDraft)}
    shown = {key: tuple(each.shown() for each in values.read(plain[key])) for key in ("headers", "env")}
    return ServerDraft(**plain | shown | {"args": tuple(server.args)})


def problems(draft: ServerDraft, standing: UpstreamServer | None = None) -> dict[str, str]:
    """All that is wrong with the draft: a sentence for each field, none if it can be kept."""
    errors = _errors(draft, _kept(standing))
    if standing and takes_secrets_along(standing, draft.url, draft.headers):
        errors.setdefault("headers", SENTENCE)
    return errors


def columns(draft: ServerDraft, standing: UpstreamServer | None = None) -> dict[str, Any]:
    """Return how the draft is to be stored. BadServer."""
    kept = _kept(standing)
    if errors := problems(draft, standing):
        raise BadServer(errors)
    found = {each.name: getattr(draft, each.name) for each in fields(ServerDraft)}
    program = draft.transport == Transport.STDIO
    # What does not belong to the transport would be kept for nobody to see.
    found |= {"url": "", "allow_private": False} if program else {"command": ""}
    return found | {
        "headers": values.written(() if program else values.keep(draft.headers, kept["headers"])),
        "env": values.written(values.keep(draft.env, kept["env"]) if program else ()),
        "args": list(draft.args) if program else [],
    }


def can_be_found(draft: ServerDraft) -> bool:
    """Return whether its program is on this machine, where the connection would look.

    Yes if that cannot be told here.
    """
    given = {each.name: each.value for each in draft.env}
    path = given.get("PATH", "")
    if path is None or any(references.names(path)):
        return True
    return can_be_found_with(draft.command, {"PATH": path})


def _kept(standing: UpstreamServer | None) -> dict[str, tuple[Kept, ...]]:
    return {name: values.read(getattr(standing, name) if standing else ()) for name in ("headers", "env")}


def _errors(draft: ServerDraft, kept: dict[str, tuple[Kept, ...]]) -> dict[str, str]:
    errors = dict(_plain_errors(draft))
    if said := _without_token(draft.headers) or values.problem(draft.headers, kept["headers"]):
        errors["headers"] = said
    if said := values.problem(draft.env, kept["env"]):
        errors["env"] = said
    for field, said in _connection_errors(draft, kept, errors):
        errors.setdefault(field, said)
    return errors


def _without_token(headers: Iterable[Value]) -> str | None:
    """A header for signing in that names the way and goes no further, as it stands when its preset was pressed."""
    for each in headers:
        if each.name.lower() == "authorization" and (missing := values.missing(each.value or "")):
            return f"{each.name[:64]}: type {missing} after {(each.value or '').strip()}."
    return None


def _plain_errors(draft: ServerDraft) -> Iterable[tuple[str, str]]:
    try:
        SERVER_NAME(draft.name)
    except ValidationError as error:
        yield "name", error.messages[0]
    if draft.name in {".", ".."}:
        # No page could have it in its address.
        yield "name", "Use a letter or digit in the name."
    if draft.transport not in Transport.values:
        yield "transport", f"Expected one of {', '.join(Transport.values)}."
    if not 1 <= draft.call_seconds <= LONGEST_CALL_SECONDS:
        yield "call_seconds", f"Expected a number of seconds from 1 to {LONGEST_CALL_SECONDS:,}."
    if draft.trust not in Trust.values:
        yield "trust", f"Expected one of {', '.join(Trust.values)}."
    if draft.docs_url and not draft.docs_url.lower().startswith(("https://", "http://")):
        yield "docs_url", "Expected an address that begins with https:// or http://."
    yield from _text_errors(draft)


def _text_errors(draft: ServerDraft) -> Iterable[tuple[str, str]]:
    for field, most in (("url", 2000), ("docs_url", 2000), ("command", 1000), ("gallery_entry", 64)):
        text = getattr(draft, field)
        if len(text) > most or storable(text) != text:
            yield field, f"Expected a text of at most {most:,} characters, without U+0000."
    if len(draft.args) > MOST_ARGS or any(len(arg) > LONGEST_ARG or storable(arg) != arg for arg in draft.args):
        yield "args", f"Expected at most {MOST_ARGS} arguments of at most {LONGEST_ARG:,} characters."


def _connection_errors(
    draft: ServerDraft, kept: dict[str, tuple[Kept, ...]], known: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    """Yield what the connection itself would say, tried with the references in place of their values, and each field by
    itself; nothing of a field that is `known` to be wrong.
    """
    yield from _misplaced(draft).items()
    if "transport" in known:
        return
    for field in _OF_PROGRAMS if draft.transport == Transport.STDIO else _OF_ADDRESSES:
        if field not in known and (said := _said_by_connection(draft, field, kept)):
            yield field, said


def _said_by_connection(draft: ServerDraft, field: str, kept: dict[str, tuple[Kept, ...]]) -> str | None:
    given = getattr(draft, field)
    try:
        value = _texts(given, kept[field]) if field in kept else given
        ServerSpec(draft.name, draft.transport, **_RIGHT | {"args": draft.args, field: value})  # type: ignore[arg-type]
    except ValueError as error:
        # The field's name stands beside it already.
        said = str(error).removeprefix(f"{field}: ")
        said = f"it{said.removeprefix(field)}" if said.startswith(field) else said
        return f"{said[:1].upper()}{said[1:].removesuffix('.')}."
    return None


def _misplaced(draft: ServerDraft) -> dict[str, str]:
    """Return where a server is decides what a person accepts: that must not hang on the environment."""
    where = draft.url.partition("?")[0]
    if any(references.names(where)):
        return {"url": "A reference such as ${NAME} may only stand behind the “?”."}
    if any(references.names(draft.command)):
        return {"command": "A reference such as ${NAME} may stand in arguments and env, not in the program's name."}
    used = [*references.names(draft.url), *(name for arg in draft.args for name in references.names(arg))]
    said = next(filter(None, map(references.withheld, used)), None)
    return {"url" if draft.url else "args": said} if said else {}


def _texts(given: tuple[Value, ...], standing: tuple[Kept, ...]) -> dict[str, str]:
    known = {each.name: each for each in standing}
    return {each.name: known[each.name].template() if each.value is None else each.value for each in given}
