"""Frames between the server and a keeper: a length, then JSON in which dates and decimals are marked as such."""

import asyncio
import json
import socket
import struct
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

LENGTH = struct.Struct(">I")
# Above what the limits let through in one frame; a longer one is a mistake of ours.
FRAME_BYTES = 64 * 1024 * 1024
PIECE = 256 * 1024


class Closed(Exception):
    """The other side is gone."""


class Channel:
    """One side of the connection. `mark` is the key of marked values: a secret, so that no fetched JSON can forge one.

    It belongs to no event loop: whoever holds it calls `begin` in the loop that then uses it.
    """

    def __init__(self, connection: socket.socket, mark: str) -> None:
        connection.settimeout(0)
        self._connection = connection
        self._mark = mark
        self._received = bytearray()
        self._writing = asyncio.Lock()
        self.whole = True

    def begin(self) -> None:
        self._writing = asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Closed: nobody reads."""
        frame = self.pack(message)
        loop = asyncio.get_running_loop()
        async with self._writing:
            self.whole = False  # until all of it is out: what is cancelled in the middle leaves half a frame
            try:
                await loop.sock_sendall(self._connection, frame)
            except OSError:
                raise Closed from None
            self.whole = True

    async def receive(self) -> dict[str, Any]:
        """The next message. Closed: there will be none."""
        loop = asyncio.get_running_loop()
        while (message := self._taken()) is None:
            try:
                piece = await loop.sock_recv(self._connection, PIECE)
            except OSError:
                raise Closed from None
            if not piece:
                raise Closed
            self._received += piece
        return message

    def close(self) -> None:
        self._connection.close()

    def pack(self, message: dict[str, Any]) -> bytes:
        body = json.dumps(message, default=self._marked, separators=(",", ":")).encode()
        if len(body) > FRAME_BYTES:
            raise ValueError(f"a frame of {len(body)} bytes is larger than {FRAME_BYTES}")
        return LENGTH.pack(len(body)) + body

    def _taken(self) -> dict[str, Any] | None:
        if len(self._received) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._received)
        end = LENGTH.size + length
        if len(self._received) < end:
            return None
        message: dict[str, Any] = json.loads(self._received[LENGTH.size : end], object_hook=self._unmarked)
        del self._received[:end]
        return message

    def _marked(self, value: object) -> dict[str, list[str]]:
        if isinstance(value, Decimal):
            return {self._mark: ["decimal", str(value)]}
        if isinstance(value, datetime):
            return {self._mark: ["datetime", value.isoformat()]}
        if isinstance(value, date):
            return {self._mark: ["date", value.isoformat()]}
        raise TypeError(f"a {type(value).__name__} cannot be sent")

    def _unmarked(self, found: dict[str, Any]) -> Any:
        if self._mark not in found:
            return found
        kind, text = found[self._mark]
        return READ[kind](text)


READ: dict[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
}
