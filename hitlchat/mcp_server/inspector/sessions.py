"""The sessions of this process: connections of the SDK's client to our own server, each with a token that it shows."""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import httpx2
import mcp_types as types
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.utils import timezone
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.base.database import in_db
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import personal
from hitlchat.mcp_server.inspector.acting import Acting
from hitlchat.mcp_server.inspector.wire import REFUSED, Address, Recording, connection

# As long as a session may last, and a little more: it ends also when the process could not end it.
LASTS: Final = timedelta(minutes=65)
NAME: Final = "Inspector, for one session"


@dataclass(frozen=True)
class Pass:
    """`about` is for its user, and says nothing secret."""

    secret: str = field(repr=False)
    about: str
    is_temporary: bool


def temporary(user: User, *, attended: bool = False, **limits: Any) -> Pass:
    """Return one that is made for a session; `limits` are columns of McpToken. `attended`: its word counts, says this
    administrator.

    Raises: ValidationError, OnlyAdministrators.
    """
    session = Actor(user.pk, "session")
    until, by = timezone.now() + LASTS, session if attended else None
    secret = personal.make(user, TokenKind.MCP, session, NAME, until, attended_by=by, **limits)
    return Pass(secret, "made for this session", is_temporary=True)


def given(secret: str) -> Pass:
    return Pass(secret, "the one you gave", is_temporary=False)


def revoke(shown: Pass, *, by_person: bool) -> None:
    """Revoke it: what was called with it and has not started never does. `by_person`: its user ended the session."""
    token = Token.objects.filter(digest=hashed(shown.secret)).select_related("user").first()
    if shown.is_temporary and token is not None:
        assert isinstance(token.user, User)
        with suppress(personal.NoSuchToken):
            personal.revoke(token.user, token.pk, Actor(token.user_id, "session" if by_person else "system"))


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
    """The wish for a session. `era`: a key of MODES."""

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
        """Note that its user does something with it."""
        self._used = time.monotonic()

    def end(self, *, by_person: bool = False) -> None:
        self._by_person = self._by_person or by_person
        self._over.set()

    async def run(self) -> None:
        """Run from the first message to the last. The token made for it ends with it."""
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
        """Revoke its token, if it was made for it; also more than once."""
        try:
            await in_db(revoke)(self.wish.token, by_person=self._by_person)
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
        """Use the session until it ends, and return why it did."""
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


MOST_OPEN_EACH: Final = 3
MOST_OPEN: Final = 20
# Those that are over can be read until as many more are.
MOST_OVER_EACH: Final = 3
MOST_OVER: Final = 20
# For leaving politely; and again as long for those that have to be broken off.
ENDING_SECONDS: Final = 3.0


class TooMany(Exception):
    """One more session is not to be had; why, in words."""


class Sessions:
    def __init__(self) -> None:
        self._sessions: dict[UUID, Session] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    def check(self, owner_id: int) -> None:
        """TooMany."""
        going = [session for session in self._all() if session.is_open]
        if len([session for session in going if session.wish.owner_id == owner_id]) >= MOST_OPEN_EACH:
            raise TooMany(f"You have {MOST_OPEN_EACH} sessions open, which is the most. End one of them first.")
        if len(going) >= MOST_OPEN:
            raise TooMany(f"{MOST_OPEN} sessions of all people are open, which is the most. Try again later.")

    def begin(self, wish: Wish) -> Session:
        """Begin a session, which connects from now on. Raises: TooMany."""
        with self._lock:
            self.check(wish.owner_id)
            session = Session(wish)
            self._sessions[session.id] = session
            self._forget()
        self.do(lambda: self._start(session))
        return session

    def of(self, owner_id: int) -> list[Session]:
        """The latest first."""
        return [session for session in reversed(self._all()) if session.wish.owner_id == owner_id]

    def find(self, id: UUID, owner_id: int) -> Session | None:
        session = self._sessions.get(id)
        return session if session is not None and session.wish.owner_id == owner_id else None

    def do(self, act: Callable[[], object]) -> None:
        """Have this done on the loop of the sessions, soon."""
        # Without the context of the request: it would tie access to the database to that request's thread.
        self._running().call_soon_threadsafe(act, context=contextvars.Context())

    async def close(self) -> None:
        """End all of them while the server they talk to still listens, within bounded time."""
        if self._loop is not None:
            ending = asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            await asyncio.wait({asyncio.wrap_future(ending)}, timeout=2 * ENDING_SECONDS + 1)

    async def _end(self) -> None:
        for session in self._all():
            session.end()
        tasks = set(self._tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=ENDING_SECONDS)
            # First what matters most, whatever leaving takes.
            for session in [session for session in self._all() if session.is_open]:
                await session.revoke()
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=ENDING_SECONDS)

    def _all(self) -> list[Session]:
        return list(self._sessions.values())

    def _start(self, session: Session) -> None:
        task = asyncio.get_running_loop().create_task(session.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self) -> None:
        over = [session for session in self._all() if not session.is_open]
        for owner in {session.wish.owner_id for session in over}:
            own = [session for session in over if session.wish.owner_id == owner]
            for session in own[:-MOST_OVER_EACH]:
                self._sessions.pop(session.id, None)
        for session in over[:-MOST_OVER]:
            self._sessions.pop(session.id, None)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # Beside the server's own loop: a client in it would wait for a server that waits for the client.
                threading.Thread(target=_turn, args=(self._loop,), name="inspector", daemon=True).start()
            return self._loop


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    with suppress(RuntimeError):
        loop.run_forever()


sessions = Sessions()
