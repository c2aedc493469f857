"""Whether an address is that of our own MCP server: its tools are here, and calling them would go in circles."""

from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import get_script_prefix

from hitlchat.upstreams.risk.server import reach

_PORTS = {"http": 80, "https": 443}
SENTENCE = "This is hitlchat's own address: its tools are here already, and need no connection."


def is_ours(url: str, request: HttpRequest) -> bool:
    """As far as the address says: by the name under which this page was asked for, or by one of this machine's names
    together with the port at which this process listens. Another name of this machine, or the port of another process
    of this installation, is not recognised."""
    try:
        parts = urlsplit(url)
        there = (parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0))
    except ValueError:
        return False
    if unquote(parts.path).rstrip("/") != f"{get_script_prefix().rstrip('/')}/mcp":
        return False
    return there == _asked_for(request) or (_is_here(there[0]) and str(there[1]) == request.META.get("SERVER_PORT"))


def _asked_for(request: HttpRequest) -> tuple[str, int]:
    parts = urlsplit(f"//{request.get_host()}")
    return parts.hostname or "", parts.port or _PORTS[request.scheme or "http"]


def _is_here(host: str) -> bool:
    named = {name.strip("[].").lower() for name in settings.ALLOWED_HOSTS}
    return host in named or reach(host) == "local"
