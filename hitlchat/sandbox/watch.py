"""The use of a worker during one run, as the kernel counts it. Used in a keeper.

The interpreter's own clock also runs while other processes have the processor, and its own count of memory knows no
copies that are made on the way out.
"""

import asyncio
import os
import resource
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hitlchat.sandbox.faults import over_cpu, over_memory
from hitlchat.sandbox.limits import Limits
from hitlchat.sandbox.wire import Fault

LOOK_SECONDS = 0.02
PAGE = resource.getpagesize()
CAN_WATCH = sys.platform.startswith("linux")


@dataclass
class Watch:
    """One run of the worker `pid`. `fault` says why the worker was ended, if it was."""

    pid: int
    limits: Limits
    fault: Fault | None = None

    def __post_init__(self) -> None:
        self._cpu_before = self._cpu()
        used, data = self._memory()
        # Copies of values need some more, but never so much that it is twice the limit.
        self._most = max(used + self.limits.memory_bytes, self.limits.memory_bytes * 7 // 4)
        bound = data + self._most - used
        resource.prlimit(self.pid, resource.RLIMIT_DATA, (bound, resource.RLIM_INFINITY))

    def look(self) -> None:
        """End the worker if it is over a limit."""
        if self._cpu() - self._cpu_before > self.limits.cpu_seconds:
            self.fault = Fault("limit", over_cpu(self.limits))
        elif self._memory()[0] > self._most:
            self.fault = Fault("limit", over_memory(self.limits))
        if self.fault:
            os.kill(self.pid, signal.SIGKILL)

    def _cpu(self) -> float:
        # The clock of another process, as the C library's clock_getcpuclockid makes it.
        return time.clock_gettime((~self.pid << 3) | 2)

    def _memory(self) -> tuple[int, int]:
        """Return the bytes in RAM, and those that it may write to."""
        pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()
        return int(pages[1]) * PAGE, int(pages[5]) * PAGE


@asynccontextmanager
async def watching(pid: int | None, limits: Limits) -> AsyncIterator[Watch | None]:
    """Watch the worker while the block runs; None where that cannot be done."""
    if pid is None or not CAN_WATCH:
        yield None
        return
    watch = Watch(pid, limits)
    task = asyncio.create_task(_watch(watch))
    try:
        yield watch
    finally:
        task.cancel()


async def _watch(watch: Watch) -> None:
    with suppress(OSError):  # it has ended
        while watch.fault is None:
            await asyncio.sleep(LOOK_SECONDS)
            watch.look()
