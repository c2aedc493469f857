"""What a tool asks for, checked before anything is sent."""

import json as jsons
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from httpx2 import URL, InvalidURL

from tools_studio.capabilities import FETCH_METHODS
from tools_studio.network.credentials import Credential
from tools_studio.network.places import URL_CHARS, Place, parse, place_of

AGENT = "hitlchat-tool"
DEFAULT_SECONDS = 10.0
# The only ones that go along to another origin: any other may be a key.
HARMLESS = frozenset({"accept", "accept-language", "user-agent"})


@dataclass(frozen=True)
class Asked:
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
        """What goes over the wire, lower case, each name once."""
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

    def reading(self) -> "Asked":
        """The same place, asked with GET, and nothing to send."""
        headers = {name: value for name, value in self.headers.items() if not name.startswith("content-")}
        return replace(self, method="GET", body=None, headers=headers)

    def elsewhere(self, url: URL) -> "Asked":
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
    """The URL with the parameters added to its query. ValueError: they cannot be."""
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


def body_of(value: Any) -> bytes:
    """`value` as JSON. ValueError: it is none."""
    try:
        return jsons.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise ValueError("json must be a JSON value") from None


def seconds_of(timeout: object, most: float) -> float:
    """How long to wait: as asked, at most what is granted."""
    if timeout is None:
        return min(DEFAULT_SECONDS, most)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= most:
        raise ValueError(f"the timeout must be a number of seconds up to {most:g}")
    return float(timeout)
