"""A request as a tool makes it, checked before anything is sent: method, URL, body, headers, credentials."""

import base64
import json as jsons
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

from httpx2 import URL, InvalidURL

from hitlchat.secrets.masking import Mask
from tools_studio.capabilities import FETCH_METHODS
from tools_studio.network.policy import URL_CHARS, FetchPolicy, Place, Resolver, parse, place_of

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


@dataclass(frozen=True)
class Credential:
    """A credential: what it adds, and what takes that out again of all that comes back."""

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
        """Raises: ValueError, the tool sets by itself what `auth` is to add."""
        if self.credential is None:
            return
        if twice := sorted(self.credential.headers.keys() & self.headers.keys()):
            raise ValueError(f"the header {twice[0]!r} is set by auth: leave it out of headers")
        if twice := sorted(self.credential.query.keys() & self.url.params.keys()):
            raise ValueError(f"the parameter {twice[0]!r} is set by auth: leave it out of the url and params")

    def reading(self) -> "ToolRequest":
        """The same place, asked with GET, and nothing to send."""
        headers = {name: value for name, value in self.headers.items() if not name.startswith("content-")}
        return replace(self, method="GET", body=None, headers=headers)

    def elsewhere(self, url: URL) -> "ToolRequest":
        """Another place of the same origin or of another one, which gets no keys."""
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
    """Return the seconds to wait: those of the call, if no more than those granted."""
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
    """An answer's headers by lower-case names, repeated ones joined; those of the connection and cookies left out."""
    found: dict[str, str] = {}
    for key, value in raw:
        name, text = key.decode("latin-1").lower(), _text(value)
        found[name] = f"{found[name]}, {text}" if name in found else text
    named = {name.strip() for name in found.get("connection", "").lower().split(",")}
    return {name: text for name, text in found.items() if name not in named and not _KEPT_BACK.fullmatch(name)}


def _require_free(name: str) -> None:
    """Raises: ValueError, the header is not for tools to set."""
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
