"""The server's side of a run: answers what the tool asks of the host, with the functions it was granted."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hitlchat.sandbox.grants import HostFunction
from hitlchat.sandbox.values import Meter, TooLarge, Unfit, check_inwards
from hitlchat.sandbox.wire import Channel, Closed

logger = logging.getLogger(__name__)

# The only types of error that reach a tool with their message; exactly these, not what derives from them.
TELLABLE = (ValueError, TypeError, KeyError, TimeoutError, PermissionError)
HOST_RESULT_BYTES = 9 * 1024 * 1024
# Up to this size a result is checked at once; what is larger must not keep the others of the loop waiting.
SMALL_BYTES = 16 * 1024
# A run may ask for any number of things at a time; this many of them are worked on and held in memory.
IN_HAND = 4

Answer = dict[str, Any]


@dataclass
class Hosting:
    """Serves one run; what it still works on ends with it."""

    channel: Channel
    grants: Mapping[str, HostFunction]
    sleep: Callable[[float], Awaitable[None]]
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(IN_HAND))

    def serve(self, call: dict[str, Any]) -> None:
        task = asyncio.ensure_future(self._serve(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, call: dict[str, Any]) -> None:
        if "sleep" in call:
            await self.sleep(call["sleep"])
            await self._send(call, {"value": None})
            return
        async with self._room:
            await self._send(call, await self._outcome(call["name"], call["args"], call["kwargs"]))

    async def _send(self, call: dict[str, Any], answer: Answer) -> None:
        try:
            await self.channel.send({"answer": call["call"], **answer})
        except Closed:
            logger.warning("the answer to %r came too late: the keeper is gone", call.get("name", "sleep"))

    async def _outcome(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Answer:
        """Return what the granted function returns or raises, as the tool may see it."""
        function = self.grants[name]
        try:
            inspect.signature(function).bind(*args, **kwargs)
        except TypeError as error:
            return _error("TypeError", f"{name}(): {error}")
        try:
            value = await function(*args, **kwargs)
            await _check(value, f"the result of {name}")
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) and task.cancelling():
                raise
            logger.warning("the host function %r was cancelled", name)
        except Unfit as unfit:
            logger.warning("the host function %r answered with what cannot cross: %s", name, unfit)
            return _error("ValueError", str(unfit))
        except Exception as error:
            if type(error) in TELLABLE:
                return _error(type(error).__name__, _words(error))
            logger.exception("the host function %r failed", name)
        else:
            return {"value": value}
        return _error("RuntimeError", "the host function failed")


async def _check(value: object, what: str) -> None:
    """Unfit: it cannot cross."""
    try:
        check_inwards(value, Meter(what, SMALL_BYTES))
    except TooLarge:
        await asyncio.to_thread(check_inwards, value, Meter(what, HOST_RESULT_BYTES))


def _words(error: Exception) -> str:
    # str() of a KeyError would put quotes around its message
    return error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)


def _error(kind: str, message: str) -> Answer:
    return {"error": [kind, message]}
