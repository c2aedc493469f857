"""What a person types at a terminal: line by line, and not before they were asked."""

import select
import termios
import time
from collections.abc import Callable
from typing import IO

# What is typed within it was meant for something else (SR-39).
TOO_SOON_SECONDS = 0.4
LOOK_AGAIN_SECONDS = 1.0
LONGEST_LINE = 4096


class Ended(Exception):
    """There is nobody at the terminal any more: it was closed, or ended by Ctrl-D."""


class Overtaken(Exception):
    """What the person was asked about has its outcome already."""


class Terminal:
    """`stdin` of a terminal. Nothing is read ahead, so that what was typed too soon can be thrown away."""

    def __init__(self, stdin: IO[str], write: Callable[[str], None]) -> None:
        self._file = stdin.fileno()
        self._write = write
        self._read = stdin.buffer.raw.read  # type: ignore[attr-defined]

    def settle(self) -> None:
        """A moment after something appeared, and forget what was typed until then."""
        time.sleep(TOO_SOON_SECONDS)
        termios.tcflush(self._file, termios.TCIFLUSH)

    def ask(self, question: str, stands: Callable[[], bool]) -> str:
        """The line that is typed in answer. Ended; Overtaken once `stands` says so, which is asked every second."""
        self._write(question)
        while not select.select([self._file], [], [], LOOK_AGAIN_SECONDS)[0]:
            if not stands():
                raise Overtaken
        # A terminal gives one line at a time, and nothing at its end.
        typed: bytes = self._read(LONGEST_LINE) or b""
        if not typed.endswith(b"\n"):
            raise Ended
        return typed.decode(errors="replace").strip()

    def rest(self, seconds: float) -> None:
        """Wait so long; Ended if the terminal ends meanwhile. What is typed counts for nothing."""
        if select.select([self._file], [], [], seconds)[0] and not self._read(LONGEST_LINE):
            raise Ended
