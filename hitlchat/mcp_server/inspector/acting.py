"""What a session does: list, call, ping, answer; and what it is told meanwhile."""

import asyncio
import time
from contextvars import ContextVar
from typing import Any, Final

import httpx2
import mcp_types as types
from django.utils import timezone
from mcp.client import Client, ClientRequestContext
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from hitlchat.mcp_server.inspector.exchanges import Call, Question, State
from hitlchat.mcp_server.inspector.recording import Recording, shown

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
