"""How this installation is recognised when it is about to become its own upstream server."""

from typing import Any

from django.conf import settings

from hitlchat.outbound import addresses
from hitlchat.secrets.masking import Mask
from hitlchat.secrets.sealing import fingerprint
from hitlchat.upstreams.client import Surroundings

KEY = "hitlchat"
PURPOSE = "mcp installation"


def mark() -> dict[str, dict[str, Any]]:
    """The experimental capability by which our own MCP server says whose it is: of no use without our key."""
    return {KEY: {"installation": _installation()}}


def is_ours(experimental: dict[str, dict[str, Any]] | None) -> bool:
    """Whether a server with these experimental capabilities is this installation, in whichever of its processes."""
    told = (experimental or {}).get(KEY)
    return isinstance(told, dict) and told.get("installation") == _installation()


def _installation() -> str:
    return fingerprint("this one", PURPOSE)


def around() -> Surroundings:
    return Surroundings(addresses, Mask, allow_stdio=settings.MCP_ALLOW_STDIO, is_ours=is_ours)
