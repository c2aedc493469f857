"""Where a request goes: scheme, host and port, read from URLs and from the hosts that a tool names."""

import re
from dataclasses import dataclass

from httpx2 import URL, InvalidURL

from hitlchat.outbound.addresses import literal

DEFAULT_PORTS = {"http": 80, "https": 443}
URL_CHARS = 8192

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True)
class Place:
    """`host` is ASCII in lower case; an address stands in its shortest spelling, without brackets."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        """As people name it: `api.example.com`, `api.example.com:8443`, `http://intranet`."""
        scheme = "http://" if self.scheme == "http" else ""
        return f"{scheme}{self.netloc}"

    @property
    def netloc(self) -> str:
        """As the header Host says it."""
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

    ValueError: it is none of these.
    """
    scheme, separator, rest = entry.lower().rpartition("://")
    below = rest.startswith("*.")
    host = rest.removeprefix("*.") if below else rest
    bare = f"[{host}]" if ":" in host and literal(host) else host
    try:
        url = parse(f"{scheme if separator else 'https'}://{bare}")
    except ValueError:
        raise _no_host(entry) from None
    place = place_of(url)
    if url.raw_path != b"/" or url.fragment or (below and ("." not in place.host or literal(place.host))):
        raise _no_host(entry)
    return Listed(place, below)


def _no_host(entry: str) -> ValueError:
    return ValueError(f"{entry[:300]!r} is no host such as api.example.com, http://intranet:8080 or *.example.com")


def parse(url: object) -> URL:
    """`url` if it is one that can be asked for. ValueError: it is not."""
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
    plain = host in url.lower() if literal(host) else _NAME.fullmatch(host) and not _is_number(host)
    if not plain:
        raise ValueError(f"{host!r} is neither a host name nor a plain IP address")
    return parsed


def place_of(url: URL) -> Place:
    """Where a URL from `parse` leads."""
    host = url.raw_host.decode("ascii")
    address = literal(host)
    return Place(url.scheme, str(address) if address else host, url.port or DEFAULT_PORTS[url.scheme])


def _is_number(host: str) -> bool:
    """Whether the resolver would read `host` as an IPv4 address in an unusual spelling."""
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None
