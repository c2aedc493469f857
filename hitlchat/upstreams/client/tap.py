"""The tap between a transport and the SDK: nothing that the SDK would choke on gets through, and no floods."""

import asyncio
import time
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from hitlchat.upstreams.client.exchange import CURRENT
from hitlchat.upstreams.client.link import Link
from hitlchat.upstreams.client.results import Unreadable, complaint


class Pace:
    """A pace: so much a second, and `burst` at once after a pause."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, time.monotonic()

    def take(self, amount: float = 1.0) -> float:
        """Count it; for how many seconds to wait because it came too early, 0 if it did not."""
        self._refill()
        # debt is bounded, or one burst would silence a server for ever
        self._left = max(self._left - amount, -self._burst)
        return max(0.0, -self._left / self._rate)

    def allows(self) -> bool:
        """Return whether one more may come now; only what may is counted."""
        self._refill()
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def _refill(self) -> None:
        moment = time.monotonic()
        self._left = min(self._burst, self._left + (moment - self._at) * self._rate)
        self._at = moment


# Messages that nobody waits for: notices, progress, answers that come too late; and the server's own requests.
NOTICES_A_SECOND, NOTICES_AT_ONCE = 100.0, 1000.0
QUESTIONS_A_SECOND, QUESTIONS_AT_ONCE = 10.0, 100.0
# Those over it are read and dropped, which costs something as well.
LEFT_OUT_A_SECOND = 5000.0

Item = SessionMessage | Exception


class TapReader:
    def __init__(self, inner: ReadStream[Item], link: Link) -> None:
        self._inner, self._link = inner, link
        self._notices = Pace(NOTICES_A_SECOND, NOTICES_AT_ONCE)
        self._questions = Pace(QUESTIONS_A_SECOND, QUESTIONS_AT_ONCE)
        self._flood = Pace(LEFT_OUT_A_SECOND, LEFT_OUT_A_SECOND)
        self._left_out = 0

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Item:
        while True:
            try:
                item = await self._inner.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._link.drop("the server closed the connection")
                raise
            if isinstance(item, Exception):
                self._link.note(f"not understood: {item}")
            elif (passed := self._inspect(item)) is not None:
                return passed
            else:
                # Not read any faster, they cannot be sent any faster.
                await asyncio.sleep(self._flood.take())

    def _inspect(self, item: SessionMessage) -> SessionMessage | None:
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and self._link.is_waiting(message.id):
            exchange = self._link.answered(message.id)
            if isinstance(message, JSONRPCResponse) and (said := complaint(message.result, self._link.spec.limits)):
                if exchange is not None:
                    exchange.fail(Unreadable(f"the answer {said}"))
                return SessionMessage(_failed(message.id, f"the answer {said}"))
            return item
        pace = self._questions if isinstance(message, JSONRPCRequest) else self._notices
        if pace.allows() and self._is_usable(message):
            return item
        self._leave_out()
        return None

    def _is_usable(self, message: Any) -> bool:
        return not complaint(getattr(message, "params", None), self._link.spec.limits)

    def _leave_out(self) -> None:
        self._left_out += 1
        if self._left_out == 1:
            self._link.note("sends more messages than anyone asked for: some are left out")

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


class TapWriter:
    def __init__(self, inner: WriteStream[SessionMessage], link: Link) -> None:
        self._inner, self._link = inner, link

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if not isinstance(message, JSONRPCRequest):
            await self._inner.send(item)
            return
        self._link.waiting[coerce_request_id(message.id)] = CURRENT.get()
        try:
            await self._inner.send(item)
        except BaseException:
            self._link.answered(message.id)
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def tapped(streams: TransportStreams, link: Link) -> TransportStreams:
    reader, writer = streams
    return TapReader(reader, link), TapWriter(writer, link)


def _failed(request_id: RequestId | None, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=INTERNAL_ERROR, message=message))
