"""A tool's request, checked before anything is sent: the places that its policy allows, method, URL, body, headers."""

import base64
import json as jsons
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from httpx2 import URL, InvalidURL

from hitlchat.outbound import addresses
from hitlchat.secrets.masking import Mask
from tools_studio.capabilities import FETCH_METHODS, Fetch

AGENT = "hitlchat-tool"
DEFAULT_SECONDS = 10.0
NAME_CHARS = 100
EXPECTED = (
    'auth must be the name of a secret, {"basic": name}, {"header": header, "secret": name}'
    ' or {"query": parameter, "secret": name}'
)
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
VALUE = re.compile(r"|[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")
# Those that belong to the connection, or say where a request goes and how long it is.
OURS = re.compile(r"host|connection|keep-alive|te|trailers?|transfer-encoding|upgrade|expect|content-length|proxy-.*")
# Cookies too: whoever holds one is whom it was given to, and the tool has its own keys.
_KEPT_BACK = re.compile(r"connection|keep-alive|te|trailers?|transfer-encoding|upgrade|proxy-.*|set-cookie2?")
# The only ones that go along to another origin: any other may be a key.
HARMLESS = frozenset({"accept", "accept-language", "user-agent"})
URL_CHARS = 8192
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# The value of a variable by its name. LookupError or ValueError: there is none, in words for the tool.
Resolver = Callable[[str], str]


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
        """Return the place as the header `Host` names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == addresses.DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def no_values(name: str) -> str:
    raise LookupError(f"{name} is not a variable of this tool")


@dataclass(frozen=True)
class Listed:
    """One named host. With `below` every host below it is meant, and not the host itself."""

    place: Place
    below: bool = False

    def covers(self, place: Place) -> bool:
        if not self.below:
            return place == self.place
        same_door = (place.scheme, place.port) == (self.place.scheme, self.place.port)
        return same_door and place.host.endswith(f".{self.place.host}") and addresses.literal(place.host) is None


def listed(entry: str) -> Listed:
    """Read `api.example.com`, `api.example.com:8443`, `http://intranet:8080`, `[::1]:8080` or `*.example.com`.

    Raises: ValueError, it is none of these.
    """
    no_host = f"{entry[:300]!r} is not a host such as api.example.com, http://intranet:8080 or *.example.com"
    scheme, separator, rest = entry.lower().rpartition("://")
    below = rest.startswith("*.")
    host = rest.removeprefix("*.") if below else rest
    bare = f"[{host}]" if ":" in host and addresses.literal(host) else host
    try:
        url = parse(f"{scheme if separator else 'https'}://{bare}")
    except ValueError:
        raise ValueError(no_host) from None
    place = place_of(url)
    if url.raw_path != b"/" or url.fragment or (below and ("." not in place.host or addresses.literal(place.host))):
        raise ValueError(no_host)
    return Listed(place, below)


def parse(url: object) -> URL:
    """Return `url` parsed, if it can be requested. Raises: ValueError"""
    if not isinstance(url, str) or len(url) > URL_CHARS or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError(f"the url must be a text of at most {URL_CHARS} characters without spaces")
    try:
        parsed = URL(url)
    except InvalidURL as error:
        raise ValueError(f"the url cannot be read: {error}") from None
    if parsed.scheme not in addresses.DEFAULT_PORTS or not parsed.raw_host:
        raise ValueError("the url must start with https:// and name a host")
    if parsed.port is not None and not 1 <= parsed.port <= 65535:
        raise ValueError("the url names a port that does not exist")
    if parsed.userinfo:
        raise ValueError("the url must not hold a user name or password")
    host = parsed.raw_host.decode("ascii")
    # Digits and dots of other scripts would become an address that nobody wrote.
    # Neither may the resolver read an IPv4 address in an unusual spelling.
    is_number = _NUMBER.fullmatch(host.rpartition(".")[2])
    plain = host in url.lower() if addresses.literal(host) else _NAME.fullmatch(host) and not is_number
    if not plain:
        raise ValueError(f"{host!r} is neither a host name nor a plain IP address")
    return parsed


def place_of(url: URL) -> Place:
    host = url.raw_host.decode("ascii")
    address = addresses.literal(host)
    return Place(url.scheme, str(address) if address else host, url.port or addresses.DEFAULT_PORTS[url.scheme])


@dataclass(frozen=True)
class FetchPolicy(Fetch):
    """A granted capability as it is applied to requests. `secret` finds what `auth=` names.

    Only a host named exactly may lead into a network of one's own, whatever the mode.

    Raises: ValueError, one of the hosts is none.
    """

    secret: Resolver = field(default=no_values, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Read now, so that a host that is none fails the tool and not a request.
        _ = self._listed

    def require_method(self, method: str) -> None:
        """Require that the method is granted. Raises: PermissionError"""
        if method not in self.methods:
            granted = ", ".join(self.methods) or "no method at all"
            raise PermissionError(f"this tool may use {granted}: {method} is not granted")

    def require(self, place: Place) -> None:
        """Require that the place is granted, wherever its name leads. Raises: PermissionError"""
        if self.names(place):
            return
        if addresses.is_metadata_name(place.host):
            raise PermissionError(f"{place.host} serves a cloud's credentials: tools may not reach it")
        if self.covers(place) or self.mode == "open":
            return
        if self.mode == "allowlist":
            if place.scheme == "http" and any(each.place.host == place.host for each in self._listed):
                raise PermissionError(f"plain http to {place.netloc} is not allowed: use https, or list {place}")
            raise PermissionError(f"{place.netloc} is not among the hosts that this tool may reach")
        if place.scheme != "https" or place.port != addresses.DEFAULT_PORTS["https"]:
            raise PermissionError(f"this tool may reach public hosts over https on port 443, which {place} is not")

    def names(self, place: Place) -> bool:
        """Return whether exactly this place was named."""
        return Listed(place) in self._listed

    def covers(self, place: Place) -> bool:
        """Return whether it was named, exactly or by `*.`"""
        return any(each.covers(place) for each in self._listed)

    def may_reach(self, place: Place, address: addresses.Address) -> bool:
        """Return whether a connection for this place may go to this address.

        Those that are not public need a host named exactly, and to be listed too or to have a local name.
        """
        if addresses.is_public(address):
            return True
        if not self.names(place):
            return False
        return address in self._addresses or (addresses.is_local_name(place.host) and addresses.is_local(address))

    @cached_property
    def _listed(self) -> tuple[Listed, ...]:
        return tuple(listed(entry) for entry in self.hosts)

    @cached_property
    def _addresses(self) -> frozenset[addresses.Address]:
        found = (addresses.literal(each.place.host) for each in self._listed if not each.below)
        return frozenset(address for address in found if address)


@dataclass(frozen=True)
class Credential:
    """What a credential adds to a request, and the mask that hides it in all that comes back."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    mask: Mask = field(default_factory=lambda: Mask(()), repr=False)


@dataclass(frozen=True)
class ToolRequest:
    """One request. `url` is as the tool may know it; what the credential adds is only in `sent_url`."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None = None
    credential: Credential | None = None

    @property
    def place(self) -> Place:
        return place_of(self.url)

    @property
    def sent_url(self) -> URL:
        if self.credential is None or not self.credential.query:
            return self.url
        # The query that is there stays as it is written: servers sign and compare such texts.
        parts = [self.url.query.decode("ascii"), urlencode(self.credential.query, quote_via=quote, safe="")]
        return self.url.copy_with(query="&".join(filter(None, parts)).encode("ascii"))

    @property
    def sent_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that are sent, in lower case, each name once."""
        found = {"accept": "*/*", "accept-encoding": "identity", "user-agent": AGENT}
        if self.body is not None:
            found["content-type"] = "application/json"
        found |= self.headers
        if self.credential:
            found |= self.credential.headers
        found["host"] = self.place.netloc
        if self.body is not None or self.method in ("POST", "PUT", "PATCH"):
            found["content-length"] = str(len(self.body or b""))
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in found.items()]

    def require_room(self) -> None:
        """Require that the tool does not itself set what `auth` adds. Raises: ValueError"""
        if self.credential is None:
            return
        if twice := sorted(self.credential.headers.keys() & self.headers.keys()):
            raise ValueError(f"the header {twice[0]!r} is set by auth: leave it out of headers")
        if twice := sorted(self.credential.query.keys() & self.url.params.keys()):
            raise ValueError(f"the parameter {twice[0]!r} is set by auth: leave it out of the url and params")

    def reading(self) -> "ToolRequest":
        """Return the request as a GET without a body."""
        headers = {name: value for name, value in self.headers.items() if not name.startswith("content-")}
        return replace(self, method="GET", body=None, headers=headers)

    def elsewhere(self, url: URL) -> "ToolRequest":
        """Return the request to another URL; another origin gets no credentials."""
        if place_of(url) == self.place:
            return replace(self, url=url)
        headers = {name: value for name, value in self.headers.items() if name in HARMLESS}
        return replace(self, url=url, headers=headers, credential=None)


def method_of(method: object) -> str:
    if not isinstance(method, str) or method.upper() not in FETCH_METHODS:
        raise ValueError(f"the method must be one of {', '.join(FETCH_METHODS)}")
    return method.upper()


def url_of(url: object, params: Mapping[str, Any] | None) -> URL:
    """Return the URL with the parameters added to its query. Raises: ValueError"""
    parsed = parse(url).copy_with(fragment=None)
    if params is None:
        return parsed
    if not isinstance(params, Mapping):
        raise ValueError("params must be an object of names and values")  # noqa: TRY004
    try:
        merged = parsed.copy_merge_params(dict(params))
    except (TypeError, InvalidURL):
        raise ValueError("params must hold texts, numbers, or lists of them") from None
    if len(str(merged)) > URL_CHARS:
        raise ValueError(f"the url with its params must have at most {URL_CHARS} characters")
    return merged


def headers_of(headers: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the headers by lower-case names. Raises: ValueError, one cannot be sent."""
    if headers is not None and not isinstance(headers, Mapping):
        raise ValueError("headers must be an object of names and texts")
    for name, value in (headers or {}).items():
        if not isinstance(value, str) or not TOKEN.fullmatch(name) or not VALUE.fullmatch(value):
            raise ValueError(f"the header {name[:40]!r} has a name or value that HTTP cannot carry")
        _require_free(name)
    return {name.lower(): value for name, value in (headers or {}).items()}


def body_of(value: Any) -> bytes:
    """Return `value` as JSON. Raises: ValueError, it is none."""
    try:
        return jsons.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError("json must be a JSON value") from None


def seconds_of(timeout: object, most: float) -> float:
    """Return the seconds to wait: those of the call, at most those granted. Raises: ValueError"""
    if timeout is None:
        return min(DEFAULT_SECONDS, most)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= most:
        raise ValueError(f"the timeout must be a number of seconds up to {most:g}")
    return float(timeout)


def credential_of(policy: FetchPolicy, auth: object) -> Credential | None:
    """Return the credential that `auth` names. Raises: ValueError, PermissionError: not with this policy."""
    if auth is None:
        return None
    if policy.mode != "allowlist":
        raise PermissionError('auth goes only to hosts that the tool names: the mode of its fetch must be "allowlist"')
    match auth:
        case str() as name:
            value = _value(policy.secret, name)
            return Credential(headers={"authorization": f"Bearer {value}"}, mask=Mask([value]))
        case {"basic": str() as name, **others} if not others:
            value = _value(policy.secret, name)
            _, colon, password = value.partition(":")
            if not colon:
                raise ValueError(f"auth: {name} must be user:password")
            packed = base64.b64encode(value.encode()).decode("ascii")
            return Credential(headers={"authorization": f"Basic {packed}"}, mask=Mask([value, password]))
        case {"header": str() as header, "secret": str() as name, **others} if not others and TOKEN.fullmatch(header):
            _require_free(header)
            value = _value(policy.secret, name)
            return Credential(headers={header.lower(): value}, mask=Mask([value]))
        case {"query": str() as parameter, "secret": str() as name, **others} if (
            not others and 1 <= len(parameter) <= NAME_CHARS
        ):
            value = _value(policy.secret, name)
            return Credential(query={parameter: value}, mask=Mask([value]))
    raise ValueError(EXPECTED)


def shown(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return an answer's headers by lower-case names, without cookies and those of the connection."""
    found: dict[str, str] = {}
    for key, value in raw:
        name, text = key.decode("latin-1").lower(), _text(value)
        found[name] = f"{found[name]}, {text}" if name in found else text
    named = {name.strip() for name in found.get("connection", "").lower().split(",")}
    return {name: text for name, text in found.items() if name not in named and not _KEPT_BACK.fullmatch(name)}


def _require_free(name: str) -> None:
    """Require a header that tools may set. Raises: ValueError"""
    if OURS.fullmatch(name.lower()):
        raise ValueError(f"the header {name[:40]!r} cannot be set by a tool")


def _value(secret: Resolver, name: str) -> str:
    if not 1 <= len(name) <= NAME_CHARS:
        raise ValueError(EXPECTED)
    try:
        value = secret(name)
    except (LookupError, ValueError) as error:
        raise ValueError(f"auth: {error.args[0] if error.args else name}") from None
    if not value:
        raise ValueError(f"auth: {name} is empty")
    if not VALUE.fullmatch(value):
        raise ValueError(f"auth: {name} holds characters that a request cannot carry")
    return value


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
