"""The fingerprint of an upstream's tool: one SHA-256 over everything that a later version could quietly change.

What is hashed is the *record* of a tool, a JSON object of these members:

- `profile`: the name of these rules, `hitlchat-canonical-1`;
- `name`, `title`, `description`, `inputSchema`, `outputSchema`, `annotations`: as the upstream sent them;
- `connection`: `transport`, and `url` (origin and path) or `command`, `args` and `env` (the names, sorted).

Members that are absent or null are left out, likewise null members of `annotations` and `annotations` without members.
Secret values (headers, values of environment variables, user, query and fragment of the URL) are never part of it.

The text that is hashed is `gate.canonical`'s: no white space; keys sorted by code point; strings in ASCII, with
`\\uXXXX` in lower case for everything else (UTF-16 surrogates beyond U+FFFF) and `\\"`, `\\\\`, `\\b`, `\\f`, `\\n`,
`\\r` and `\\t` in their short form; whole numbers, when they came without fraction and exponent, with all of their
digits; other numbers as the shortest decimal that reads back as the same double, in Python's notation; no Unicode
normalisation. Not RFC 8785, whose numbers are doubles: there 9007199254740992 and 9007199254740993 have the same hash.
`docs/fingerprint.md` says the same with a worked example.
"""

from dataclasses import dataclass
from typing import Any

from hitlchat.base import canonical
from hitlchat.upstreams.judge.offered import Connection, Offered

PROFILE = "hitlchat-canonical-1"


@dataclass(frozen=True)
class Pinned:
    """What a person accepted: the record and its hash (64 hexadecimal digits), made by the rules named `profile`."""

    profile: str
    digest: str
    record: dict[str, Any]


def pin(tool: Offered, connection: Connection) -> Pinned:
    """The fingerprint of `tool` as offered over `connection`.

    canonical.NotJson: a schema is no JSON value. ValueError: the connection's URL cannot be understood.
    """
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
