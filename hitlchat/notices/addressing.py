"""This installation's own address, for links in notices."""

from django.conf import settings
from django.urls import reverse

from hitlchat.agent.endpoint import DEMO_PATH, own_address

LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}
UNKNOWN = "Set HITL_PUBLIC_URL to the address under which people reach this server, such as https://hitl.example.com."


def own() -> str:
    """Without a slash at its end; empty where it is not known. Where only this machine is answered, its own."""
    if settings.HITL_PUBLIC_URL:
        return str(settings.HITL_PUBLIC_URL)
    if set(settings.ALLOWED_HOSTS) <= LOOPBACK:
        return own_address.base_url.removesuffix(DEMO_PATH)
    return ""


def link(name: str, *args: object) -> str | None:
    """To a page of ours, which asks to sign in; nothing happens by following it."""
    base = own()
    return f"{base}{reverse(name, args=args)}" if base else None
