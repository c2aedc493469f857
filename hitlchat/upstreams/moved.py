"""Secrets are typed for one server. They don't go along to another because somebody changes its address."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from hitlchat.upstreams.models import UpstreamServer
from hitlchat.upstreams.values import Value

SENTENCE = (
    "The address leads to another host now: type the secrets once more, so that no other server gets them unmeant."
)


def takes_secrets_along(standing: UpstreamServer, url: str, headers: Iterable[Value]) -> bool:
    """Would what is stored for the host of `standing` be sent to another one, or without encryption?"""
    return bool(url) and any(each.value is None for each in headers) and _host(url) != _host(standing.url)


def _host(url: str) -> object:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url
