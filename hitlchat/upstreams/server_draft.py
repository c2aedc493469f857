"""A server as an administrator describes it: its headers and variables, how they are kept, and what may be wrong.

A secret is sealed, unless all that is secret in it is a reference: `Bearer ${TOKEN}` stays as it is.
"""

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
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
NOT_FOUND = "No such program was found on this machine. Enter its full path, or have it installed in a folder on PATH."
# What of the draft belongs to which transport, and something that is right in place of the rest.
_OF_PROGRAMS, _OF_ADDRESSES = ("command", "env"), ("url", "headers")
_RIGHT: dict[str, Any] = {"url": "https://localhost", "command": "true", "headers": {}, "env": {}}
LEADS_ELSEWHERE = (
    "The address now leads to another host: enter the secrets again, so that no other server gets them by accident."
)


class NoValue(ValueError):
    """A value is missing or cannot be read; the message names it, in words for the administrator."""


def read_values(stored: Iterable[Mapping[str, Any]]) -> tuple[Stored, ...]:
    return tuple(Stored(each["name"], each["value"], each["secret"], each.get("fingerprint", "")) for each in stored)


def stored_values(stored: Iterable[Stored]) -> list[dict[str, Any]]:
    return [asdict(each) | {"sealed": each.sealed} for each in stored]


def filled(name: str, template: str, secrets: list[str]) -> str:
    """Return `template` filled in; values go to `secrets`. Raises: NoValue, also of one too short to be masked"""
    try:
        text = references.filled(template)
    except references.Missing as error:
        raise NoValue(f"{name}: {error}") from error
    for variable in references.names(template):
        if len(value := references.value_of(variable)) < SHORTEST_SECRET:
            raise NoValue(f"{name}: {variable} has fewer than {SHORTEST_SECRET} characters, too few to be masked.")
        secrets.append(value)
    return text


def filled_values(stored: Iterable[Mapping[str, Any]], secrets: list[str]) -> dict[str, str]:
    """Return the values of a JSON column as the server gets them; secrets are added to `secrets`. Raises: NoValue"""
    values: dict[str, str] = {}
    for each in read_values(stored):
        text = values[each.name] = filled(each.name, _template(each), secrets)
        if each.secret:
            # With and without a scheme such as Bearer.
            secrets += [text, text.partition(" ")[2]]
    return values


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
        return shlex.join([self.command, *self.args])


def draft_of(server: UpstreamServer) -> ServerDraft:
    """Return a server as a draft to be changed. Its secrets are left out, and stay as they are stored."""
    plain = {each.name: getattr(server, each.name) for each in fields(ServerDraft)}
    shown = {key: tuple(each.shown() for each in read_values(plain[key])) for key in ("headers", "env")}
    return ServerDraft(**plain | shown | {"args": tuple(server.args)})


def problems(draft: ServerDraft, saved: UpstreamServer | None = None) -> dict[str, str]:
    """Return all that is wrong with the draft: a sentence for each field, none if it can be stored."""
    stored, errors = _stored(saved), dict(_plain_errors(draft))
    if wrong := _without_token(draft.headers) or _values_problem(draft.headers, stored["headers"]):
        errors["headers"] = wrong
    if wrong := _values_problem(draft.env, stored["env"]):
        errors["env"] = wrong
    for field, wrong in _connection_errors(draft, stored, errors):
        errors.setdefault(field, wrong)
    sends_stored = draft.url and any(each.value is None for each in draft.headers)
    if saved and sends_stored and _host(draft.url) != _host(saved.url):
        errors.setdefault("headers", LEADS_ELSEWHERE)
    return errors


def columns(draft: ServerDraft, saved: UpstreamServer | None = None) -> dict[str, Any]:
    """Return how the draft is to be stored. Raises: BadServer"""
    stored = _stored(saved)
    if errors := problems(draft, saved):
        raise BadServer(errors)
    found = {each.name: getattr(draft, each.name) for each in fields(ServerDraft)}
    program = draft.transport == Transport.STDIO
    # Fields of other transports are cleared: no page would show them.
    found |= {"url": "", "allow_private": False} if program else {"command": ""}
    return found | {
        "headers": [] if program else _to_store(draft.headers, stored["headers"]),
        "env": _to_store(draft.env, stored["env"]) if program else [],
        "args": list(draft.args) if program else [],
    }


def can_be_found(draft: ServerDraft) -> bool:
    """Return whether its program is found from an empty folder, so by no relative path. True where nobody can tell."""
    given = {each.name: each.value for each in draft.env}
    path = given.get("PATH", "")
    if path is None or any(references.names(path)):
        return True
    if "/" in draft.command:
        return draft.command.startswith("/") and shutil.which(draft.command) is not None
    return shutil.which(draft.command, path=path or os.environ.get("PATH") or os.defpath) is not None


def _stored(saved: UpstreamServer | None) -> dict[str, tuple[Stored, ...]]:
    return {name: read_values(getattr(saved, name) if saved else ()) for name in ("headers", "env")}


def _template(stored: Stored) -> str:
    """Return the text to fill in. Raises: NoValue"""
    if not stored.sealed:
        return stored.value
    try:
        return sealing.unseal(stored.value, PURPOSE)
    except sealing.Unsealable as error:
        raise NoValue(f"{stored.name}: {error}") from error


def _to_store(values: Iterable[Value], stored: Iterable[Stored]) -> list[dict[str, Any]]:
    """Return values for a JSON column, once `_values_problem` has found nothing."""
    before = {each.name: each for each in stored}
    found = []
    for each in values:
        if each.value is None:
            found.append(before[each.name])
        elif not each.secret or ONLY_REFERENCE.fullmatch(each.value):
            found.append(Stored(each.name, each.value, each.secret))
        else:
            found.append(seal(each, each.value, PURPOSE))
    return stored_values(found)


def _values_problem(values: Sequence[Value], stored: Iterable[Stored]) -> str | None:
    before = {each.name: each for each in stored}
    if len(values) > MOST_VALUES:
        return f"At most {MOST_VALUES} entries, not {len(values)}."
    lowered = [each.name.lower() for each in values]
    if twice := next((each.name for each in values if lowered.count(each.name.lower()) > 1), None):
        return f"{twice[:64]} is listed twice."
    return next((wrong for each in values if (wrong := _value_problem(each, before.get(each.name)))), None)


def _value_problem(value: Value, stored: Stored | None) -> str | None:
    text = value.value
    if text is None:
        has_one = stored is not None and (value.secret or not stored.sealed)
        return None if has_one else f"{value.name[:64]}: no value yet."
    if len(text) > LONGEST_VALUE or storable(text) != text:
        return f"{value.name[:64]}: expected a text of at most {LONGEST_VALUE:,} characters, without U+0000."
    if withheld := next(filter(None, map(references.withheld, references.names(text))), None):
        return f"{value.name[:64]}: {withheld}"
    if value.secret and not ONLY_REFERENCE.fullmatch(text) and len(text) < SHORTEST_SECRET:
        return f"{value.name[:64]}: a secret has at least {SHORTEST_SECRET} characters. If it is not secret, say so."
    return None


def _without_token(headers: Iterable[Value]) -> str | None:
    """Return what an Authorization header lacks that names a scheme and nothing more, as its preset leaves it."""
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
    draft: ServerDraft, stored: dict[str, tuple[Stored, ...]], errors: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    """Yield what the spec rejects of each field by itself, references in place of their values; nothing of `errors`."""
    yield from _misplaced(draft).items()
    if "transport" in errors:
        return
    for field in _OF_PROGRAMS if draft.transport == Transport.STDIO else _OF_ADDRESSES:
        if field in errors:
            continue
        given = getattr(draft, field)
        try:
            if field in stored:
                own = {each.name: each for each in stored[field]}
                given = {each.name: _template(own[each.name]) if each.value is None else each.value for each in given}
            ServerSpec(draft.name, draft.transport, **_RIGHT | {"args": draft.args, field: given})  # type: ignore[arg-type]
        except (BadSpec, NoValue) as error:
            problem = error.problem if isinstance(error, BadSpec) else str(error)
            yield field, f"{problem[:1].upper()}{problem[1:].removesuffix('.')}."


def _misplaced(draft: ServerDraft) -> dict[str, str]:
    """Return errors of references in the address or program: a person accepts these as they are."""
    where = draft.url.partition("?")[0]
    if any(references.names(where)):
        return {"url": "A reference such as ${NAME} is only allowed after the “?”."}
    if any(references.names(draft.command)):
        return {
            "command": "A reference such as ${NAME} is allowed in arguments and env, but not in the program's name."
        }
    used = [*references.names(draft.url), *(name for arg in draft.args for name in references.names(arg))]
    withheld = next(filter(None, map(references.withheld, used)), None)
    return {"url" if draft.url else "args": withheld} if withheld else {}


def _host(url: str) -> str:
    try:
        return origin_of(url)
    except ValueError:
        return url
