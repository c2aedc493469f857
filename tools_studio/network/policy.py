"""Policy of a tool's requests: to which places, by which methods, how large and how long."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

from httpx2 import URL, InvalidURL

from hitlchat.outbound.addresses import (
    DEFAULT_PORTS,
    Address,
    is_local,
    is_local_name,
    is_metadata_name,
    is_public,
    literal,
)
from tools_studio.capabilities import (
    FETCH_METHODS,
    MOST_BYTES,
    MOST_REDIRECTS,
    MOST_SECONDS,
    READING_METHODS,
    Fetch,
    FetchMode,
)

URL_CHARS = 8192

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

# The value of a variable by its name. LookupError or ValueError: there is none, in words for the tool.
Resolver = Callable[[str], str]


def no_values(name: str) -> str:
    raise LookupError(f"{name} is no variable of this tool")


@dataclass(frozen=True)
class Place:
    """`host` is ASCII in lower case; an address stands in its shortest spelling, without brackets."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        """Return the place as people name it: `api.example.com`, `api.example.com:8443`, `http://intranet`."""
        scheme = "http://" if self.scheme == "http" else ""
        return f"{scheme}{self.netloc}"

    @property
    def netloc(self) -> str:
        """Return the place as the header Host says it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True)
class Listed:
    """One named host. With `below` every host below it is meant, and not the host itself."""

    place: Place
    below: bool = False

    def covers(self, place: Place) -> bool:
        if not self.below:
            return place == self.place
        same_door = (place.scheme, place.port) == (self.place.scheme, self.place.port)
        return same_door and place.host.endswith(f".{self.place.host}") and literal(place.host) is None


def listed(entry: str) -> Listed:
    """Read `api.example.com`, `api.example.com:8443`, `http://intranet:8080`, `[::1]:8080` or `*.example.com`.

    Raises: ValueError, it is none of these.
    """
    no_host = f"{entry[:300]!r} is no host such as api.example.com, http://intranet:8080 or *.example.com"
    scheme, separator, rest = entry.lower().rpartition("://")
    below = rest.startswith("*.")
    host = rest.removeprefix("*.") if below else rest
    bare = f"[{host}]" if ":" in host and literal(host) else host
    try:
        url = parse(f"{scheme if separator else 'https'}://{bare}")
    except ValueError:
        raise ValueError(no_host) from None
    place = place_of(url)
    if url.raw_path != b"/" or url.fragment or (below and ("." not in place.host or literal(place.host))):
        raise ValueError(no_host)
    return Listed(place, below)


def parse(url: object) -> URL:
    """Return `url` if it is one that can be asked for. Raises: ValueError"""
    if not isinstance(url, str) or len(url) > URL_CHARS or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError(f"the url must be a text of at most {URL_CHARS} characters without spaces")
    try:
        parsed = URL(url)
    except InvalidURL as error:
        raise ValueError(f"the url cannot be read: {error}") from None
    if parsed.scheme not in DEFAULT_PORTS or not parsed.raw_host:
        raise ValueError("the url must start with https:// and name a host")
    if parsed.port is not None and not 1 <= parsed.port <= 65535:
        raise ValueError("the url names a port that does not exist")
    if parsed.userinfo:
        raise ValueError("the url must not hold a user name or password")
    host = parsed.raw_host.decode("ascii")
    # Digits and dots of other scripts would become an address that nobody wrote.
    # Neither may the resolver read an IPv4 address in an unusual spelling.
    is_number = _NUMBER.fullmatch(host.rpartition(".")[2])
    plain = host in url.lower() if literal(host) else _NAME.fullmatch(host) and not is_number
    if not plain:
        raise ValueError(f"{host!r} is neither a host name nor a plain IP address")
    return parsed


def place_of(url: URL) -> Place:
    """Return where a URL from `parse` leads."""
    host = url.raw_host.decode("ascii")
    address = literal(host)
    return Place(url.scheme, str(address) if address else host, url.port or DEFAULT_PORTS[url.scheme])


@dataclass(frozen=True)
class FetchPolicy:
    """`hosts` are all there is in the mode `allowlist`; in `public` and `open` they are named beside the public ones.

    Only a host named exactly may lead into a network of one's own, whatever the mode. `max_bytes` bounds the body of
    an answer, packed and unpacked; `timeout_seconds` a request with its redirects. `secret` finds what `auth=` names.

    Raises: ValueError, a field is out of its bounds.
    """

    hosts: tuple[str, ...] = ()
    mode: FetchMode = "allowlist"
    methods: tuple[str, ...] = FETCH_METHODS
    max_bytes: int = 1024 * 1024
    timeout_seconds: float = 30.0
    redirects: int = 0
    secret: Resolver = field(default=no_values, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in get_args(FetchMode):
            raise ValueError(f"mode must be one of {', '.join(get_args(FetchMode))}, not {self.mode!r}")
        if not set(self.methods) <= set(FETCH_METHODS):
            raise ValueError(f"methods must be some of {', '.join(FETCH_METHODS)}")
        if not 1 <= self.max_bytes <= MOST_BYTES:
            raise ValueError(f"max_bytes must be from 1 to {MOST_BYTES:,}")
        if not 0 < self.timeout_seconds <= MOST_SECONDS:
            raise ValueError(f"timeout_seconds must be more than 0 and at most {MOST_SECONDS:g}")
        if not 0 <= self.redirects <= MOST_REDIRECTS:
            raise ValueError(f"redirects must be from 0 to {MOST_REDIRECTS}")
        for entry in self.hosts:
            listed(entry)

    @classmethod
    def of(cls, granted: Fetch, secret: Resolver = no_values) -> "FetchPolicy":
        bounds = (granted.methods, granted.max_bytes, granted.timeout_seconds, granted.redirects)
        return cls(granted.hosts, granted.mode, *bounds, secret)

    def read_only(self) -> "FetchPolicy":
        """The same, for requests that only read."""
        return replace(self, methods=tuple(method for method in self.methods if method in READING_METHODS))

    def require_method(self, method: str) -> None:
        """Raises: PermissionError, the tool may not use it."""
        if method not in self.methods:
            granted = ", ".join(self.methods) or "no method at all"
            raise PermissionError(f"this tool may use {granted}: {method} is not granted")

    def require(self, place: Place) -> None:
        """Raises: PermissionError, the tool may not ask there, wherever its name leads."""
        if self.names(place):
            return
        if is_metadata_name(place.host):
            raise PermissionError(f"{place.host} is where a cloud keeps its keys: tools may not reach it")
        if self.covers(place) or self.mode == "open":
            return
        if self.mode == "allowlist":
            if place.scheme == "http" and any(each.place.host == place.host for each in self._listed):
                raise PermissionError(f"plain http to {place.netloc} is not allowed: use https, or list {place}")
            raise PermissionError(f"{place.netloc} is not among the hosts that this tool may reach")
        if place.scheme != "https" or place.port != DEFAULT_PORTS["https"]:
            raise PermissionError(f"this tool may reach public hosts over https on port 443, which {place} is not")

    def names(self, place: Place) -> bool:
        """Return whether exactly this place was named."""
        return Listed(place) in self._listed

    def covers(self, place: Place) -> bool:
        """Return whether it was named, exactly or by `*.`"""
        return any(each.covers(place) for each in self._listed)

    def may_reach(self, place: Place, address: Address) -> bool:
        """Public addresses; others only for a host named exactly: if the address was named too, by its number, or if
        the name is one that no public DNS can answer for.
        """
        if is_public(address):
            return True
        if not self.names(place):
            return False
        return address in self._addresses or (is_local_name(place.host) and is_local(address))

    @cached_property
    def _listed(self) -> tuple[Listed, ...]:
        return tuple(listed(entry) for entry in self.hosts)

    @cached_property
    def _addresses(self) -> frozenset[Address]:
        found = (literal(each.place.host) for each in self._listed if not each.below)
        return frozenset(address for address in found if address)
