"""A front end without a library: requests to the real application, and what comes back of a stream, chunk by chunk."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from asgiref.testing import ApplicationCommunicator

from hitlchat.asgi import application
from tests.agent.talk import in_database
from tests.recorder import recorded_tool
from tests.scripted_model import ScriptedModel, calls
from tests.waiting import SECONDS

Chunk = dict[str, Any]
HOST: Final = b"127.0.0.1:8000"
SEND: Final = ("send", {"text": "hi"})


class Request:
    """One request, whose answer may go on for long."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: Any = None) -> None:
        self._body = b"" if body is None else json.dumps(body).encode()
        sent = {"host": HOST.decode(), "content-type": "application/json", "content-length": str(len(self._body))}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in {**sent, **headers}.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        self._connection: Any = ApplicationCommunicator(application, scope)  # type: ignore[no-untyped-call]
        self._left = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.comments: list[str] = []
        self.chunks: list[Chunk] = []
        self.is_over = False

    async def send(self) -> "Request":
        await self._connection.send_input({"type": "http.request", "body": self._body, "more_body": False})
        started = await self._connection.receive_output(SECONDS)
        self.status = started["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in started["headers"]}
        return self

    async def json(self) -> Any:
        while not self.is_over:
            await self._read()
        return json.loads(self._left)

    async def chunk(self) -> Chunk | None:
        """The next one; None at the end, which has to be marked."""
        while True:
            line, separator, rest = self._left.partition(b"\n\n")
            if not separator:
                assert not self.is_over, f"the stream ended without its mark, after {self.chunks[-3:]}"
                await self._read()
                continue
            self._left = rest
            if line.startswith(b":"):
                self.comments.append(line.decode())
                continue
            assert line.startswith(b"data: "), line
            if line == b"data: [DONE]":
                return None
            self.chunks.append(json.loads(line[6:]))
            return self.chunks[-1]

    async def until(self, kind: str, ok: Callable[[Chunk], bool] = lambda _: True) -> Chunk:
        """Read on until a chunk of this kind."""
        while (found := await self.chunk()) is not None:
            if found["type"] == kind and ok(found):
                return found
        raise AssertionError(f"no {kind} in {self.chunks}")

    async def until_comment(self, count: int) -> None:
        """Read on until there were so many comments."""
        while len(self.comments) < count:
            line, separator, rest = self._left.partition(b"\n\n")
            if not separator:
                await self._read()
            elif line.startswith(b":"):
                self.comments.append(line.decode())
                self._left = rest
            else:
                await self.chunk()

    async def rest(self) -> list[Chunk]:
        """Return all that is still to come."""
        before = len(self.chunks)
        while await self.chunk() is not None:
            pass
        return self.chunks[before:]

    async def leave(self) -> None:
        await self._connection.send_input({"type": "http.disconnect"})
        await self._connection.wait(SECONDS)

    async def close(self) -> None:
        self._connection.stop(exceptions=False)
        await asyncio.sleep(0)

    async def _read(self) -> None:
        event = await self._connection.receive_output(SECONDS)
        self._left += event.get("body", b"")
        self.is_over = not event.get("more_body")


class Listening:
    """A client of one conversation, with the headers of a session or a token."""

    def __init__(self, conversation: UUID, headers: dict[str, str]) -> None:
        self.id, self.headers = str(conversation), headers
        self.requests: list[Request] = []

    async def post(self, body: dict[str, Any], path: str = "/api/chat", **headers: str) -> Request:
        return await self._send(Request("POST", path, {**self.headers, **headers}, body))

    async def say(self, text: str, message_id: str = "m1", **more: Any) -> Request:
        message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
        return await self.post({"id": self.id, "messages": [message], "trigger": "submit-message", **more})

    async def resume(self) -> Request:
        return await self._send(Request("GET", f"/api/chat/{self.id}/stream", self.headers))

    async def stored(self) -> list[dict[str, Any]]:
        found = await (await self._send(Request("GET", f"/api/chat/{self.id}", self.headers))).json()
        messages: list[dict[str, Any]] = found["messages"]
        return messages

    async def answer(self, message: dict[str, Any], **approval: Any) -> Request:
        """Answer all that is asked in a stored message, as the SDK does it."""
        parts = []
        for part in message["parts"]:
            asks = part.get("state") == "approval-requested"
            parts.append(
                part | {"state": "approval-responded", "approval": part["approval"] | approval} if asks else part
            )
        return await self.post({"id": self.id, "messages": [message | {"parts": parts}], "messageId": message["id"]})

    async def submit(self, **body: Any) -> Request:
        return await self.post(body, f"/api/chat/{self.id}/submit-tool-result")

    async def _send(self, request: Request) -> Request:
        self.requests.append(request)
        return await request.send()

    async def close(self) -> None:
        for each in self.requests:
            await each.close()


async def asked(listening: Listening, model: ScriptedModel, *more: Any, **columns: Any) -> dict[str, Any]:
    """Have the tool `send` asked for; the message that asks, as it is stored."""
    await in_database(recorded_tool)("send", **columns)
    model.enqueue(calls(SEND), *more)
    request = await listening.say("Send it")
    assert request.status == 200, await request.json()
    await request.rest()
    return (await listening.stored())[-1]


def kinds(chunks: list[dict[str, Any]]) -> list[str]:
    return [chunk["type"] for chunk in chunks]
