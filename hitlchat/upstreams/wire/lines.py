"""Cutting a stream of bytes into lines of bounded length."""

from dataclasses import dataclass

# Of a line that is too long, so much is kept of both ends.
KEPT_ENDS = 512


@dataclass(frozen=True)
class TooLong:
    """A line that was let go, without its middle."""

    head: bytes
    tail: bytes

    @property
    def beginning(self) -> str:
        """For a note; it ends in a way that says how it was cut, so that half a secret at its end is found."""
        return f"{self.head.decode(errors='replace')}… ({len(self.tail)} more)"


class Lines:
    """Holds `most` bytes at any time, however much is fed. `let_go`: bytes of the line that goes on, lost so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        self.let_go = 0

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """The lines that end in this chunk."""
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
        if self._head is not None or self._size > self._most:
            self._let_go()

    def _let_go(self) -> None:
        joined = b"".join(self._parts)
        if self._head is None:
            self._head = joined[:KEPT_ENDS]
        self._parts = [joined[-KEPT_ENDS:]]
        self.let_go += len(joined) - len(self._parts[0])
        self._size = len(self._parts[0])
