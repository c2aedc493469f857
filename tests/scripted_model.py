"""A model server that plays a script: real HTTP and server-sent events on loopback, as OpenAI and others speak them.

    model.enqueue(calls(("echo", {"text": "hi"})), text("Done."))

Each request takes the next reply; one that finds none is answered with an error, and fails the test in the end, as a
reply that nobody asked for does. A `Gate` among a reply's parts holds the answer there until the test opens it.
"""

import itertools
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest
from pytest_django import Settings

from tests.waiting import soon, until

Json = dict[str, Any]
Delta = Json

MODEL: Final = "scripted"
KEY: Final = "a key for the scripted model"
GATE_SECONDS: Final = 40.0
DONE: Final = b"data: [DONE]\n\n"

_numbers = itertools.count(1)


class Gate:
    """A point at which an answer halts: the test sees that it was reached, and opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def hold(self) -> None:
        self.reached.set()
        self.opened.wait(GATE_SECONDS)

    def open(self) -> None:
        self.opened.set()

    def wait(self) -> None:
        until(self.reached.is_set, "the model reaches the gate")

    async def arrival(self) -> None:
        await soon(self.reached.is_set, "the model reaches the gate")


class Cut:
    """The connection breaks here."""


Part = bytes | Gate | Cut


@dataclass(frozen=True)
class Reply:
    """What is sent for one request: `parts` one after the other, each flushed."""

    parts: tuple[Part, ...] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})


# -- Replies ---------------------------------------------------------------------------------------------------------


def text(*parts: str | Gate) -> Reply:
    """An answer without calls. Each text is one delta."""
    return Reply((*_texts(parts), *_end("stop")))


def calls(
    *wanted: tuple[str, Json | str], say: str = "", dialect: str = "in sequence", gate: Gate | None = None
) -> Reply:
    """An answer that calls tools: (name, arguments), the latter an object or its text. `gate` is before the end."""
    deltas = DIALECTS[dialect]([_call(name, arguments) for name, arguments in wanted])
    parts = [chunk({"tool_calls": part}) for part in deltas]
    held: tuple[Gate, ...] = (gate,) if gate else ()
    return Reply((*_texts([say] if say else []), *parts, *held, *_end("tool_calls")))


def raw(body: bytes) -> Reply:
    """These very bytes as the stream."""
    return Reply((body,))


def status(code: int, error: Json | None = None, *, retry: bool = False, **headers: str) -> Reply:
    """An error instead of an answer. Without `retry` the client is asked not to try again by itself."""
    told = {"Content-Type": "application/json", "x-should-retry": "true" if retry else "false"}
    body = json.dumps({"error": error or {"message": f"status {code}"}}).encode()
    return Reply((body,), code, told | {name.replace("_", "-"): value for name, value in headers.items()})


def unfinished(*parts: str | Gate) -> Reply:
    """The stream ends in good order, but before the answer was complete."""
    return Reply(tuple(_texts(parts)))


def cut_off_after(*parts: str | Gate) -> Reply:
    """The connection breaks in the middle of the answer."""
    return Reply((*_texts(parts), Cut()))


def error_after(*parts: str | Gate, message: str = "overloaded") -> Reply:
    """The server reports an error in the middle of the answer."""
    return Reply((*_texts(parts), sse({"error": {"message": message, "type": "server_error"}})))


def hang(gate: Gate | None = None) -> Reply:
    """Take the request and say nothing until the gate opens or the test ends; then break off."""
    return Reply((gate or Gate(), Cut()))


# -- The wire --------------------------------------------------------------------------------------------------------


def sse(data: Json) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def chunk(delta: Delta, finish: str | None = None) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return sse(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}
    )


def _texts(parts: Any) -> list[Part]:
    head = chunk({"role": "assistant", "content": ""})
    return [head, *(part if isinstance(part, Gate) else chunk({"content": part}) for part in parts)]


def _end(reason: str) -> tuple[bytes, ...]:
    # The chunk with the token counts has no choices.
    usage = sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": {"total_tokens": 7}})
    return chunk({}, reason), usage, DONE


def _call(name: str, arguments: Json | str) -> Json:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": f"call_{next(_numbers)}", "name": name, "arguments": written}


# -- Dialects of tool-call deltas ------------------------------------------------------------------------------------


def _first(call: Json, arguments: str = "", **index: int) -> Delta:
    function = {"name": call["name"], "arguments": arguments}
    return {**index, "id": call["id"], "type": "function", "function": function}


def _more(arguments: str, **index: int) -> Delta:
    return {**index, "function": {"arguments": arguments}}


def _pieces(call: Json) -> Iterator[str]:
    written = call["arguments"]
    for start in range(0, len(written), 5):
        yield written[start : start + 5]


def _in_sequence(wanted: list[Json], first: int = 0) -> Iterator[list[Delta]]:
    for index, call in enumerate(wanted, first):
        yield [_first(call, index=index)]
        yield from ([_more(piece, index=index)] for piece in _pieces(call))


def _whole(wanted: list[Json]) -> Iterator[list[Delta]]:
    yield [_first(call, call["arguments"], index=index) for index, call in enumerate(wanted)]


def _interleaved(wanted: list[Json]) -> Iterator[list[Delta]]:
    yield from ([_first(call, index=index)] for index, call in enumerate(wanted))
    for pieces in itertools.zip_longest(*map(_pieces, wanted)):
        yield from ([_more(piece, index=index)] for index, piece in enumerate(pieces) if piece is not None)


def _repeated(wanted: list[Json]) -> Iterator[list[Delta]]:
    for index, call in enumerate(wanted):
        yield from ([_first(call, piece, index=index)] for piece in _pieces(call))


def _without_index(wanted: list[Json]) -> Iterator[list[Delta]]:
    for call in wanted:
        yield [_first(call)]
        yield from ([_more(piece)] for piece in _pieces(call))


def _all_zero(wanted: list[Json]) -> Iterator[list[Delta]]:
    for call in wanted:
        yield [_first(call, index=0)]
        yield from ([_more(piece, index=0)] for piece in _pieces(call))


DIALECTS: Final[dict[str, Callable[[list[Json]], Iterator[list[Delta]]]]] = {
    "in sequence": _in_sequence,
    "whole": _whole,
    "interleaved": _interleaved,
    "id and name repeated": _repeated,
    "no index": _without_index,
    "index 0 for all": _all_zero,
    "indexes from 1": lambda wanted: _in_sequence(wanted, first=1),
}


# -- The server ------------------------------------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.model.asked.append((self.path, dict(self.headers)))
        self._answer(self.server.model.next_reply(self.path, self.headers.get("authorization", ""), body))

    def do_GET(self) -> None:
        """The list of models."""
        told = json.dumps(self.server.model.listed).encode()
        self._answer(Reply((told,), headers={"Content-Type": "application/json"}))

    def _answer(self, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(reply.status)
        for name, value in (reply.headers | {"Connection": "close", "Transfer-Encoding": "chunked"}).items():
            self.send_header(name, value)
        self.end_headers()
        for part in reply.parts:
            if isinstance(part, Gate):
                part.hold()
            elif isinstance(part, Cut):
                return
            elif part:
                self._send(part)
        self._send(b"")

    def _send(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    model: "ScriptedModel"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error here: stopping a run does just that."""


# Who may speak after whom, as the strictest servers have it.
AFTER: Final = {
    "": {"system", "user"},
    "system": {"user"},
    "user": {"assistant"},
    "assistant": {"user", "tool"},
    "tool": {"tool", "assistant"},
}


def wrong(messages: list[Json]) -> str:
    """What the strictest server says, in short, of a history that cannot be; empty if it can."""
    return _wrong_turns(messages) or _wrong_calls(messages)


def _wrong_turns(messages: list[Json]) -> str:
    before = ""
    for message in messages:
        if message["role"] not in AFTER[before]:
            return f"{message['role']} cannot speak after {before or 'nobody'}"
        before = message["role"]
        if why := _wrong_parts(message):
            return why
        if not text_in(message).strip() and not (message["content"] is None and message.get("tool_calls")):
            return f"the message of {before} is empty"
    return ""


def text_in(message: Json) -> str:
    """The text of a message, whose content may be parts."""
    content = message["content"] or ""
    return content if isinstance(content, str) else "\n\n".join(part.get("text", "") for part in content)


def _wrong_parts(message: Json) -> str:
    """A list only where it has to be one, of parts that are text or image data."""
    if not isinstance(content := message["content"], list):
        return ""
    images = [part for part in content if part["type"] == "image_url"]
    if message["role"] != "user" or not images or any(part["type"] not in ("text", "image_url") for part in content):
        return "only what has images is a list of parts"
    urls = [part["image_url"]["url"] for part in images]
    return "" if all(url.startswith("data:image/") for url in urls) else "an image is no data"


def _wrong_calls(messages: list[Json]) -> str:
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return f"the tool message {message['tool_call_id']} answers no call"
            open_ids.remove(message["tool_call_id"])
        elif open_ids:
            return f"tool_call_ids without a tool message right behind the call: {open_ids}"
        for call in message.get("tool_calls", []):
            open_ids.append(call["id"])
            if not re.fullmatch("[A-Za-z0-9_-]{1,64}", call["function"]["name"]):
                return f"the name {call['function']['name']!r} cannot be"
            if not isinstance(json.loads(call["function"]["arguments"]), dict):
                return f"the arguments of {call['id']} are no object"
    return f"tool_call_ids without a tool message: {open_ids}" if open_ids else ""


class ScriptedModel:
    """The server with its script and what it was asked. `close` checks that both came out even."""

    PLACE: str | tuple[str, ...] = "/chat/completions"

    def __init__(self) -> None:
        self.requests: list[Json] = []
        self.keys: list[str] = []
        # Where with which headers.
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.listed: Any = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
        # Answers whatever the script has no reply for; without it that is an error.
        self.otherwise: Callable[[Json], Reply] | None = None
        self._script: deque[Reply] = deque()
        self._gates: list[Gate] = []
        self._unexpected: list[Json] = []
        self._invalid: list[str] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of a server that asks this model, without what few scripts expect."""
        off = {"CHAT_TITLES": "0", "HITL_ASK_USER": "0"}
        return {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL} | off

    @property
    def messages(self) -> list[Json]:
        """What the model was last sent, without the system message."""
        history: list[Json] = self.requests[-1]["messages"]
        return history[1:]

    @property
    def told(self) -> list[str]:
        """The tool messages of the last request, in order."""
        return [message["content"] for message in self.messages if message["role"] == "tool"]

    def wrong(self, body: Json) -> str:
        return wrong(body["messages"])

    def enqueue(self, *replies: Reply) -> None:
        with self._lock:
            self._script.extend(replies)
            self._gates += [part for reply in replies for part in reply.parts if isinstance(part, Gate)]

    def next_reply(self, path: str, key: str, body: Json) -> Reply:
        with self._lock:
            self.requests.append(body)
            self.keys.append(key)
            if why := self.wrong(body):
                self._invalid.append(why)
                return status(400, {"message": why})
            if path.partition("?")[0].endswith(self.PLACE) and self._script:
                return self._script.popleft()
        if self.otherwise is not None:
            return self.otherwise(body)
        self._unexpected.append(body)
        return status(418, {"message": "The script of this test has no further reply."})

    def close(self) -> None:
        for gate in self._gates:
            gate.open()
        self._server.shutdown()
        self._thread.join(40)
        self._server.server_close()
        assert self._invalid == []
        assert self._unexpected == [], f"asked without a reply in the script: {self._unexpected[-1]}"
        assert not self._script, f"{len(self._script)} replies of the script were never asked for"


@pytest.fixture
def scripted_model(settings: Settings) -> Iterator[ScriptedModel]:
    """The scripted model, configured as this process's model server; `environment` does it for another process."""
    model = ScriptedModel()
    for name, value in model.environment.items():
        setattr(settings, name, value if name.startswith("OPENAI_") else False)
    yield model
    model.close()
