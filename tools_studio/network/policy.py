"""What a tool's requests may be: to which places, by which methods, how large and how long."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

from hitlchat.outbound.addresses import Address, is_local, is_local_name, is_metadata_name, is_public, literal
from tools_studio.capabilities import FETCH_METHODS, MOST_BYTES, MOST_REDIRECTS, MOST_SECONDS, READING_METHODS, Fetch
from tools_studio.capabilities.declared import FetchMode
from tools_studio.network.places import DEFAULT_PORTS, Listed, Place, listed

# The value of a variable by its name. LookupError or ValueError: there is none, in words for the tool.
Resolver = Callable[[str], str]


def no_values(name: str) -> str:
    raise LookupError(f"{name} is no variable of this tool")


@dataclass(frozen=True)
class FetchPolicy:
    """`hosts` are all there is in the mode `allowlist`; in `public` and `open` they are named beside the public ones.

    Only a host named exactly may lead into a network of one's own, whatever the mode. `max_bytes` bounds the body of
    an answer, packed and unpacked; `timeout_seconds` a request with its redirects. `secret` finds what `auth=` names.

    ValueError: a field is out of its bounds.
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
        """PermissionError: the tool may not use it."""
        if method not in self.methods:
            granted = ", ".join(self.methods) or "no method at all"
            raise PermissionError(f"this tool may use {granted}: {method} is not granted")

    def require(self, place: Place) -> None:
        """PermissionError: the tool may not ask there, wherever its name leads."""
        if self.names(place):
            return
        if is_metadata_name(place.host):
            raise PermissionError(f"{place.host} is where a cloud keeps its keys: tools may not reach it")
        if self.covers(place) or self.mode == "open":
            return
        if self.mode == "allowlist":
            self._refuse_unlisted(place)
        if place.scheme != "https" or place.port != DEFAULT_PORTS["https"]:
            raise PermissionError(f"this tool may reach public hosts over https on port 443, which {place} is not")

    def _refuse_unlisted(self, place: Place) -> None:
        if place.scheme == "http" and any(each.place.host == place.host for each in self._listed):
            raise PermissionError(f"plain http to {place.netloc} is not allowed: use https, or list {place}")
        raise PermissionError(f"{place.netloc} is not among the hosts that this tool may reach")

    def names(self, place: Place) -> bool:
        """Whether exactly this place was named."""
        return Listed(place) in self._listed

    def covers(self, place: Place) -> bool:
        """Whether it was named, exactly or by `*.`"""
        return any(each.covers(place) for each in self._listed)

    def may_reach(self, place: Place, address: Address) -> bool:
        """Public addresses; others only for a host named exactly: if the address was named too, by its number, or if
        the name is one that no public DNS can answer for."""
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
