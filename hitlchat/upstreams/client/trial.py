"""Test connection: once, with a client of its own, and nothing of it stays."""

import asyncio
from contextvars import Context
from dataclasses import dataclass

import httpx2

from hitlchat.upstreams.client.http import ConnectionMask
from hitlchat.upstreams.client.link import Link
from hitlchat.upstreams.client.listing import Listing
from hitlchat.upstreams.client.opening import Live
from hitlchat.upstreams.client.session import Keeper, held
from hitlchat.upstreams.client.spec import ServerSpec, Surroundings

# What ending a program may take, beyond the time that a server has for its goodbye.
ENDING_SECONDS = 8.0


@dataclass(frozen=True)
class Trial:
    """The outcome of a test. `error` is empty if the server was reached and told its tools; `http_status` 401 asks for
    someone to sign in; `notes` are what the server wrote to its standard error.
    """

    error: str = ""
    http_status: int | None = None
    latency_ms: float | None = None
    protocol_version: str = ""
    server_name: str = ""
    server_version: str = ""
    listing: Listing | None = None
    notes: tuple[str, ...] = ()


class _Trier(Keeper):
    def __init__(self) -> None:
        self.live: Live | None = None
        self.listing: Listing | None = None
        self.trouble = ""

    def is_open(self, live: Live) -> None:
        self.live = live

    async def has_tools(self, found: Listing) -> None:
        self.listing = found
        self._done()

    def has_trouble(self, reason: str) -> None:
        self.trouble = reason
        self._done()

    def is_healthy(self, latency_ms: float) -> None:
        """Nobody asks."""

    def _done(self) -> None:
        if self.live is not None:
            self.live.link.drop("the test is over")


async def try_connect(spec: ServerSpec, surroundings: Surroundings, *, auth: httpx2.Auth | None = None) -> Trial:
    """Connect, read the list of tools, and disconnect, within the spec's timeouts. Never raises for the server's sake.

    The connection that is in use, if there is one, is not touched.
    """
    trier, link = _Trier(), Link(spec, ConnectionMask(surroundings, spec, auth))
    trying = asyncio.create_task(held(link, surroundings, auth, trier), context=Context())
    timeouts = spec.timeouts
    try:
        await asyncio.wait({trying}, timeout=timeouts.connect + timeouts.listing + timeouts.close + ENDING_SECONDS)
    finally:
        if not trying.done():
            trying.cancel()
            await asyncio.wait({trying}, timeout=ENDING_SECONDS)
    return _told(trier, link)


def _told(trier: _Trier, link: Link) -> Trial:
    live, found = trier.live, trier.listing
    if live is None:
        return Trial(link.reason or "no connection in time", link.http_status, notes=link.notes())
    return Trial(
        "" if found is not None else trier.trouble or link.reason or "the list of tools did not come in time",
        link.http_status,
        live.handshake_ms,
        live.protocol_version,
        live.server_name,
        live.server_version,
        found,
        link.notes(),
    )
