"""A server that runs as a program of this machine: its process, and bounded lines over standard input and output."""

import asyncio
import os
import re
import signal
import time
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from hitlchat.base import scratch
from hitlchat.upstreams.client.link import Link
from hitlchat.upstreams.client.results import Unreadable, openings, whole_characters
from hitlchat.upstreams.client.spec import ServerSpec

# Variables that programs need to run. They get nothing else of our own environment.
INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
BUFFER_BYTES = 256 * 1024

# How much of both ends of a line that is too long is kept.
KEPT_ENDS = 512
CHUNK_BYTES = 64 * 1024
# A program that writes faster than this has to wait.
OUTPUT_BYTES_A_SECOND = 32 * 1024 * 1024
ERROR_BYTES_A_SECOND = 256 * 1024
# A chunk may hold thousands of lines: let others have a turn in between.
GARBAGE_AT_ONCE, GARBAGE_PAUSE_SECONDS = 50, 0.0025
MOST_GARBAGE_NOTES = 10
LONGEST_NOTE = 4096
# A message that is larger still, and discarded, ends the connection.
MOST_LET_GO_BYTES = 32 * 1024 * 1024
# Time to read what is left in the pipe after the program has ended.
LAST_WORDS_SECONDS = 0.5

_ID = rb'"id"\s*:\s*(?:(\d{1,9})|"([A-Za-z0-9_.-]{1,64})")'
_ID_FIRST = re.compile(rb'\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"\s*,")
_ID_LAST = re.compile(_ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')

Incoming = MemoryObjectSendStream[SessionMessage | Exception]


class NotStarted(Exception):
    """The program could not be started; in words for the administrator."""


@asynccontextmanager
async def stdio(link: Link) -> AsyncIterator[TransportStreams]:
    """Return the streams that the SDK speaks over. Raises: NotStarted"""
    tasks: list[asyncio.Task[None]] = []
    try:
        async with child(link.spec) as started:
            pipes = _Pipes(link, started)
            incoming, to_sdk = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            from_sdk, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
            # They run until the program has ended, since one that cannot write does not end.
            tasks += map(asyncio.create_task, (pipes.read(incoming), pipes.write(outgoing), pipes.listen()))
            async with incoming, to_sdk, from_sdk, outgoing:
                try:
                    yield to_sdk, from_sdk
                finally:
                    pipes.leaving = True
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(tasks, timeout=1.0)


class Child(SubprocessStreamProtocol):
    """A running program. `exited` is set even if another process still holds its pipes, unlike asyncio's `wait`."""

    transport: asyncio.SubprocessTransport

    def __init__(self) -> None:
        super().__init__(BUFFER_BYTES, asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


@asynccontextmanager
async def child(spec: ServerSpec) -> AsyncIterator[Child]:
    """Run the program; at the end nothing of its process group is left, within 4 seconds. Raises: NotStarted"""
    folder = scratch.make("upstream")
    try:
        with anyio.CancelScope(shield=True):
            # If this were cancelled halfway, the program would be left running.
            started = await _started(spec, folder.path)
        try:
            yield started
        finally:
            # Also when cancelled: no program may be left running.
            with anyio.CancelScope(shield=True):
                await _end(started)
    finally:
        folder.remove()


async def _started(spec: ServerSpec, folder: Path) -> Child:
    inherited = {name: value for name in INHERITED if (value := os.environ.get(name))}
    try:
        transport, started = await asyncio.get_running_loop().subprocess_exec(
            Child,
            spec.command,
            *spec.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={"HOME": str(folder), "TMPDIR": str(folder), **inherited, **spec.env},
            cwd=str(folder),
            # A group of its own, so that all of it can be ended at once.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        # The error's file name tells the two apart.
        missing = "the folder" if error.filename == str(folder) else "the program"
        raise NotStarted(f"{missing} {error.filename!r} was not found") from error
    except (OSError, ValueError) as error:
        raise NotStarted(f"{spec.command!r} could not be started: {error}") from error
    started.transport = transport
    return started


async def _end(started: Child) -> None:
    group = started.transport.get_pid()
    if started.stdin is not None:
        with suppress(OSError, RuntimeError):
            started.stdin.close()
    if not await _gone(started, 2.0):
        _signal(group, signal.SIGTERM)
        await _gone(started, 1.0)
    # Also after an orderly end: processes that it started may still run.
    _signal(group, signal.SIGKILL)
    await _gone(started, 1.0)
    with suppress(ProcessLookupError, PermissionError):
        started.transport.close()
    # One turn of the loop for the pipes to close.
    await asyncio.sleep(0)


async def _gone(started: Child, seconds: float) -> bool:
    with anyio.move_on_after(seconds):
        await started.exited.wait()
    return started.exited.is_set()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


@dataclass(frozen=True)
class TooLong:
    """A line that was too long, without its middle."""

    head: bytes
    tail: bytes

    @property
    def beginning(self) -> str:
        """Return the beginning for a note, marked as cut, so that the mask also hides half a secret at its end."""
        return f"{self.head.decode(errors='replace')}… ({len(self.tail)} more)"


class Lines:
    """Splits bytes into lines, holding at most `most` bytes. `let_go`: how many of the current line were discarded."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        self.let_go = 0

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """Return the lines that end in this chunk."""
        *ended, rest = chunk.split(b"\n")
        found = [line for part in ended if (line := self._end(part)) is not None]
        self._add(rest)
        return found

    def _end(self, part: bytes) -> bytes | TooLong | None:
        self._add(part)
        line = b"".join(self._parts)
        head, self._head, self._parts, self._size, self.let_go = self._head, None, [], 0, 0
        if head is not None:
            return TooLong(head, line[-KEPT_ENDS:])
        return line.strip() or None

    def _add(self, part: bytes) -> None:
        if not part:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._head is None and self._size <= self._most:
            return
        joined = b"".join(self._parts)
        if self._head is None:
            self._head = joined[:KEPT_ENDS]
        self._parts = [joined[-KEPT_ENDS:]]
        self.let_go += len(joined) - len(self._parts[0])
        self._size = len(self._parts[0])


class _Pipes:
    def __init__(self, link: Link, started: Child) -> None:
        self._link, self._started = link, started
        self._garbage_lines = 0
        self.leaving = False
        self._ended_at: float | None = None
        self._heard, self._last_words = asyncio.Event(), ""

    async def read(self, incoming: Incoming) -> None:
        """Read messages until the program ends; once nobody takes them, discard them."""
        lines = Lines(self._link.spec.limits.message_bytes)
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with incoming:
                while chunk := await self._chunk():
                    for line in lines.feed(chunk):
                        if (item := self._message(line)) is not None:
                            await incoming.send(item)
                        elif self._garbage_lines % GARBAGE_AT_ONCE == 0:
                            await asyncio.sleep(GARBAGE_PAUSE_SECONDS)
                    if lines.let_go > MOST_LET_GO_BYTES:
                        self._link.drop("a message of the server does not end")
                        break
                    await asyncio.sleep(len(chunk) / OUTPUT_BYTES_A_SECOND)
                await self._explain("the server closed its output")
        while await self._chunk():
            pass

    async def _explain(self, otherwise: str) -> None:
        """Drop the connection with the reason for its end, unless it is ours; `otherwise`: the program still runs."""
        if self.leaving:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._started.exited.wait(), LAST_WORDS_SECONDS)
        code = self._started.transport.get_returncode()
        if code is None:
            self._link.drop(otherwise)
            return
        with suppress(TimeoutError):
            # What it started may still hold the pipe.
            await asyncio.wait_for(self._heard.wait(), LAST_WORDS_SECONDS)
        self._link.drop(f"the program ended with code {code}", self._last_words)

    async def _chunk(self) -> bytes:
        """Return the next bytes; none once the program has ended, even if its child still holds the pipe."""
        stdout, exited = self._started.stdout, self._started.exited
        assert stdout is not None
        reading, leaving = asyncio.create_task(stdout.read(CHUNK_BYTES)), asyncio.create_task(exited.wait())
        try:
            await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if exited.is_set():
                self._ended_at = self._ended_at or time.monotonic()
                left = self._ended_at + LAST_WORDS_SECONDS - time.monotonic()
                await asyncio.wait({reading}, timeout=max(left, 0))
            return reading.result() if reading.done() else b""
        except OSError:
            return b""
        finally:
            reading.cancel()
            leaving.cancel()

    def _message(self, line: bytes | TooLong) -> SessionMessage | None:
        if isinstance(line, TooLong):
            return self._answered(line, f"is larger than {self._link.spec.limits.message_bytes:,} bytes")
        if openings(line) > self._link.spec.limits.nodes:
            return self._answered(line, f"has more than {self._link.spec.limits.nodes:,} parts")
        if line[:1] != b"{":
            # Cheaper to reject than to parse.
            self._note_garbage(line)
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(whole_characters(line), by_name=False))
        except ValidationError:
            return self._answered(line, "is not an MCP message")

    def _note_garbage(self, line: bytes | TooLong) -> None:
        self._garbage_lines += 1
        if self._garbage_lines <= MOST_GARBAGE_NOTES:
            beginning = line.beginning if isinstance(line, TooLong) else line[:LONGEST_NOTE].decode(errors="replace")
            self._link.note(f"wrote something that is not a message: {beginning}")

    def _answered(self, line: bytes | TooLong, complaint: str) -> SessionMessage | None:
        """Return an error in place of a message that cannot be read, for the request that it answers."""
        head, tail = (line.head, line.tail) if isinstance(line, TooLong) else (line, line)
        # Programs usually put the id at one of the ends of a message.
        found = _ID_FIRST.match(head) or _ID_LAST.search(tail[-KEPT_ENDS:])
        request_id = None if found is None else int(found[1]) if found[1] else str(found[2], "ascii")
        if request_id is None or not self._link.is_waiting(request_id):
            self._note_garbage(line)
            if isinstance(line, TooLong) and head.lstrip().startswith(b"{"):
                self._link.too_large(f"a message of the server {complaint}")
            return None
        if (exchange := self._link.waiting.get(request_id)) is not None:
            exchange.fail(Unreadable(f"the answer {complaint}"))
        error = ErrorData(code=INTERNAL_ERROR, message=f"the answer {complaint}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))

    async def write(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        stdin = self._started.stdin
        assert stdin is not None
        try:
            async with outgoing:
                async for item in outgoing:
                    message = item.message
                    line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                    if isinstance(message, JSONRPCRequest) and (exchange := self._link.waiting.get(message.id)):
                        exchange.sent = True
                    stdin.write(line)
                    await stdin.drain()
        except anyio.ClosedResourceError:
            pass
        except OSError:
            await self._explain("the server closed its input")

    async def listen(self) -> None:
        """Note the last lines of the program's standard error."""
        stderr = self._started.stderr
        assert stderr is not None
        lines = Lines(LONGEST_NOTE)
        while chunk := await stderr.read(CHUNK_BYTES):
            for line in lines.feed(chunk)[-50:]:
                text = line.beginning if isinstance(line, TooLong) else line.decode(errors="replace")
                self._link.note(text)
                self._last_words = text if text.strip() else self._last_words
            await asyncio.sleep(len(chunk) / ERROR_BYTES_A_SECOND)
        self._heard.set()
