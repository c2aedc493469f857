"""One connection of the SDK's client to our own server, and what its user does with it. Of one loop."""

import asyncio
import logging
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import httpx2
import mcp_types as types
from django.db import DatabaseError
from django.utils import timezone
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from hitlchat.base.database import in_db
from hitlchat.mcp_server.inspector import passes
from hitlchat.mcp_server.inspector.acting import Acting
from hitlchat.mcp_server.inspector.passes import Pass
from hitlchat.mcp_server.inspector.recording import Recording
from hitlchat.mcp_server.inspector.wire import REFUSED, Address, connection

logger = logging.getLogger(__name__)

# 2026-07-28 is adopted as it is found, so that what the server says of itself is seen as well.
MODES: Final = {"2025-11-25": "legacy", "2026-07-28": "auto"}
CONNECTING_SECONDS: Final = 20.0
IDLE_SECONDS: Final = 15 * 60.0
LONGEST_SECONDS: Final = 60 * 60.0
LOOK_SECONDS: Final = 1.0
IDLE: Final = f"Nothing was done with it for {IDLE_SECONDS / 60:g} minutes."
LONG: Final = f"It was open for {LONGEST_SECONDS / 60:g} minutes, which is as long as one may be."

Trouble = (MCPError, RuntimeError, ValidationError, OSError, httpx2.HTTPError, TimeoutError)


@dataclass(frozen=True)
class Wish:
    """What a session is to be. `era`: a key of MODES."""

    owner_id: int
    era: str
    elicits: bool
    token: Pass
    address: Address


class Session:
    """Read from any thread; what changes it runs on its loop alone."""

    def __init__(self, wish: Wish) -> None:
        self.id: UUID = uuid7()
        self.wish = wish
        self.began = timezone.now()
        self.recording = Recording()
        self.version = self.server = self.capabilities = self.ended = ""
        # The number of the recording at which what is above, or the end, last changed.
        self.changed = self.recording.tick()
        self.acting = Acting(self.recording)
        self._used, self._over = time.monotonic(), asyncio.Event()
        self._by_person = False

    @property
    def is_open(self) -> bool:
        return not self.ended

    def touch(self) -> None:
        """Its user does something with it."""
        self._used = time.monotonic()

    def end(self, *, by_person: bool = False) -> None:
        self._by_person = self._by_person or by_person
        self._over.set()

    async def run(self) -> None:
        """From the first message to the last. The token made for it ends with it."""
        said = "An error in hitlchat ended it; its log has more."
        try:
            said = await self._run()
        except Trouble as error:
            said = self._why(error)
        except BaseExceptionGroup as group:
            said = self._why(_first(group))
        except Exception:
            logger.exception("A session of the Inspector failed")
        finally:
            self.acting.client = None
            await self.revoke()
            self.ended = said
            self.changed = self.recording.tick()

    async def _run(self) -> str:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(CONNECTING_SECONDS):
                client = await stack.enter_async_context(self._client())
            self.version = client.protocol_version
            self.server = _named(client.server_info)
            self.capabilities = _capable(client.server_capabilities)
            self.changed = self.recording.tick()
            # Left first: what goes on must end before its connection does.
            stack.push_async_callback(self.acting.end)
            await self.acting.begin(client)
            return await self._use()

    async def revoke(self) -> None:
        """Its token, if it was made for it; also more than once."""
        try:
            await in_db(passes.revoke)(self.wish.token, by_person=self._by_person)
        except DatabaseError:
            logger.exception("The token of a session of the Inspector was not revoked; it expires by itself")

    def _why(self, error: BaseException) -> str:
        refused = [line.title for line in self.recording.lines if line.title.startswith(REFUSED)]
        # What the SDK makes of it says less.
        return f"The server answered {refused[-1]}; what it said is among the messages." if refused else _plain(error)

    def _client(self) -> Client:
        wish = self.wish
        return Client(
            connection(wish.address, wish.token.secret, self.recording),
            mode=MODES[wish.era],
            cache=None,
            elicitation_callback=self.acting.asked if wish.elicits else None,
            message_handler=self.acting.told,
            client_info=types.Implementation(name="hitlchat-inspector", title="hitlchat Inspector", version="1"),
        )

    async def _use(self) -> str:
        """Until it ends: why."""
        last = time.monotonic() + LONGEST_SECONDS
        while not self._over.is_set():
            now = time.monotonic()
            if now > last:
                return LONG
            if now - self._used > IDLE_SECONDS:
                return IDLE
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._over.wait()
        return "You ended it." if self._by_person else "The server ended it."


def _named(server: types.Implementation | None) -> str:
    return f"{server.title or server.name} {server.version}" if server else "a server that does not say its name"


def _capable(capabilities: types.ServerCapabilities) -> str:
    return ", ".join(capabilities.model_dump(by_alias=True, exclude_none=True))


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


def _plain(error: BaseException) -> str:
    if isinstance(error, MCPError):
        return f"The server answered with the error {error.code}: {error.message}"
    if isinstance(error, TimeoutError):
        return "The server did not answer in time."
    return f"The connection failed: {str(error) or type(error).__name__}"
