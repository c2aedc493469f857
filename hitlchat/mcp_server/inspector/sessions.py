"""The sessions of this process, on a loop of their own: they serve to look for faults, and end with the process."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from uuid import UUID

from hitlchat.mcp_server.inspector.session import Session, Wish

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
        """It connects from now on. TooMany."""
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
