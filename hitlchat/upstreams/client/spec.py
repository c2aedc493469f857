"""The spec of a connection: where the server is, what it is given, how long and how large anything may be."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import urlsplit


class BadSpec(ValueError):
    """A field of a spec has no usable value, which no message quotes. `problem`: the message beside the field."""

    def __init__(self, field: str, problem: str) -> None:
        is_of_field = problem.startswith("it ")
        super().__init__(f"{field}{problem.removeprefix('it')}" if is_of_field else f"{field}: {problem}")
        self.problem = problem


# Ours, as servers are told.
VERSION = "0"

TransportKind = Literal["http", "stdio", "sse"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# They belong to the connection, not to whoever configures it.
_OURS = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "upgrade"),
        *("te", "trailer", "keep-alive", "proxy-connection", "expect", "accept", "accept-encoding", "last-event-id"),
        *("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"),
    }
)
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"})


@dataclass(frozen=True)
class Timeouts:
    """Seconds. `connect`: the whole handshake; `call`: one call, without the time in which a `question` waits."""

    connect: float = 30.0
    listing: float = 30.0
    call: float = 60.0
    question: float = 300.0
    health_every: float = 30.0
    health: float = 10.0
    close: float = 5.0
    settle: float = 0.5
    """How long the list of tools must have been quiet after a notice of change before it is read again."""


@dataclass(frozen=True)
class Limits:
    """Bytes of one message, of one call's arguments and of all tool definitions; the rest are counts."""

    message_bytes: int = 4 * 1024 * 1024
    argument_bytes: int = 1024 * 1024
    listing_bytes: int = 8 * 1024 * 1024
    tools: int = 5000
    depth: int = 64
    nodes: int = 200_000
    calls_at_once: int = 32


@dataclass(frozen=True, repr=False)
class ServerSpec:
    """One upstream server, with every `${VAR}` replaced by its value. `secrets`, and headers with credentials, are
    masked in all that comes. `older_protocol`: begin with the handshake of 2025-11-25. `is_ours` tells from a server's
    experimental capabilities whether it is this very installation. Raises: BadSpec
    """

    name: str
    transport: TransportKind
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    allow_private: bool = False
    older_protocol: bool = False
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    is_ours: Callable[[dict[str, dict[str, Any]] | None], bool] = lambda _: False

    def __post_init__(self) -> None:
        if self.transport not in get_args(TransportKind):
            kinds = ", ".join(get_args(TransportKind))
            raise BadSpec("transport", f"it must be one of {kinds}, not {self.transport!r}")
        if self.transport == "stdio":
            self._check_command()
        else:
            _check_url(self.url)
            _check_headers(self.headers)

    def __repr__(self) -> str:
        return f"ServerSpec({self.name!r}, {self.transport})"

    @property
    def hidden(self) -> tuple[str, ...]:
        credentials = (value for name, value in self.headers.items() if name.lower() in _CREDENTIALS)
        parts = (part for value in credentials for part in (value, value.partition(" ")[2]))
        return tuple(dict.fromkeys(value for value in (*self.secrets, *parts) if value))

    def _check_command(self) -> None:
        if not self.command.strip():
            raise BadSpec("command", "it must name a program")
        if any("\0" in text for text in (self.command, *self.args, *self.env.values())):
            raise BadSpec("command", "it must not contain NUL characters, nor may args or env")
        for name in self.env:
            if not _VARIABLE.fullmatch(name):
                raise BadSpec("env", f"{name!r} is not a valid name for an environment variable")


def _check_url(url: str) -> None:
    if any(character <= " " or character == "\x7f" for character in url):
        raise BadSpec("url", "it must not contain spaces or control characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadSpec("url", "it has no usable host or port") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise BadSpec("url", "it must be an address that begins with https:// or http:// and names a host")
    if parts.username is not None or parts.password is not None:
        raise BadSpec("url", "it must not contain a user name or password: use a header")


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise BadSpec("headers", f"{name!r} is not a valid header name")
        if name.lower() in _OURS:
            raise BadSpec("headers", f"{name} is set by the connection itself")
        if value != value.strip():
            raise BadSpec("headers", f"the value of {name} begins or ends with a space")
        if not _FIELD_VALUE.fullmatch(value):
            raise BadSpec("headers", f"the value of {name} has characters that a header cannot carry")
