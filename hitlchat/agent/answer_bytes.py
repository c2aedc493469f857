"""The bytes of a model server's answer: counted as they arrive, before anything unpacks, decodes or parses them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

import httpx2

# One event of the stream, however many lines it has; an answer that comes in one piece is one.
LARGEST_EVENT: Final = 2 * 2**20
# Everything: of a long answer most is what surrounds its pieces.
LARGEST_ANSWER: Final = 256 * 2**20
# Of an error only the beginning is read.
LARGEST_ERROR: Final = 64 * 2**10
# Decoding that many bytes, even of the smallest events, keeps nobody else waiting.
PIECE: Final = 16 * 2**10
_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_LONGEST_END: Final = 4


class OutOfBounds(Exception):
    """The rest of the answer is not read; the message says why, and what to do."""


async def bound(response: httpx2.Response) -> None:
    """Have the body of `response` counted. A hook of the client, called before anything of the body is read."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Counted(response.stream, _packed(response.headers), is_error=response.is_error)


def _packed(headers: httpx2.Headers) -> str:
    """How the body is packed, although it was asked for as it is; empty if it is not."""
    named = headers.get("content-encoding", "").strip().lower()
    return "" if named == "identity" else named


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, packed: str, *, is_error: bool) -> None:
        self._stream, self._packed, self._is_error = stream, packed, is_error
        self._all, self._event, self._end = 0, 0, b""
        self._is_whole: bool | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed:
            raise OutOfBounds("The model server packs its answers although it was asked not to. Switch that off there.")
        async for chunk in self._stream:
            for piece in _pieces(chunk):
                if self._is_error and self._all + len(piece) > LARGEST_ERROR:
                    return
                self._count(piece)
                yield self._as_stream(piece)
                await asyncio.sleep(0)
        if self._is_whole:
            yield _ENDS[0]

    def _as_stream(self, piece: bytes) -> bytes:
        """Some servers do not stream however they are asked: their one object becomes one event, on one line."""
        begins = b""
        if self._is_whole is None and piece.strip():
            self._is_whole = piece.lstrip().startswith(b"{") and not self._is_error
            begins = b"data: " if self._is_whole else b""
        # Within the texts of JSON there are no line breaks.
        return begins + (piece.translate(None, b"\r\n") if self._is_whole else piece)

    def _count(self, piece: bytes) -> None:
        self._all += len(piece)
        joined = self._end + piece
        ends = max(joined.rfind(end) for end in _ENDS)
        self._event = len(joined) - ends if ends >= 0 else self._event + len(piece)
        self._end = joined[-(_LONGEST_END - 1) :]
        if self._event > LARGEST_EVENT:
            raise OutOfBounds(f"One event of the model server's answer has more than {LARGEST_EVENT:,} bytes.")
        if self._all > LARGEST_ANSWER:
            raise OutOfBounds(f"The model server's answer has more than {LARGEST_ANSWER:,} bytes.")

    async def aclose(self) -> None:
        await self._stream.aclose()


def _pieces(chunk: bytes) -> Iterator[bytes]:
    for start in range(0, len(chunk), PIECE):
        yield chunk[start : start + PIECE]
