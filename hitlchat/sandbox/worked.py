"""What the host computes for a tool, added up. Used in a keeper."""

import time
from types import TracebackType

from hitlchat.sandbox.limits import Limits
from hitlchat.sandbox.report import Fault, Stopped


class Worked:
    """A stopwatch: `with worked:` around each piece of work. Stopped: all pieces together are over the limit."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._seconds += time.process_time() - self._began
        if self._seconds > self._limits.cpu_seconds and not isinstance(error, Stopped):
            longest = f"{self._limits.cpu_seconds:g} s{self._limits.named('cpu_seconds')}"
            message = f"processor time: the functions that the tool calls compute for more than {longest}"
            raise Stopped(Fault("limit", message))
