"""A server as an administrator describes it: its headers and variables, how they are kept, and what may be wrong.

A secret is sealed, unless all that is secret in it is a reference: `Bearer ${TOKEN}` stays as it is.
"""

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from django.core.exceptions import ValidationError

from hitlchat.base.canonical import storable
from hitlchat.base.problems import Invalid
from hitlchat.outbound.addresses import origin_of
from hitlchat.secrets import references, sealing
from hitlchat.secrets.values import ONLY_REFERENCE, SHORTEST_SECRET, Stored, Value, missing_credentials, seal
from hitlchat.upstreams.client.spec import BadSpec, ServerSpec
from hitlchat.upstreams.models import SERVER_NAME, Transport, Trust, UpstreamServer

PURPOSE = "upstream secret"
MOST_VALUES = 50
LONGEST_VALUE = 8000
MOST_ARGS = 100
LONGEST_ARG = 8000
LONGEST_CALL_SECONDS = 3600
NOT_FOUND = "No such program was found on this machine: give its whole path, or have it installed where PATH leads."
# What of the draft belongs to which transport, and something that is right in place of the rest.
_OF_PROGRAMS, _OF_ADDRESSES = ("command", "env"), ("url", "headers")
_RIGHT: dict[str, Any] = {"url": "https://localhost", "command": "true", "headers": {}, "env": {}}
LEADS_ELSEWHERE = (
    "The address leads to another host now: type the secrets once more, so that no other server gets them unmeant."
)


class NoValue(ValueError):
    """A value is missing or cannot be read; the message names it, in words for the administrator."""


@dataclass(frozen=True)
class Filled:
    values: Mapping[str, str]
    secrets: tuple[str, ...]


def read_values(stored: Iterable[Mapping[str, Any]]) -> tuple[Stored, ...]:
    """Return the values of a JSON column."""
    return tuple(Stored(each["name"], each["value"], each["secret"], each.get("fingerprint", "")) for each in stored)


def stored_values(stored: Iterable[Stored]) -> list[dict[str, Any]]:
    """Return the values for a JSON column."""
    return [asdict(each) | {"sealed": each.sealed} for each in stored]


def values_problem(values: Iterable[Value], stored: Iterable[Stored]) -> str | None:
    """Return what is wrong with them, in a sentence."""
    given, known = list(values), {each.name: each for each in stored}
    if len(given) > MOST_VALUES:
        return f"At most {MOST_VALUES} entries, not {len(given)}."
    lowered = [each.name.lower() for each in given]
    if twice := next((each.name for each in given if lowered.count(each.name.lower()) > 1), None):
        return f"{twice[:64]} is there twice."
    return next((wrong for each in given if (wrong := _value_problem(each, known.get(each.name)))), None)


def _value_problem(value: Value, stored: Stored | None) -> str | None:
    text = value.value
    if text is None:
        has_one = stored is not None and (value.secret or not stored.sealed)
        return None if has_one else f"{value.name[:64]}: there is no value yet."
    if len(text) > LONGEST_VALUE or storable(text) != text:
        return f"{value.name[:64]}: expected a text of at most {LONGEST_VALUE:,} characters, without U+0000."
    if withheld := next(filter(None, map(references.withheld, references.names(text))), None):
        return f"{value.name[:64]}: {withheld}"
    if value.secret and not ONLY_REFERENCE.fullmatch(text) and len(text) < SHORTEST_SECRET:
        return f"{value.name[:64]}: a secret has at least {SHORTEST_SECRET} characters; say if it is none."
    return None


def keep_values(values: Iterable[Value], stored: Iterable[Stored]) -> tuple[Stored, ...]:
    """Return how they are to be stored, once `values_problem` has found nothing."""
    known = {each.name: each for each in stored}
    return tuple(known[each.name] if each.value is None else _to_store(each, each.value) for each in values)


def _to_store(given: Value, text: str) -> Stored:
    if not given.secret or ONLY_REFERENCE.fullmatch(text):
        return Stored(given.name, text, given.secret)
    return seal(given, text, PURPOSE)


def values_identity(stored: Iterable[Stored]) -> list[list[str]]:
    """The same as long as nothing was changed; of a secret, nothing that gives it away."""
    return sorted([each.name, each.mark] for each in stored)


def fill_values(stored: Iterable[Stored]) -> Filled:
    """The values as the server gets them, and all of it that must be masked. NoValue."""
    values: dict[str, str] = {}
    secrets: list[str] = []
    for each in stored:
        template = _template(each)
        values[each.name] = filled_template(each.name, template)
        secrets += secrets_of(each.name, template)
        if each.secret:
            # With and without a scheme such as Bearer.
            secrets += [values[each.name], values[each.name].partition(" ")[2]]
    return Filled(values, tuple(filter(None, secrets)))


def _template(stored: Stored) -> str:
    """The text to fill in. NoValue."""
    if not stored.sealed:
        return stored.value
    try:
        return sealing.unseal(stored.value, PURPOSE)
    except sealing.Unsealable as error:
        raise NoValue(f"{stored.name}: {error}") from error


def filled_template(name: str, template: str) -> str:
    """`template` with its references replaced. NoValue."""
    try:
        return references.filled(template)
    except references.Missing as error:
        raise NoValue(f"{name}: {error}") from error


def secrets_of(name: str, template: str) -> list[str]:
    """Return what the environment adds to it. NoValue: one is too short to be masked."""
    found = [(variable, references.value_of(variable)) for variable in references.names(template)]
    for variable, value in found:
        if len(value) < SHORTEST_SECRET:
            raise NoValue(f"{name}: {variable} has fewer than {SHORTEST_SECRET} characters, too few to be masked.")
    return [value for _, value in found]


def takes_secrets_along(saved: UpstreamServer, url: str, headers: Iterable[Value]) -> bool:
    """Would what is stored for the host of `saved` be sent to another one, or without encryption?"""
    return bool(url) and any(each.value is None for each in headers) and _host(url) != _host(saved.url)


def _host(url: str) -> str:
    try:
        return origin_of(url)
    except ValueError:
        return url


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
    shown = {key: tuple(each.shown() for each in read_values(plain[key])) for key in ("headers", "env")}
    return ServerDraft(**plain | shown | {"args": tuple(server.args)})


def problems(draft: ServerDraft, saved: UpstreamServer | None = None) -> dict[str, str]:
    """All that is wrong with the draft: a sentence for each field, none if it can be kept."""
    errors = _errors(draft, _stored(saved))
    if saved and takes_secrets_along(saved, draft.url, draft.headers):
        errors.setdefault("headers", LEADS_ELSEWHERE)
    return errors


def columns(draft: ServerDraft, saved: UpstreamServer | None = None) -> dict[str, Any]:
    """Return how the draft is to be stored. BadServer."""
    stored = _stored(saved)
    if errors := problems(draft, saved):
        raise BadServer(errors)
    found = {each.name: getattr(draft, each.name) for each in fields(ServerDraft)}
    program = draft.transport == Transport.STDIO
    # What does not belong to the transport would be kept for nobody to see.
    found |= {"url": "", "allow_private": False} if program else {"command": ""}
    return found | {
        "headers": stored_values(() if program else keep_values(draft.headers, stored["headers"])),
        "env": stored_values(keep_values(draft.env, stored["env"]) if program else ()),
        "args": list(draft.args) if program else [],
    }


def can_be_found(draft: ServerDraft) -> bool:
    """Return whether its program is on this machine, where the connection would look: from an empty folder, and so not
    by a relative path. True where nobody can tell.
    """
    given = {each.name: each.value for each in draft.env}
    path = given.get("PATH", "")
    if path is None or any(references.names(path)):
        return True
    if "/" in draft.command:
        return draft.command.startswith("/") and shutil.which(draft.command) is not None
    return shutil.which(draft.command, path=path or os.environ.get("PATH") or os.defpath) is not None


def _stored(saved: UpstreamServer | None) -> dict[str, tuple[Stored, ...]]:
    return {name: read_values(getattr(saved, name) if saved else ()) for name in ("headers", "env")}


def _errors(draft: ServerDraft, stored: dict[str, tuple[Stored, ...]]) -> dict[str, str]:
    errors = dict(_plain_errors(draft))
    if wrong := _without_token(draft.headers) or values_problem(draft.headers, stored["headers"]):
        errors["headers"] = wrong
    if wrong := values_problem(draft.env, stored["env"]):
        errors["env"] = wrong
    for field, wrong in _connection_errors(draft, stored, errors):
        errors.setdefault(field, wrong)
    return errors


def _without_token(headers: Iterable[Value]) -> str | None:
    """A header for signing in that names the way and goes no further, as it stands when its preset was pressed."""
    for each in headers:
        if each.name.lower() == "authorization" and (missing := missing_credentials(each.value or "")):
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
    draft: ServerDraft, stored: dict[str, tuple[Stored, ...]], known: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    """Yield what the connection itself would say, tried with the references in place of their values, and each field by
    itself; nothing of a field that is `known` to be wrong.
    """
    yield from _misplaced(draft).items()
    if "transport" in known:
        return
    for field in _OF_PROGRAMS if draft.transport == Transport.STDIO else _OF_ADDRESSES:
        if field not in known and (wrong := _connection_error(draft, field, stored)):
            yield field, wrong


def _connection_error(draft: ServerDraft, field: str, stored: dict[str, tuple[Stored, ...]]) -> str | None:
    given = getattr(draft, field)
    try:
        if field in stored:
            known = {each.name: each for each in stored[field]}
            given = {each.name: _template(known[each.name]) if each.value is None else each.value for each in given}
        ServerSpec(draft.name, draft.transport, **_RIGHT | {"args": draft.args, field: given})  # type: ignore[arg-type]
    except (BadSpec, NoValue) as error:
        problem = error.problem if isinstance(error, BadSpec) else str(error)
        return f"{problem[:1].upper()}{problem[1:].removesuffix('.')}."
    return None


def _misplaced(draft: ServerDraft) -> dict[str, str]:
    """Return where a server is decides what a person accepts: that must not hang on the environment."""
    where = draft.url.partition("?")[0]
    if any(references.names(where)):
        return {"url": "A reference such as ${NAME} may only stand behind the “?”."}
    if any(references.names(draft.command)):
        return {"command": "A reference such as ${NAME} may stand in arguments and env, not in the program's name."}
    used = [*references.names(draft.url), *(name for arg in draft.args for name in references.names(arg))]
    withheld = next(filter(None, map(references.withheld, used)), None)
    return {"url" if draft.url else "args": withheld} if withheld else {}
