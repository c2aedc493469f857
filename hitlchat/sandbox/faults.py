"""From what the interpreter raises to one clear sentence with the author's line."""

import logging
import signal
from collections.abc import Collection

from pydantic_monty import Frame, MontyCrashedError, MontyError, MontyRuntimeError, MontySyntaxError

from hitlchat.sandbox.advice import advised
from hitlchat.sandbox.grants import MODULE, is_known, missing_name, not_granted, undefined_name
from hitlchat.sandbox.limits import Limits, in_words
from hitlchat.sandbox.report import Fault

logger = logging.getLogger(__name__)

# what the interpreter calls the first text fed into a session, which is the author's source
SOURCE = "<python-input-0>"
MESSAGE_CHARS = 2000
# What an interpreter with gaps raises where Python would not; a ValueError is the author's own.
ADVISABLE = (ImportError, AttributeError, NameError, TypeError)
INTERNAL = "Internal error in monty: "
_UNSUPPORTED = "The monty syntax parser does not yet support "


def fault_from(error: MontyError, limits: Limits, known: Collection[str], refusals: Collection[str]) -> Fault:
    """The fault for `error`; `refusals` are the denials that the driver has given in this run."""
    if isinstance(error, MontyCrashedError):
        return _crash(error, limits)
    if isinstance(error, MontySyntaxError):
        return Fault("syntax", cut(error.display("msg")), _line(_author(error.traceback())))
    if isinstance(error, MontyRuntimeError):
        return _runtime(error, limits, known, refusals)
    logger.error("the sandbox failed in an unknown way: %s: %s", type(error).__name__, error)
    return Fault("crash", "the sandbox failed; nothing more is known")


def cut(text: str) -> str:
    """`text` on a length that a page can show."""
    return text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]}… ({len(text) - MESSAGE_CHARS} more)"


def _crash(error: MontyCrashedError, limits: Limits) -> Fault:
    if error.timed_out:
        return Fault("limit", over_cpu(limits))
    if error.exit_status == -signal.SIGABRT:  # how it ends where the kernel gives it no more
        return Fault("limit", over_memory(limits))
    logger.warning("a sandbox worker ended in the middle of a run: %s", error)
    return Fault("crash", "the process that ran the tool ended unexpectedly; the tool may have done part of its work")


def _runtime(error: MontyRuntimeError, limits: Limits, known: Collection[str], refusals: Collection[str]) -> Fault:
    frame = _author(error.traceback())
    line, function = _line(frame), _function(frame)
    inner, message = error.exception(), error.display("msg")
    if limit := _limit(inner, message, limits):
        return Fault("limit", limit, line, function)
    if isinstance(inner, NotImplementedError) and function is None and (unsupported := _unsupported(message)):
        return Fault("syntax", advised(unsupported), line)
    if isinstance(inner, PermissionError) and message in refusals:
        return Fault("denied", cut(message), line, function)
    if isinstance(inner, ImportError | AttributeError) and (name := missing_name(message)) and is_known(name, known):
        return Fault("denied", not_granted(name), line, function)
    said = message.removeprefix(INTERNAL) if message.startswith(INTERNAL) else error.display("type-msg")
    text = advised(cut(said)) if isinstance(inner, ADVISABLE) else cut(said)
    hint = _import_hint(message, known) if isinstance(inner, NameError) else ""
    return Fault("error", text + hint, line, function)


def _limit(inner: BaseException, message: str, limits: Limits) -> str | None:
    if isinstance(inner, TimeoutError) and "time limit exceeded" in message:
        return over_cpu(limits)
    if isinstance(inner, MemoryError):
        return over_memory(limits)
    if isinstance(inner, RecursionError):
        return f"recursion: the tool nests more than {limits.recursion} calls or values"
    if isinstance(inner, RuntimeError) and message.startswith("suspension limit"):
        asked = "calls of functions, imports and look-ups of undefined names"
        return f"calls: the tool makes more than {limits.suspensions} {asked}"
    return None


def over_cpu(limits: Limits) -> str:
    return f"processor time: the tool computes for more than {limits.cpu_seconds:g} s{limits.named('cpu_seconds')}"


def over_memory(limits: Limits) -> str:
    return f"memory: the tool needs more than {in_words(limits.memory_bytes)}{limits.named('memory_bytes')}"


def over_calls(limits: Limits) -> str:
    return f"host calls: the tool makes more than {limits.host_calls}{limits.named('host_calls')}"


def _unsupported(message: str) -> str | None:
    if message.startswith(_UNSUPPORTED):
        return f"tools cannot use {message.removeprefix(_UNSUPPORTED)}"
    if message.endswith(" are not supported"):
        return f"{message} in tools"
    return None


def _import_hint(message: str, known: Collection[str]) -> str:
    name = undefined_name(message)
    return f" (write: from {MODULE} import {name})" if name and is_known(name, known) else ""


def column_of(error: MontyError) -> int | None:
    """The column in the author's source, for a marker."""
    if not isinstance(error, MontySyntaxError | MontyRuntimeError):
        return None
    frame = _author(error.traceback())
    return frame.column if frame else None


def _author(frames: list[Frame]) -> Frame | None:
    """The innermost frame in the author's own source."""
    return next((frame for frame in reversed(frames) if frame.filename == SOURCE), None)


def _line(frame: Frame | None) -> int | None:
    return frame.line if frame else None


def _function(frame: Frame | None) -> str | None:
    name = frame.function_name if frame else None
    return None if name == "<module>" else name
