"""One call of a function, from JSON to JSON, in a thread of its own where it blocks."""

import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

from asgiref.sync import sync_to_async
from django.db import connections
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hitlchat.base import canonical
from hitlchat.gate.schema import BadArguments
from hitlchat.gate.sources import ToolResult
from hitlchat.project_tools import Function, ToolError
from hitlchat.project_tools.signature import Signature

P = ParamSpec("P")
T = TypeVar("T")

MOST_AT_ONCE = 64
LARGEST_RESULT = 2**20
LONGEST_MESSAGE = 2000
logger = logging.getLogger(__name__)


class Busy(RuntimeError):
    """Too many functions are running already; this one was not started."""


class OwnThreads(Executor):
    """A function that hangs keeps its thread for ever: with a fixed number of them, a few of those would stop all."""

    def __init__(self, most: int = MOST_AT_ONCE) -> None:
        self._free = threading.BoundedSemaphore(most)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Busy when all are taken."""
        if not self._free.acquire(blocking=False):
            raise Busy("too many functions of this project are running already")
        future: Future[T] = Future()

        def run() -> None:
            try:
                try:
                    value = function(*args, **kwargs)
                finally:
                    # The thread ends here, and nobody else could close what it opened.
                    connections.close_all()
                    self._free.release()
            except BaseException as error:
                future.set_exception(error)
                raise
            future.set_result(value)

        future.set_running_or_notify_cancel()
        threading.Thread(target=run, daemon=True, name="project-tool").start()
        return future


own_threads = OwnThreads()


@dataclass(frozen=True)
class Job:
    """`arguments` are JSON values, made into what `signature` says; `extra` is passed as is; `label` is for the log."""

    function: Function
    signature: Signature
    arguments: Mapping[str, Any]
    extra: Mapping[str, Any]
    label: str

    def call(self) -> Any:
        """The result, or for an async function what to await for it. BadArguments, and whatever the function raises."""
        return self.function(**self.signature.coerce(self.arguments), **self.extra)


async def run(job: Job) -> ToolResult:
    """Run the function of `job`: on this loop if it is async, else in a thread. Raises nothing but cancellation."""
    if not inspect.iscoroutinefunction(job.function):
        # `sync_to_async` asks for more than it uses, which is to submit to it.
        threads = cast("ThreadPoolExecutor", own_threads)
        try:
            # Not sensitive to the thread: a function that takes long must not hold up the server's own database work.
            return await sync_to_async(_run_sync, thread_sensitive=False, executor=threads)(job)
        except Busy as error:
            return ToolResult.failure("busy", f"It was not run: {error}. Try again later.")
    try:
        return _written(await job.call())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - logged there
        return _failed(error, job)


def _run_sync(job: Job) -> ToolResult:
    try:
        return _written(job.call())
    except (Exception, SystemExit) as error:  # noqa: BLE001 - logged there
        return _failed(error, job)


def _written(value: Any) -> ToolResult:
    try:
        written = to_jsonable_python(value)
        size = len(canonical.dumps(written))
    except (PydanticSerializationError, canonical.NotJson) as error:
        message = f"It was run, but JSON cannot carry the {type(value).__name__} it returned: {error}"
        return ToolResult.failure("result", message[:LONGEST_MESSAGE])
    if size > LARGEST_RESULT:
        message = f"It was run, but its result has {size:,} bytes; at most {LARGEST_RESULT:,} are kept."
        return ToolResult.failure("result", message)
    return ToolResult(value=written)


def _failed(error: BaseException, job: Job) -> ToolResult:
    if isinstance(error, BadArguments):
        message = f"It was not run: the arguments do not fit. {error}"
        return ToolResult.failure("arguments", message[:LONGEST_MESSAGE])
    # Subclasses of ValueError are not meant: those of parsers and validators quote what they could not read.
    if isinstance(error, ToolError) or type(error) is ValueError:
        return ToolResult.failure("error", (str(error) or "It failed, and gave no reason.")[:LONGEST_MESSAGE])
    logger.error("A function of this project failed: %s", job.label, exc_info=error)
    return ToolResult.failure("internal", f"It failed inside the function; the server's log says how ({job.label}).")
