"""The Inspector: a client of our own MCP server, over HTTP like anyone else's, whose insides its user sees.

Its sessions are in the memory of one process, with their latest messages; each request opens a new connection.
"""

import asyncio
import json
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

import httpx2
import mcp_types as types
from django.utils import timezone
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from uuid_utils.compat import uuid7

from hitlchat.base.background import background
from hitlchat.gate.status import SETTLED, Status
from hitlchat.mcp_server.outcomes import CALL, STATUS
from hitlchat.upstreams.client.opening import Tap

# 2026-07-28 is negotiated, so that what the server says of itself is among the messages.
MODES: Final = {"2025-11-25": "legacy", "2026-07-28": "auto"}
# The parts of a session's page, each drawn again when it has changed.
PARTS: Final = ("tools", "questions", "calls")
# Streams are silent for 15 seconds at most.
TIMEOUT: Final = httpx2.Timeout(10.0, read=120.0)
MOST_CALLS: Final = 20
MOST_MESSAGES: Final = 200
LONGEST: Final = 16_000
TROUBLE: Final = (MCPError, RuntimeError, ValidationError, OSError, httpx2.HTTPError, BaseExceptionGroup)

State = Literal["going", "done", "waits", "failed", "cancelled"]

_sessions: dict[int, "Session"] = {}


def begin(session: "Session") -> None:
    end(session.owner_id)
    _sessions[session.owner_id] = session
    background.spawn(session.list_tools)


def session_of(owner_id: int) -> "Session | None":
    return _sessions.get(owner_id)


def end(owner_id: int) -> None:
    """End the person's session, if there is one, and with it everything that goes on in it."""
    if session := _sessions.pop(owner_id, None):
        background.spawn(session.cancel)


def end_all() -> None:
    """End all of them while the server they talk to still listens; what drains the background waits for them."""
    for owner_id in list(_sessions):
        end(owner_id)


def shown(value: Any) -> str:
    return cut(json.dumps(value, indent=2, ensure_ascii=False))


def cut(text: str) -> str:
    """Return the text as far as a page can bear it, with how much is left out."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… and {len(text) - LONGEST:,} more characters"


@dataclass(frozen=True)
class Line:
    """One message. `milliseconds`: since the request that it answers; `number` grows by more than one at times."""

    number: int
    at: datetime
    sent: bool
    kind: str
    title: str
    text: str
    milliseconds: float | None


@dataclass
class Call:
    """One tools/call. `state`: waits if its result says that there is no outcome yet; `texts`: of its result, or why
    there is none; `call_id`: of the call on record, once known.
    """

    number: int
    tool: str
    arguments: str
    task: asyncio.Task[None] | None
    state: State = "going"
    progress: str = ""
    texts: list[str] = field(default_factory=list)
    call_id: UUID | None = None


@dataclass
class Question:
    """An open elicitation. `address`: the page that its user is sent to; empty for a form."""

    number: int
    call: Call
    message: str
    address: str
    reply: "asyncio.Future[Any]"


@dataclass(eq=False)
class Session:
    """A client at `url`, where this process listens, under the name of `host`, as the browser knows it. Read from any
    thread, changed on the server's loop alone. `tools`: None until listed; `changed`: when each of PARTS did last.
    """

    owner_id: int
    era: str
    elicits: bool
    url: str
    host: str
    secret: str = field(repr=False)
    id: UUID = field(default_factory=uuid7)
    tools: list[types.Tool] | None = None
    problem: str = ""
    calls: deque[Call] = field(default_factory=lambda: deque(maxlen=MOST_CALLS))
    questions: list[Question] = field(default_factory=list)
    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=MOST_MESSAGES))
    last: int = 1
    changed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 1))
    # Of two lists at once the older one must not come last.
    _listing: asyncio.Lock = field(default_factory=asyncio.Lock)
    # When each unanswered request was made, and its method: by who made it, and its id.
    _open: dict[tuple[bool, str], tuple[float, str]] = field(default_factory=dict)
    # Those that talk to the server: of calls and of lists.
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def tool(self, name: str) -> types.Tool | None:
        return next((tool for tool in self.tools or () if tool.name == name), None)

    async def list_tools(self) -> None:
        tools: list[types.Tool] = []
        try:
            async with self._listing, self._client() as client:
                page = await client.list_tools()
                tools += page.tools
                while page.next_cursor is not None:
                    page = await client.list_tools(cursor=page.next_cursor)
                    tools += page.tools
            self.tools, self.problem = tools, ""
        except TROUBLE as error:
            self.problem = _plain(error)
        self._mark("tools")

    async def call(self, tool: str, arguments: dict[str, Any]) -> None:
        call = Call(self._next(), tool, shown(arguments), asyncio.current_task())
        self.calls.appendleft(call)
        self._mark("calls")

        async def follow(progress: float, total: float | None, message: str | None) -> None:
            parts = [f"{progress:g} of {total:g}" if total else "", (message or "")[:300]]
            # A number without a total says something only if nothing else does.
            call.progress = ": ".join(filter(None, parts)) or f"{progress:g}"
            self._mark("calls")

        try:
            async with self._client(partial(self._elicit, call)) as client:
                result = await client.call_tool(tool, arguments, progress_callback=follow)
                meta = result.meta or {}
                outcome: State = "failed" if result.is_error else "done"
                # An error by the protocol, as it has no result yet.
                call.state = outcome if meta.get(STATUS, Status.FAILED) in SETTLED else "waits"
                call.texts = [cut(getattr(block, "text", f"[{block.type}]")) for block in result.content]
                with suppress(ValueError):
                    call.call_id = UUID(str(meta.get(CALL)))
        except TROUBLE as error:
            call.state, call.texts = "failed", [_plain(error)]
        except asyncio.CancelledError:
            call.state = "cancelled"
        finally:
            call.task = None
            self._mark("calls")

    async def cancel(self, number: int | None = None) -> None:
        """Cancel one call, or everything that goes on."""
        for task in [call.task for call in self.calls if call.number == number] if number else list(self.tasks):
            if task is not None:
                task.cancel()

    async def answer(self, number: int, action: str) -> None:
        for question in self.questions:
            if question.number == number and not question.reply.done():
                question.reply.set_result(action)

    async def _elicit(self, call: Call, _context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        address = params.url if isinstance(params, types.ElicitRequestURLParams) else ""
        reply = asyncio.get_running_loop().create_future()
        question = Question(self._next(), call, params.message, address, reply)
        self.questions.append(question)
        self._mark("questions")
        try:
            action = await reply
        finally:
            self.questions.remove(question)
            self._mark("questions")
        content: dict[str, Any] = {"content": {}} if action == "accept" and not address else {}
        return types.ElicitResult(action=action, **content)

    def _client(self, elicit: Any = None) -> Client:
        info = types.Implementation(name="hitlchat-inspector", title="hitlchat Inspector", version="1")
        asks, mode = elicit if self.elicits else None, MODES[self.era]
        return Client(self._transport(), mode=mode, cache=None, elicitation_callback=asks, client_info=info)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        """Yield the streams of a client, each message of which is recorded."""

        async def record_refusal(response: httpx2.Response) -> None:
            if response.status_code >= 400:
                body = (await response.aread())[:2000].decode(errors="replace")
                self._add("trouble", f"HTTP {response.status_code} {response.reason_phrase}", body)

        web = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {self.secret}", "Host": self.host},
            timeout=TIMEOUT,
            trust_env=False,
            # Of no use without TLS, and the usual one takes long to make.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            event_hooks={"response": [record_refusal]},
        )
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            async with web, streamable_http_client(self.url, http_client=web) as (reading, writing):
                sent, received = (partial(self._record, sent=is_sent) for is_sent in (True, False))
                yield _Recorded(reading, received), _Recorded(writing, sent)
        finally:
            self.tasks.discard(task)

    def _record(self, item: SessionMessage | Exception, *, sent: bool) -> None:
        if not isinstance(item, SessionMessage):
            self._add("trouble", type(item).__name__, str(item))
            return
        body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        kind, method, id, since = "notification", body.get("method"), str(body.get("id")), None
        if method is None:
            # A response goes the other way than its request went.
            began, method = self._open.pop((not sent, id), (None, "a request"))
            kind, since = "error" if "error" in body else "result", began and (time.monotonic() - began) * 1000
        elif "id" in body:
            kind, self._open[sent, id] = "request", (time.monotonic(), str(method))
        self._add(kind, method if kind == "notification" else f"{method} #{id}", shown(body), sent=sent, since=since)

    def _add(self, kind: str, title: str, text: str, *, sent: bool = False, since: float | None = None) -> None:
        self.lines.append(Line(self._next(), timezone.now(), sent, kind, title[:200], cut(text), since))

    def _mark(self, part: str) -> None:
        self.changed[part] = self._next()

    def _next(self) -> int:
        """Return the number of one more thing that happens."""
        self.last += 1
        return self.last


class _Recorded(Tap):
    def __init__(self, stream: Any, note: Callable[[Any], None]) -> None:
        super().__init__(stream)
        self._note = note

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._stream:
            self._note(item)
            yield item

    async def send(self, item: Any) -> None:
        self._note(item)
        await self._stream.send(item)


def _plain(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
