"""A session at work: it lists, calls, pings, and answers questions."""

import asyncio
import base64
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, TypeGuard
from uuid import UUID

import httpx2
import mcp_types as types
from django.utils import timezone
from mcp.client import Client, ClientRequestContext
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hitlchat.gate import contents
from hitlchat.mcp_server.inspector.wire import Recording, cut, shown
from hitlchat.mcp_server.outcomes import CALL


class State(StrEnum):
    GOING = "going"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass
class Call:
    """One tools/call. `born` and `changed` are numbers of the recording; `error`: why there is no result.
    `call_id`: of the call on record, once the result has named it; `pictures`: its attachments that a page may show, by
    their digests.
    """

    number: int
    tool: str
    arguments: str
    at: datetime
    born: int
    changed: int
    state: State = State.GOING
    milliseconds: float = 0.0
    progress: str = ""
    share: float | None = None
    content: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    structured: str = ""
    meta: str = ""
    call_id: UUID | None = None
    is_error: bool = False
    error: str = ""
    task: asyncio.Task[None] | None = None

    def take(self, result: types.CallToolResult) -> None:
        self.state, self.is_error = State.DONE, bool(result.is_error)
        self.content = [_block(block) for block in result.content]
        self.pictures = [_digest(block.data) for block in result.content if _is_picture(block)]
        self.structured = "" if result.structured_content is None else shown(result.structured_content)
        self.meta = shown(result.meta) if result.meta else ""
        self.call_id = _id((result.meta or {}).get(CALL))


@dataclass
class Question:
    """An elicitation that waits for its answer. `address`: of the page that its user is sent to; empty for a form."""

    number: int
    call: Call | None
    at: datetime
    message: str
    schema: str
    address: str
    reply: "asyncio.Future[str]"

    @classmethod
    def of(cls, params: types.ElicitRequestParams, number: int, call: Call | None, at: datetime) -> "Question":
        return cls(
            number=number,
            call=call,
            at=at,
            message=cut(params.message),
            schema=shown(params.requested_schema) if isinstance(params, types.ElicitRequestFormParams) else "",
            address=params.url if isinstance(params, types.ElicitRequestURLParams) else "",
            reply=asyncio.get_running_loop().create_future(),
        )


def _id(said: Any) -> UUID | None:
    try:
        return UUID(said) if isinstance(said, str) else None
    except ValueError:
        return None


def _block(block: types.ContentBlock) -> str:
    if isinstance(block, types.TextContent):
        return cut(block.text)
    plain = block.model_dump(by_alias=True, mode="json", exclude_none=True)
    for holder, name in ((plain, "data"), (plain.get("resource", {}), "blob")):
        if name in holder:
            holder[name] = f"… {len(holder[name]):,} characters of Base64"
    return shown(plain)


def _is_picture(block: types.ContentBlock) -> TypeGuard[types.ImageContent]:
    return isinstance(block, types.ImageContent) and block.mime_type in contents.PICTURES


def _digest(packed: str) -> str:
    return contents.digest(base64.b64decode(packed))


MOST_CALLS: Final = 20
MOST_GOING: Final = 5
MOST_QUESTIONS: Final = 10
MOST_PAGES: Final = 20
# The call that the code at hand belongs to; the SDK carries it from the request to what comes back for it.
CURRENT: ContextVar[Call | None] = ContextVar("inspector_call", default=None)

Trouble = (MCPError, RuntimeError, ValidationError, OSError, httpx2.HTTPError)


class Acting:
    """`tools` is None before they are listed. `changed` has for each part of the page when it last changed."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.client: Client | None = None
        self.tools: tuple[types.Tool, ...] | None = None
        self.calls: dict[int, Call] = {}
        self.questions: dict[int, Question] = {}
        self.changed = {"tools": 0, "questions": 0}
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def is_modern(self) -> bool:
        return self.client is not None and self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def begin(self, client: Client) -> None:
        self.client = client
        await self._list(client)
        if self.is_modern:
            self._start(self._listen(client))

    async def end(self) -> None:
        """Nothing of it goes on afterwards."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    def list_again(self) -> None:
        if self.client is not None:
            self._start(self._list(self.client))

    def ping(self) -> None:
        if self.client is not None:
            self._start(self._ping(self.client))

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        """Nothing happens while as many calls as are allowed go on."""
        if self.client is None or len([call for call in self.calls.values() if call.task]) >= MOST_GOING:
            return
        number = self.recording.tick()
        call = Call(number, name, shown(arguments), timezone.now(), born=number, changed=number)
        self.calls[number] = call
        for old in [old.number for old in self.calls.values() if old.task is None][:-MOST_CALLS]:
            del self.calls[old]
        call.task = self._start(self._call(self.client, call, arguments))

    def cancel(self, number: int) -> None:
        call = self.calls.get(number)
        if call is not None and call.task is not None:
            call.task.cancel()

    def answer(self, number: int, action: str) -> None:
        question = self.questions.get(number)
        if question is not None and not question.reply.done():
            question.reply.set_result(action)

    async def asked(
        self,
        context: ClientRequestContext,  # noqa: ARG002  the SDK's
        params: types.ElicitRequestParams,
    ) -> Any:
        """The client's user is asked."""
        if len(self.questions) >= MOST_QUESTIONS:
            return types.ElicitResult(action="cancel")
        question = Question.of(params, self.recording.tick(), CURRENT.get(), timezone.now())
        self.questions[question.number] = question
        self._mark("questions")
        try:
            action = await question.reply
        finally:
            del self.questions[question.number]
            self._mark("questions")
        is_form = action == "accept" and not question.address
        return types.ElicitResult.model_validate({"action": action, **({"content": {}} if is_form else {})})

    async def told(self, message: IncomingMessage) -> None:
        """A notification, which the recording has already. In the newer revision its stream says the same."""
        if isinstance(message, types.ToolListChangedNotification) and not self.is_modern:
            self.list_again()

    async def _list(self, client: Client) -> None:
        tools: list[types.Tool] = []
        cursor: str | None = None
        try:
            for _ in range(MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    break
        except Trouble as error:
            self.recording.trouble("tools/list failed", str(error))
        self.tools = tuple(tools)
        self._mark("tools")

    async def _listen(self, client: Client) -> None:
        try:
            async with client.listen(tools_list_changed=True) as changes:
                # What changed between the first list and this, nobody told.
                await self._list(client)
                async for _ in changes:
                    await self._list(client)
        except (*Trouble, SubscriptionLost) as error:
            self.recording.trouble("subscriptions/listen ended", str(error))

    async def _ping(self, client: Client) -> None:
        try:
            if self.is_modern:
                # Its `discover` would repeat what the server said before.
                await client.session.send_discover(client.protocol_version)
            else:
                await client.session.send_ping()
        except Trouble as error:
            self.recording.trouble("No answer to the ping", str(error))

    async def _call(self, client: Client, call: Call, arguments: dict[str, Any]) -> None:
        CURRENT.set(call)
        began = time.monotonic()

        async def follow(progress: float, total: float | None, message: str | None) -> None:
            call.progress = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            call.progress += f": {message[:300]}" if message else ""
            call.share = min(1.0, progress / total) if total else None
            call.changed = self.recording.tick()

        try:
            call.take(await client.call_tool(call.tool, arguments, progress_callback=follow))
        except MCPError as error:
            call.state, call.error = State.FAILED, f"JSON-RPC error {error.code}: {error.message}"
        except Trouble as error:
            call.state, call.error = State.FAILED, f"{type(error).__name__}: {error}"
        except BaseExceptionGroup as group:
            call.state, call.error = State.FAILED, str(group.exceptions[0])
        except asyncio.CancelledError:
            call.state = State.CANCELLED
        finally:
            call.task, call.milliseconds = None, (time.monotonic() - began) * 1000
            call.changed = self.recording.tick()
            self._take_back(call)

    def _take_back(self, call: Call) -> None:
        """Nobody waits any more for what its user was asked."""
        for question in list(self.questions.values()):
            if question.call is call and not question.reply.done():
                question.reply.set_result("cancel")

    def _mark(self, part: str) -> None:
        self.changed[part] = self.recording.tick()

    def _start(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
