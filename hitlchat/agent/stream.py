"""Server-sent events as model servers really send them: what carries nothing is passed over, and no failure is."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, suppress
from typing import Any, Final

import httpx2

# The last event: the server says that there are no more.
DONE: Final = object()
_SAYS_DONE: Final = "[DONE]"
_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK: Final = "\ufeff"
# How long the end of a connection is waited for.
DRAIN_SECONDS: Final = 0.1
# So many pieces are read ahead of whoever takes them.
MOST_PIECES: Final = 64


class Failure(Exception):
    """The server tells of a failure in the midst of its answer, or at its end, in `body`."""

    def __init__(self, body: Any, message: str = "The server reported a failure.") -> None:
        super().__init__(message)
        self.body = body


async def events(response: httpx2.Response, until: float) -> AsyncGenerator[Any, None]:
    """Yield what the events hold, and DONE at the end if the server says that.

    Raises: Failure; TimeoutError, if they have not ended by `until` of the loop's clock, however often something comes;
    httpx2.RequestError, if the connection fails; what Python raises of text or JSON that is none.
    """
    async with aclosing(_in_time(response.aiter_bytes(), until)) as read, aclosing(_blocks(read)) as blocks:
        async for name, data, is_closed in blocks:
            for value in _values(data, is_closed=is_closed):
                if value is DONE:
                    yield DONE
                    # The end of the connection, so that it can be used again.
                    with suppress(TimeoutError, httpx2.RequestError):
                        async with asyncio.timeout(DRAIN_SECONDS):
                            async for _ in read:
                                pass
                    return
                if (body := _failure(name, value)) is not None:
                    raise Failure(body)
                if isinstance(value, dict | list):
                    yield value


async def _in_time(read: AsyncIterator[bytes], until: float) -> AsyncGenerator[bytes, None]:
    """Yield all that has come since the last time, in one piece."""
    came, has_come, is_taken = list[bytes](), asyncio.Event(), asyncio.Event()

    async def fetch() -> None:
        # A task of its own: what is done with a piece takes its own time.
        try:
            async with asyncio.timeout_at(until):
                async for piece in read:
                    came.append(piece)
                    has_come.set()
                    if len(came) >= MOST_PIECES:
                        is_taken.clear()
                        await is_taken.wait()
        finally:
            has_come.set()

    fetching = asyncio.create_task(fetch())
    try:
        while came or not fetching.done():
            await has_come.wait()
            has_come.clear()
            pieces, came[:] = b"".join(came), ()
            is_taken.set()
            if pieces:
                yield pieces
        fetching.result()
    finally:
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)


async def _blocks(read: AsyncIterator[bytes]) -> AsyncGenerator[tuple[str, list[str], bool], None]:
    """Yield the name and the lines of data of each event, and whether its end came: some servers leave it out."""
    name, data = "", list[str]()
    async with aclosing(_lines(read)) as lines:
        async for line in lines:
            if not line:
                if data or name:
                    yield name, data, True
                name, data = "", []
                continue
            field, _, value = line.partition(":")
            if field == "data":
                data.append(value)
            elif field == "event":
                name = value.strip()
    if data:
        yield name, data, False


async def _lines(read: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    parts, ends_with_cr, is_first = list[bytes](), False, True
    async for piece in read:
        here = piece[1:] if ends_with_cr and piece.startswith(b"\n") else piece
        ends_with_cr = piece.endswith(b"\r")
        begun, *others = _LINE_ENDS.split(here)
        parts.append(begun)
        for each in others:
            line = b"".join(parts).decode()
            yield line.removeprefix(_BYTE_ORDER_MARK) if is_first else line
            parts, is_first = [each], False
    if last := b"".join(parts):
        yield last.decode()


def _values(data: list[str], *, is_closed: bool) -> Iterator[Any]:
    """Yield what the data of one event is, as JSON; of a server that leaves no line between events there is more."""
    text = "\n".join(data).strip()
    if text.lstrip('"').startswith(_SAYS_DONE):
        yield DONE
        return
    if not text.startswith(("{", "[")):
        # Nothing, or a word that only keeps the connection open, or in which the server tells of a failure.
        yield text
        return
    try:
        found = json.loads(text)
    except ValueError:
        if len(data) > 1:
            for each in data:
                yield from _values([each], is_closed=is_closed)
            return
        if is_closed:
            raise
        # The connection ended within it: so the answer is not complete.
        return
    is_several = isinstance(found, list) and all(isinstance(each, dict) for each in found)
    yield from found if is_several else [found]


def _failure(name: str, value: Any) -> Any:
    """Return what the server says of a failure; None if this is none."""
    if isinstance(value, dict):
        if error := value.get("error"):
            return value if isinstance(error, bool) else error
        if "choices" not in value and (value.get("object") == "error" or "detail" in value):
            return value
    return value if value and name == "error" else None
