"""Sessions of the Inspector: clients of our own server over HTTP, like anyone else's, each with a bounded recording."""

import asyncio
import contextvars
import json
import logging
import ssl
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

import httpx2
import mcp_types as types
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.utils import timezone
from mcp.client import Client, ClientRequestContext
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from hitlchat.accounts.models import Token, hashed
from hitlchat.base.database import in_db
from hitlchat.base.sentences import translatable
from hitlchat.gate.actor import Actor
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.outcomes import CALL

logger = logging.getLogger(__name__)

# 2026-07-28 is adopted as it is found, so that what the server says of itself is seen as well.
MODES: Final = {"2025-11-25": "legacy", "2026-07-28": "auto"}
# The parts of a session's page, each drawn again when it has changed.
PARTS: Final = ("state", "tools", "questions", "calls")
CONNECTING_SECONDS: Final = 20.0
IDLE_SECONDS: Final = 15 * 60.0
LONGEST_SECONDS: Final = 60 * 60.0
LOOK_SECONDS: Final = 1.0
# For leaving politely.
ENDING_SECONDS: Final = 3.0
# Streams are silent for 15 seconds at most.
TIMEOUT: Final = httpx2.Timeout(10.0, read=120.0)
IDLE: Final = translatable(f"Nothing was done with it for {IDLE_SECONDS / 60:g} minutes.")
LONG: Final = translatable(f"It was open for {LONGEST_SECONDS / 60:g} minutes, which is as long as one may be.")
MOST_MESSAGES: Final = 500
MOST_CHARACTERS: Final = 1_000_000
LONGEST: Final = 16_000
MOST_CALLS: Final = 20
MOST_GOING: Final = 5
MOST_QUESTIONS: Final = 10
MOST_PAGES: Final = 20
MOST_OPEN_EACH: Final = 3
MOST_OPEN: Final = 20
# Those that are over can be read until as many more are.
MOST_OVER: Final = 20
# Begins the title of what is recorded of an answer of HTTP that is an error.
REFUSED: Final = "HTTP "

Trouble = (MCPError, RuntimeError, ValidationError, OSError, httpx2.HTTPError, SubscriptionLost)


def shown(value: Any) -> str:
    return cut(json.dumps(value, indent=2, ensure_ascii=False))


def cut(text: str) -> str:
    """Return the text as far as a page can bear it, with how much is left out."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… and {len(text) - LONGEST:,} more characters"


@dataclass(frozen=True)
class Wish:
    """The wish for a session at `url`, where this process listens, under the name of `host`, as the browser knows it.

    `era`: a key of MODES; `is_temporary`: its token was made for it and ends with it.
    """

    owner_id: int
    era: str
    elicits: bool
    url: str
    host: str
    is_temporary: bool
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Line:
    """One message. `milliseconds`: since the request that it answers; `number` grows by more than one at times."""

    number: int
    clock: str
    sent: bool
    kind: str
    title: str
    text: str
    milliseconds: float | None


class Recording:
    """The latest messages of a session. `last`: the number of the last thing that happened in it."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque()
        self.dropped = self.last = self._characters = 0
        # When each request that is not answered yet was made, and what it was: by who made it, and its id.
        self._open: dict[tuple[bool, str], tuple[float, str]] = {}

    def tick(self) -> int:
        """Return the number of one more thing that happened."""
        self.last += 1
        return self.last

    def message(self, item: SessionMessage | Exception, *, sent: bool) -> None:
        if not isinstance(item, SessionMessage):
            self.add("trouble", type(item).__name__, str(item))
            return
        body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        kind, method, id, since = "notification", body.get("method"), str(body.get("id")), None
        if method is None:
            # A response goes the other way than its request went.
            began, method = self._open.pop((not sent, id), (None, "a request"))
            kind, since = "error" if "error" in body else "result", began and (time.monotonic() - began) * 1000
        elif "id" in body:
            if len(self._open) >= MOST_MESSAGES:
                del self._open[next(iter(self._open))]
            kind, self._open[sent, id] = "request", (time.monotonic(), str(method))
        title = method if kind == "notification" else f"{method} #{id}"
        self.add(kind, title, shown(body), sent=sent, since=since)

    def add(self, kind: str, title: str, text: str, *, sent: bool = False, since: float | None = None) -> None:
        clock = timezone.localtime().isoformat(timespec="milliseconds")[11:23]
        self.lines.append(Line(self.tick(), clock, sent, kind, title[:200], cut(text), since))
        self._characters += len(self.lines[-1].text)
        while len(self.lines) > MOST_MESSAGES or self._characters > MOST_CHARACTERS:
            self._characters -= len(self.lines.popleft().text)
            self.dropped += 1


class _Recorded:
    """One end of the SDK's streams with everything that it has; notes what comes out of it or goes in."""

    def __init__(self, inner: Any, note: Callable[[Any], None]) -> None:
        self._inner, self._note = inner, note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._inner.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._inner:
            self._note(item)
            yield item

    async def send(self, item: Any) -> None:
        self._note(item)
        await self._inner.send(item)


@asynccontextmanager
async def connection(wish: Wish, recording: Recording) -> AsyncIterator[Any]:
    """Yield what the SDK's client takes for a transport."""

    async def record_refusal(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            body = (await response.aread())[:2000].decode(errors="replace")
            recording.add("trouble", f"{REFUSED}{response.status_code} {response.reason_phrase}", body)

    web = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {wish.secret}", "Host": wish.host},
        timeout=TIMEOUT,
        trust_env=False,
        # Of no use without TLS, and the usual one takes long to make.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        event_hooks={"response": [record_refusal]},
    )
    async with web, streamable_http_client(wish.url, http_client=web) as (reading, writing):
        note = recording.message
        yield _Recorded(reading, partial(note, sent=False)), _Recorded(writing, partial(note, sent=True))


@dataclass
class Call:
    """One tools/call. `error`: why there is no result. `call_id`: of the call on record, once the result has named it.
    `details`: what a page unfolds, by its title.
    """

    number: int
    tool: str
    details: dict[str, str]
    state: Literal["going", "done", "cancelled", "failed"] = "going"
    milliseconds: float = 0.0
    progress: str = ""
    share: float | None = None
    content: list[str] = field(default_factory=list)
    call_id: UUID | None = None
    is_error: bool = False
    error: str = ""
    task: asyncio.Task[None] | None = None

    def take(self, result: types.CallToolResult) -> None:
        self.state, self.is_error = "done", bool(result.is_error)
        self.content = [_text(block) for block in result.content]
        if result.structured_content is not None:
            self.details["structuredContent"] = shown(result.structured_content)
        if result.meta:
            self.details["_meta"] = shown(result.meta)
        with suppress(ValueError):
            self.call_id = UUID(str((result.meta or {}).get(CALL)))


@dataclass
class Question:
    """An elicitation that waits for its answer. `address`: the page that its user is sent to; empty for a form."""

    number: int
    call: Call | None
    message: str
    address: str
    reply: "asyncio.Future[Any]"


# The call that the code at hand belongs to; the SDK carries it from the request to what comes back for it.
CURRENT: ContextVar[Call | None] = ContextVar("inspector_call", default=None)


class Session:
    """Read from any thread; what changes it runs on the loop of the sessions alone.

    `tools` is None before they are listed; `changed` has for each of PARTS the number of its last change.
    """

    def __init__(self, wish: Wish) -> None:
        self.id: UUID = uuid7()
        self.wish, self.began, self.recording = wish, timezone.now(), Recording()
        self.version = self.server = self.ended = ""
        self.tools: tuple[types.Tool, ...] | None = None
        self.calls: dict[int, Call] = {}
        self.questions: dict[int, Question] = {}
        self.changed = dict.fromkeys(PARTS, self.recording.tick())
        self.task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._used, self._over, self._by_person = time.monotonic(), asyncio.Event(), False

    @property
    def is_open(self) -> bool:
        return not self.ended

    @property
    def is_modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    def touch(self) -> None:
        """Note that its user does something with it."""
        self._used = time.monotonic()

    def end(self, *, by_person: bool = False) -> None:
        self._by_person = self._by_person or by_person
        self._over.set()

    def start(self, act: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        """Do one of `list_tools`, `listen` and `ping`, if it is connected."""
        if self._client is not None:
            self._start(self._recorded(act(self._client)))

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        """Call a tool, unless as many calls as are allowed go on."""
        if self._client is None or sum(call.task is not None for call in self.calls.values()) >= MOST_GOING:
            return
        call = Call(self.recording.tick(), name, {"Arguments": shown(arguments)})
        self.calls[call.number] = call
        for old in [old.number for old in self.calls.values() if old.task is None][:-MOST_CALLS]:
            del self.calls[old]
        call.task = self._start(self._call(self._client, call, arguments))
        self._mark("calls")

    def cancel(self, number: int) -> None:
        call = self.calls.get(number)
        if call is not None and call.task is not None:
            call.task.cancel()

    def answer(self, number: int, action: str) -> None:
        question = self.questions.get(number)
        if question is not None and not question.reply.done():
            question.reply.set_result(action)

    async def run(self) -> None:
        """Run from the first message to the last. The token made for it ends with it."""
        why = "An error in hitlchat ended it; its log has more."
        try:
            async with AsyncExitStack() as stack:
                why = await self._run(stack)
        except (*Trouble, BaseExceptionGroup) as error:
            refused = [line.title for line in self.recording.lines if line.title.startswith(REFUSED)]
            # What the SDK makes of it says less.
            said = translatable(f"The server answered {refused[-1]}; the messages have more.") if refused else ""
            why = said or _plain(error)
        except Exception:
            logger.exception("A session of the Inspector failed")
        finally:
            self._client = None
            await self.revoke()
            self.ended = why
            self._mark("state")

    async def revoke(self) -> None:
        """Revoke its token, if it was made for it. A server that ends does so itself, and does not wait for `run`."""
        if self.wish.is_temporary:
            try:
                await in_db(_revoke)(self.wish.secret, "session" if self._by_person else "system")
            except DatabaseError:
                logger.exception("The token of a session of the Inspector was not revoked; it expires by itself")

    async def _run(self, stack: AsyncExitStack) -> str:
        client = Client(
            connection(self.wish, self.recording),
            mode=MODES[self.wish.era],
            cache=None,
            elicitation_callback=self._elicit if self.wish.elicits else None,
            message_handler=self._notify,
            client_info=types.Implementation(name="hitlchat-inspector", title="hitlchat Inspector", version="1"),
        )
        async with asyncio.timeout(CONNECTING_SECONDS):
            self._client = await stack.enter_async_context(client)
        named = client.server_info
        self.server = f"{named.title or named.name} {named.version}" if named else "a server that gives no name"
        self.version = client.protocol_version
        self._mark("state")
        # Left first: what goes on must end before its connection does.
        stack.push_async_callback(self._end_tasks)
        await self._recorded(self.list_tools(client))
        if self.is_modern:
            self.start(self.listen)
        return await self._until_over()

    async def _until_over(self) -> str:
        """Wait until the session is over, and return why it is."""
        last = time.monotonic() + LONGEST_SECONDS
        while not self._over.is_set():
            now = time.monotonic()
            if now > last or now - self._used > IDLE_SECONDS:
                return LONG if now > last else IDLE
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), LOOK_SECONDS)
        return "You ended it." if self._by_person else "The server ended it."

    async def _end_tasks(self) -> None:
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    async def _elicit(
        self,
        context: ClientRequestContext,  # noqa: ARG002  the SDK's
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the client's user."""
        if len(self.questions) >= MOST_QUESTIONS:
            return types.ElicitResult(action="cancel")
        address = params.url if isinstance(params, types.ElicitRequestURLParams) else ""
        reply = asyncio.get_running_loop().create_future()
        question = Question(self.recording.tick(), CURRENT.get(), params.message, address, reply)
        self.questions[question.number] = question
        self._mark("questions")
        try:
            action = await reply
        finally:
            del self.questions[question.number]
            self._mark("questions")
        content: dict[str, Any] = {"content": {}} if action == "accept" and not address else {}
        return types.ElicitResult(action=action, **content)

    async def _notify(self, message: IncomingMessage) -> None:
        """Take a notification, which the recording has already. In the newer revision its stream says the same."""
        if isinstance(message, types.ToolListChangedNotification) and not self.is_modern:
            self.start(self.list_tools)

    async def list_tools(self, client: Client) -> None:
        page = await client.list_tools()
        tools = page.tools
        for _ in range(1, MOST_PAGES):
            if page.next_cursor is None:
                break
            page = await client.list_tools(cursor=page.next_cursor)
            tools += page.tools
        self.tools = tuple(tools)
        self._mark("tools")

    async def listen(self, client: Client) -> None:
        """List the tools whenever they change, and once now: nothing told of changes since the first list."""
        async with client.listen(tools_list_changed=True) as changes:
            await self.list_tools(client)
            async for _ in changes:
                await self.list_tools(client)

    async def ping(self, client: Client) -> None:
        if self.is_modern:
            # Its `discover` would repeat what the server said before.
            await client.session.send_discover(client.protocol_version)
        else:
            await client.session.send_ping()

    async def _recorded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Trouble as error:
            self.recording.add("trouble", type(error).__name__, str(error))

    async def _call(self, client: Client, call: Call, arguments: dict[str, Any]) -> None:
        CURRENT.set(call)
        began = time.monotonic()

        async def follow(progress: float, total: float | None, message: str | None) -> None:
            call.progress = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            call.progress += f": {message[:300]}" if message else ""
            call.share = min(1.0, progress / total) if total else None
            self._mark("calls")

        try:
            call.take(await client.call_tool(call.tool, arguments, progress_callback=follow))
        except (*Trouble, BaseExceptionGroup) as error:
            call.state, call.error = "failed", _plain(error)
        except asyncio.CancelledError:
            call.state = "cancelled"
        finally:
            call.task, call.milliseconds = None, (time.monotonic() - began) * 1000
            self._mark("calls")
            # Nobody waits any more for what its user was asked.
            for question in list(self.questions.values()):
                if question.call is call:
                    self.answer(question.number, "cancel")

    def _mark(self, part: str) -> None:
        self.changed[part] = self.recording.tick()

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _text(block: types.ContentBlock) -> str:
    if isinstance(block, types.TextContent):
        return cut(block.text)
    plain = block.model_dump(by_alias=True, mode="json", exclude_none=True)
    for holder, name in ((plain, "data"), (plain.get("resource", {}), "blob")):
        if name in holder:
            holder[name] = f"… {len(holder[name]):,} characters of Base64"
    return shown(plain)


def _plain(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return translatable(f"The server answered with the error {error.code}: {error.message}")
    if isinstance(error, TimeoutError):
        return "The server did not answer in time."
    return translatable(f"The connection failed: {str(error) or type(error).__name__}")


def _revoke(secret: str, means: Literal["session", "system"]) -> None:
    """Revoke a token: calls made with it that have not started never will."""
    token = Token.objects.filter(digest=hashed(secret)).select_related("user").first()
    if token is not None and isinstance(token.user, User):
        with suppress(tokens.NoSuchToken):
            tokens.revoke(token.user, token.pk, Actor(token.user_id, means))


class TooMany(Exception):
    """No more sessions may be open; the message says how many may."""


class Sessions:
    """The sessions of this process, on a loop of their own: in the server's a client would wait for itself."""

    def __init__(self) -> None:
        self._sessions: dict[UUID, Session] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.RLock()

    def begin(self, owner_id: int, make_wish: Callable[[], Wish]) -> Session:
        """Begin a session, which connects from now on. Raises: TooMany, before its wish and token are made."""
        with self._lock:
            going = [session for session in self._sessions.values() if session.is_open]
            if sum(session.wish.owner_id == owner_id for session in going) >= MOST_OPEN_EACH:
                raise TooMany(f"You have {MOST_OPEN_EACH} sessions open, which is the most. End one of them first.")
            if len(going) >= MOST_OPEN:
                raise TooMany(f"{MOST_OPEN} sessions of all people are open, which is the most. Try again later.")
            session = Session(make_wish())
            self._sessions[session.id] = session
            for old in [session.id for session in self._sessions.values() if not session.is_open][:-MOST_OVER]:
                del self._sessions[old]
        self.do(partial(self._start, session))
        return session

    def of(self, owner_id: int) -> list[Session]:
        """Return the sessions of one person, the latest first."""
        return [session for session in reversed(list(self._sessions.values())) if session.wish.owner_id == owner_id]

    def do(self, act: Callable[[], object]) -> None:
        """Run `act` on the loop of the sessions, soon."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="inspector", daemon=True).start()
            # Without the context of the request: it would tie access to the database to that request's thread.
            self._loop.call_soon_threadsafe(act, context=contextvars.Context())

    async def close(self) -> None:
        """End all of them while the server they talk to still listens, within bounded time."""
        if self._loop is not None:
            # Without the context of the server that ends, which may say that its database thread is taken.
            ending = contextvars.Context().run(asyncio.run_coroutine_threadsafe, self._end(), self._loop)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(ending), 2 * ENDING_SECONDS + 1)

    async def _end(self) -> None:
        going = [session for session in self._sessions.values() if session.is_open]
        for session in going:
            session.end()
        if tasks := [session.task for session in going if session.task is not None]:
            await asyncio.wait(tasks, timeout=ENDING_SECONDS)
        # What matters most, whatever leaving takes.
        for session in going:
            if session.is_open:
                await session.revoke()

    @staticmethod
    def _start(session: Session) -> None:
        session.task = asyncio.get_running_loop().create_task(session.run())


sessions = Sessions()
