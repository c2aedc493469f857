"""Risk of an upstream server, in points, floors and levels.

| what | points |
|---|---|
| transport | private network 1; unencrypted over the network 1*; stdio, loopback, public 0 |
| sign-in | stdio and loopback 0; standard OAuth 0; API key or bearer token 1; OAuth of its own kind 2; none 2* |
| trust | in the gallery from the vendor 0, from the community 1; address typed in, on a host of the gallery 1; else 2 |
| documentation | one each: no link, found wanting, not used for 90 days; at most 2 |

Floors, each straight to L5: `no-auth-write` (remote, no sign-in, offers tools that write), `no-auth-unknown` (remote,
no sign-in, unknown host), `privileged-scope` (an OAuth scope such as admin, write_all, delete_repo).

Where this differs from the table it comes from (the entries with *): no sign-in cost nothing there, as much as OAuth,
so that a server open to everyone could be called safe; and whatever is not on this machine is at least L2, since L1
means “no external access”. A host that is neither loopback nor clearly private counts as public, a value that is not
known as the worst of its kind.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from hitlchat.upstreams.risk.offered import Transport

LOWEST, HIGHEST = 1, 5


@dataclass(frozen=True)
class Signal:
    """One thing that was noticed: what it adds to the score, and the reason for a person."""

    points: int
    reason: str


@dataclass(frozen=True)
class Floor:
    """A rule that sets the level by itself, whatever the points say. `id` is its name in records."""

    id: str
    level: int
    reason: str


@dataclass(frozen=True)
class Assessment:
    """The risk of a server or a tool: `level` is 1 to 5; `floor` the rule that set it, if one did."""

    signals: tuple[Signal, ...]
    floor: Floor | None = None
    least: int = LOWEST

    @property
    def score(self) -> int:
        return sum(signal.points for signal in self.signals)

    @property
    def level(self) -> int:
        return max(self.least, bucket(self.score), self.floor.level if self.floor else LOWEST)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons in sentences, the heaviest first."""
        heaviest = sorted(self.signals, key=lambda signal: -signal.points)
        told = [*([self.floor.reason] if self.floor else []), *(signal.reason for signal in heaviest)]
        # A rule and a point may be made of the same.
        return tuple(dict.fromkeys(told))


def bucket(score: int) -> int:
    """0 points are L1, each one more is a level, from 4 points on L5."""
    return max(LOWEST, min(HIGHEST, LOWEST + score))


def worst(*floors: Floor | None) -> Floor | None:
    """The highest of those that apply; of equal ones the first."""
    return max((floor for floor in floors if floor), key=lambda floor: floor.level, default=None)


Auth = Literal["none", "key", "oauth", "own-oauth"]
Trust = Literal["vendor", "community", "known-host", "unknown"]
Reach = Literal["local", "private", "public"]

IDLE_DAYS = 90
_MOST_FOR_DOCUMENTATION = 2
_PRIVATE_SUFFIXES = (".local", ".internal", ".intranet", ".lan", ".home.arpa")
_PRIVILEGED = re.compile(r"\badmin|write_all|\bdelete|[._:]all\b|[._:]admin\b|\bfull_access|^\*$", re.IGNORECASE)


@dataclass(frozen=True)
class ServerFacts:
    """Facts about a server. `url` is empty with stdio; `writes`: any of its tools says, by its name or by a hint,
    that it changes something; `documented`: there is a link; `adequate`: a person found what it leads to good enough,
    or has not looked; `idle_days`: since its last call, None if it is new.
    """

    transport: Transport
    url: str = ""
    auth: Auth = "none"
    trust: Trust = "unknown"
    scopes: tuple[str, ...] = ()
    writes: bool = True
    documented: bool = False
    adequate: bool = True
    idle_days: int | None = None

    @property
    def reach(self) -> Reach:
        if self.transport == "stdio":
            return "local"
        try:
            return reach(urlsplit(self.url).hostname or "")
        except ValueError:
            return "public"

    @property
    def remote(self) -> bool:
        return self.reach != "local"


def is_privileged(scope: str) -> bool:
    """Return whether a right of this name reaches far beyond a single task."""
    return _PRIVILEGED.search(scope) is not None


@lru_cache(maxsize=256)
def assess_server(server: ServerFacts) -> Assessment:
    signals = (*_transport(server), *_auth(server), *_trust(server), *_documentation(server))
    return Assessment(signals, worst(*_floors(server)), least=2 if server.remote else 1)


def reach(host: str) -> Reach:
    """Return where a host is, as far as its name says."""
    host = host.lower().rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return "local"
    try:
        address = ip_address(host)
    except ValueError:
        # A name without a dot is one of this network; a number without a dot may be any address.
        here = (host and "." not in host and not host[:1].isdigit()) or host.endswith(_PRIVATE_SUFFIXES)
        return "private" if here else "public"
    if address.is_loopback:
        return "local"
    return "private" if address.is_private or address.is_link_local else "public"


def _transport(server: ServerFacts) -> Iterator[Signal]:
    if server.reach == "private":
        yield Signal(1, "It is on a private network, where other machines are within its reach.")
    elif server.reach == "public":
        yield Signal(0, "It is on the public internet.")
    else:
        yield Signal(0, "It runs on this machine.")
    if server.remote and not server.url.lower().startswith("https://"):
        yield Signal(1, "The connection is not encrypted.")


def _auth(server: ServerFacts) -> Iterator[Signal]:
    if not server.remote:
        return
    match server.auth:
        case "oauth":
            yield Signal(0, "It asks for sign-in by standard OAuth.")
        case "key":
            yield Signal(1, "It is used with a long-lived key or token.")
        case "none":
            yield Signal(2, "It asks for no sign-in: anyone can use it, and what answers has proved nothing.")
        case _:
            yield Signal(2, "It asks for sign-in in a way of its own.")


def _trust(server: ServerFacts) -> Iterator[Signal]:
    match server.trust:
        case "vendor":
            yield Signal(0, "It is in the gallery, and comes from the vendor itself.")
        case "community":
            yield Signal(1, "It is in the gallery, and is kept by a community.")
        case "known-host":
            yield Signal(1, "Its address was typed in; the host is one of the gallery's.")
        case _:
            yield Signal(2, "Nobody vouches for it: it is not in the gallery.")


def _documentation(server: ServerFacts) -> Iterator[Signal]:
    found = []
    if not server.documented:
        found.append("There is no link to its documentation.")
    if not server.adequate:
        found.append("Its documentation was found wanting.")
    if server.idle_days is not None and server.idle_days >= IDLE_DAYS:
        found.append(f"It has not been used for {server.idle_days:,} days.")
    for count, reason in enumerate(found):
        yield Signal(1 if count < _MOST_FOR_DOCUMENTATION else 0, reason)


def _floors(server: ServerFacts) -> Iterator[Floor]:
    unguarded = server.remote and server.auth == "none"
    if unguarded and server.writes:
        yield Floor("no-auth-write", 5, "It is remote, asks for no sign-in, and offers tools that change things.")
    if unguarded and server.trust not in {"vendor", "community", "known-host"}:
        yield Floor("no-auth-unknown", 5, "It is remote, asks for no sign-in, and nobody vouches for its host.")
    if scope := next(filter(is_privileged, server.scopes), None):
        yield Floor("privileged-scope", 5, f"It holds the right “{scope}”, which reaches far beyond a single task.")
