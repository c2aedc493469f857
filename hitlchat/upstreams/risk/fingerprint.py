"""A tool as its server describes it, with its connection and fingerprint; and two records compared.

The fingerprint is one SHA-256 over the record of a tool: everything that a later version could quietly change, and
nothing secret. `docs/fingerprint.md` has the rules, named `hitlchat-canonical-1`, with a worked example.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from django.utils.translation import gettext_noop

from hitlchat.base import canonical
from hitlchat.base.schemas import kind_of, step
from hitlchat.base.visible import Seen, see
from hitlchat.outbound.addresses import DEFAULT_PORTS

Transport = Literal["http", "sse", "stdio"]
PROFILE = "hitlchat-canonical-1"
# In place of a member that is not even null.
_ABSENT: Final = object()
FIELDS = {
    "name": gettext_noop("Name"),
    "title": gettext_noop("Title"),
    "description": gettext_noop("Description"),
    "inputSchema": gettext_noop("Input schema"),
    "outputSchema": gettext_noop("Output schema"),
    "annotations": gettext_noop("Hints"),
    "connection": gettext_noop("Connection"),
}


class Unusable(ValueError):
    """The upstream's description of a tool is none; the message names the field and what was expected."""


@dataclass(frozen=True)
class Offered:
    """One entry of an upstream's `tools/list`; what the upstream left out is None."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None

    @classmethod
    def from_json(cls, entry: object) -> "Offered":
        """Read an entry of the protocol, without other members. Raises: Unusable, a member has the wrong type"""
        if not isinstance(entry, Mapping):
            raise Unusable("the tool: expected an object")
        return cls(
            name=_text(entry, "name") or "",
            title=_text(entry, "title"),
            description=_text(entry, "description"),
            input_schema=_object(entry, "inputSchema") or {},
            output_schema=_object(entry, "outputSchema"),
            annotations=_object(entry, "annotations"),
        )


@dataclass(frozen=True)
class Connection:
    """The way to a server as configured: `${VAR}` stays unreplaced, so that no secret value is part of it."""

    transport: Transport
    url: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env_names: tuple[str, ...] = ()

    def identity(self) -> dict[str, Any]:
        """Return where it leads, as JSON, without anything secret. Raises: ValueError, the URL cannot be understood"""
        if self.transport == "stdio":
            env = sorted(set(self.env_names))
            return {"transport": "stdio", "command": self.command, "args": list(self.args), "env": env}
        # Origin and path: scheme and host in lower case, no default port, no user, query or fragment.
        parts = urlsplit(self.url)
        if not parts.scheme or not parts.hostname:
            raise ValueError("url: expected an address such as https://example.com/mcp")
        host = parts.hostname.lower()
        host = f"[{host}]" if ":" in host else host
        port = f":{parts.port}" if parts.port not in {None, DEFAULT_PORTS.get(parts.scheme)} else ""
        return {"transport": self.transport, "url": f"{parts.scheme.lower()}://{host}{port}{parts.path or '/'}"}


@dataclass(frozen=True)
class Pinned:
    """The record that a person accepted and its hash (64 hexadecimal digits), made by the rules named `profile`."""

    profile: str
    digest: str
    record: dict[str, Any]


def pin(tool: Offered, connection: Connection) -> Pinned:
    """Return the fingerprint of `tool` over `connection`. Raises: NotJson, a schema is none; ValueError, of the URL"""
    annotations = {key: value for key, value in (tool.annotations or {}).items() if value is not None}
    members = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": annotations or None,
        "connection": connection.identity(),
    }
    record = {"profile": PROFILE} | {key: value for key, value in members.items() if value is not None}
    return Pinned(PROFILE, canonical.sha256(record), canonical.loads(canonical.dumps(record)))


@dataclass(frozen=True)
class Difference:
    """One place, as a JSON pointer into the record, with what stood and what stands there; None where nothing does."""

    where: str
    before: Seen | None
    after: Seen | None

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def field(self) -> str:
        first = self.where.split("/")[1]
        return FIELDS.get(first, first)


def difference(before: dict[str, Any], after: dict[str, Any]) -> tuple[Difference, ...]:
    """Return where two records differ, whatever their profiles. Lists of plain values are compared whole, lists of
    objects element by element. Raises: NotJson
    """
    members = (before.keys() | after.keys()) - {"profile"}
    ordered = [*(key for key in FIELDS if key in members), *sorted(members - FIELDS.keys())]
    return tuple(
        found for key in ordered for found in _walk(step("", key), before.get(key, _ABSENT), after.get(key, _ABSENT))
    )


def _text(entry: Mapping[str, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        json_types = kind_of(value)
        raise Unusable(f"{key}: expected text, not {json_types}")
    return value


def _object(entry: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = entry.get(key)
    if value is not None and not isinstance(value, Mapping):
        json_types = kind_of(value)
        raise Unusable(f"{key}: expected an object, not {json_types}")
    return value


def _walk(where: str, before: Any, after: Any) -> Iterator[Difference]:
    one_side = before is _ABSENT or after is _ABSENT
    # Texts are compared, not values: for Python, 1 and True and 1.0 are equal.
    if not one_side and canonical.dumps(before) == canonical.dumps(after):
        return
    match before, after:
        case dict(), dict():
            for key in sorted(before.keys() | after.keys()):
                yield from _walk(step(where, key), before.get(key, _ABSENT), after.get(key, _ABSENT))
        case list(), list() if any(isinstance(each, dict | list) for each in (*before, *after)):
            for index, (one, other) in enumerate(zip_longest(before, after, fillvalue=_ABSENT)):
                yield from _walk(step(where, index), one, other)
        case _:
            # Text as it is beside text or nothing, else as JSON: “5” and 5 must not look the same.
            plain = all(value is _ABSENT or isinstance(value, str) for value in (before, after))
            yield Difference(where, _shown(before, plain), _shown(after, plain))


def _shown(value: Any, plain: bool) -> Seen | None:
    return None if value is _ABSENT else see(value if plain else canonical.pretty(value, indent=2))
