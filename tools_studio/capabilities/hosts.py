"""How a host is named in a declaration, in its one spelling."""

import re

HOSTS_CAP = 50
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?P<scheme>https?://)?(?P<name>{_LABEL}(?:\.{_LABEL})*)(?::(?P<port>[0-9]{{1,5}}))?")
_SUFFIX = re.compile(rf"\*\.{_LABEL}(?:\.{_LABEL})+")


def canonical(host: object) -> str | None:
    """Lower case, no `https://` (which is meant when nothing is said), or None if it is no host.

    `*.example.com` means every host below example.com, over https.
    """
    if not isinstance(host, str) or len(host) > 300:
        return None
    host = host.lower()
    if _SUFFIX.fullmatch(host):
        return host if len(host) <= 255 and not _is_number(host) else None
    match = _HOST.fullmatch(host)
    if match is None or len(match["name"]) > 253 or not 1 <= int(match["port"] or 1) <= 65535:
        return None
    port = f":{int(match['port'])}" if match["port"] else ""
    scheme = "http://" if match["scheme"] == "http://" else ""
    return f"{scheme}{match['name']}{port}"


def _is_number(host: str) -> bool:
    """Below an address there are no hosts."""
    return host.rpartition(".")[2].isdigit()
