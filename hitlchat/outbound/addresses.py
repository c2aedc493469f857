"""Addresses: which belong to the public internet, which to a network of one's own, and which to neither."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
DEFAULT_PORTS = {"http": 80, "https": 443}
Reach = Literal["local", "private", "public"]

# Python's `is_global` follows IANA's registries only as of its own release, and knows nothing of single clouds.
_SPECIAL_V4 = tuple(
    map(
        IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
            *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
            "168.63.129.16/32",  # Azure's own services, in the middle of public space
        ),
    )
)
_UNICAST_V6 = IPv6Network("2000::/3")
# Protocol assignments (Teredo among them), documentation, 6to4.
_SPECIAL_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
_NAT64 = IPv6Network("64:ff9b::/96")
_LOCAL_V4 = tuple(map(IPv4Network, ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_LOCAL_V6 = tuple(map(IPv6Network, ("::1/128", "fc00::/7")))
# Metadata services of clouds, at addresses that would count as local.
_METADATA = frozenset(map(ip_address, ("fd00:ec2::254", "fd20:ce::254")))
_METADATA_NAMES = frozenset(
    {
        *("metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal", "metadata.azure.com"),
        *("instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.packet.net"),
        *("metadata.platformequinix.com", "rancher-metadata", "rancher-metadata.rancher.internal"),
    }
)
_PRIVATE_SUFFIXES = (".local", ".internal", ".intranet", ".lan", ".home.arpa")


def literal(host: str) -> Address | None:
    """The address if `host` is one in its usual spelling; 0177.1, 2130706433 and fe80::1%eth0 are not."""
    if "%" in host:
        return None
    try:
        return ip_address(host)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Return whether it is public. A NAT64 address is judged by what it wraps; no other that wraps one is public."""
    if isinstance(address, IPv4Address):
        return address.is_global and not any(address in network for network in _SPECIAL_V4)
    if address in _NAT64:
        return is_public(IPv4Address(address.packed[-4:]))
    inside = address in _UNICAST_V6 and address.is_global
    return inside and not any(address in network for network in _SPECIAL_V6)


def is_local(address: Address) -> bool:
    """Return whether it is this machine or a private network, but no metadata service of a cloud."""
    if isinstance(address, IPv4Address):
        return any(address in network for network in _LOCAL_V4)
    return address not in _METADATA and any(address in network for network in _LOCAL_V6)


def is_local_name(host: str) -> bool:
    """Return whether no public DNS can answer for it."""
    return "." not in host or host.endswith(".localhost")


def is_private_host(host: str) -> bool:
    """Return whether it is this machine or a private network by its very name or number, before any look-up."""
    address, name = literal(host.strip("[]")), host.lower().rstrip(".")
    # A number without a dot may be any address.
    return is_local(address) if address else is_local_name(name) and not name[:1].isdigit()


def is_metadata_name(host: str) -> bool:
    return host in _METADATA_NAMES


def reach(host: str) -> Reach:
    """Return where a host is, as far as its name says. The guard checks the addresses behind it at each connection."""
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


def origin_of(url: str) -> str:
    """Return the scheme, host and port of an address, always written the same way."""
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme.lower(), 0)
    return f"{parts.scheme.lower()}://{(parts.hostname or '').lower()}:{port}"
