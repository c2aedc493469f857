"""Where a tool's requests may go: the hosts its author named, and no address inside our own network by accident."""

import asyncio
import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from httpx2 import URL, InvalidURL

DEFAULT_PORTS = {"http": 80, "https": 443}
URL_CHARS = 8192
Address = IPv4Address | IPv6Address

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True)
class FetchPolicy:
    """Exact hosts: `api.example.com`, `api.example.com:8443`, and `http://intranet:8080` where plain http is meant."""

    hosts: tuple[str, ...] = ()

    def origins(self) -> frozenset[tuple[str, str, int]]:
        return frozenset(_origin(entry) for entry in self.hosts)


def _origin(entry: str) -> tuple[str, str, int]:
    url = URL(entry if "://" in entry else f"https://{entry}")
    return url.scheme, url.host, _port(url)


def _port(url: URL) -> int:
    return url.port or DEFAULT_PORTS.get(url.scheme, 0)


def parse(url: object) -> URL:
    """`url` if it is one that can be asked for. ValueError: it is not."""
    if not isinstance(url, str) or len(url) > URL_CHARS or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError(f"the url must be a text of at most {URL_CHARS} characters without spaces")
    try:
        parsed = URL(url)
    except InvalidURL as error:
        raise ValueError(f"the url cannot be read: {error}") from None
    if parsed.scheme not in DEFAULT_PORTS or not parsed.host:
        raise ValueError("the url must start with https:// and name a host")
    if not 1 <= _port(parsed) <= 65535:
        raise ValueError("the url names a port that does not exist")
    if parsed.userinfo:
        raise ValueError("the url must not hold a user name or password")
    if _literal(parsed.host) is None and (not _NAME.fullmatch(parsed.host) or _is_number(parsed.host)):
        raise ValueError(f"{parsed.host!r} is neither a host name nor a plain IP address")
    return parsed


async def resolve(policy: FetchPolicy, url: URL) -> list[str]:
    """The addresses to connect to, all of them allowed. PermissionError: the policy does not allow this."""
    _require_listed(policy, url)
    found = await _look_up(url)
    for address in found:
        if not _may_reach(policy, url.host, address):
            raise PermissionError(f"{url.host} leads to {address}, an address that tools may not reach")
    return [str(address) for address in found]


def _require_listed(policy: FetchPolicy, url: URL) -> None:
    origins = policy.origins()
    if (url.scheme, url.host, _port(url)) in origins:
        return
    place = url.host if url.port is None else f"{url.host}:{url.port}"
    if url.scheme == "http" and any(host == url.host for _, host, _ in origins):
        raise PermissionError(f"plain http to {place} is not allowed: use https, or list http://{place}")
    raise PermissionError(f"{place} is not among the hosts that this tool may reach")


async def _look_up(url: URL) -> list[Address]:
    if literal := _literal(url.host):
        return [literal]
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(url.host, _port(url), type=socket.SOCK_STREAM)
    except OSError:
        raise ValueError(f"the host {url.host} was not found") from None
    return list(dict.fromkeys(ip_address(str(info[4][0]).partition("%")[0]) for info in infos))


def _may_reach(policy: FetchPolicy, host: str, address: Address) -> bool:
    """Public addresses; others only if somebody named them: by number, or by a name no public DNS can answer for."""
    inner = _unwrapped(address)
    if _is_public(inner):
        return True
    if any(_literal(listed) == address for _, listed, _ in policy.origins()):
        return True
    local_name = "." not in host or host.endswith(".localhost")
    return local_name and (inner.is_loopback or inner.is_private) and not inner.is_link_local


def _is_public(address: Address) -> bool:
    # `is_global` alone lets multicast through, and the old site-local range
    old = isinstance(address, IPv6Address) and address.is_site_local
    return address.is_global and not (address.is_multicast or address.is_reserved or old)


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one carries, if it carries one."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def _literal(host: str) -> Address | None:
    """The address if `host` is one in its usual spelling; 0177.1 and 2130706433 are not."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_number(host: str) -> bool:
    """Whether the resolver would read `host` as an IPv4 address in an unusual spelling."""
    return _NUMBER.fullmatch(host.rpartition(".")[2]) is not None
