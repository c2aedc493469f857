"""Faults: from what the interpreter raises to one clear sentence with the author's line, and what to write instead."""

import logging
import re
import signal
from collections.abc import Collection

from pydantic_monty import Frame, MontyCrashedError, MontyError, MontyRuntimeError, MontySyntaxError

from hitlchat.sandbox import helpers
from hitlchat.sandbox.importable import MODULE, is_offered, missing_name, not_granted, undefined_name
from hitlchat.sandbox.limits import Limits, in_words
from hitlchat.sandbox.wire import Fault, Problem

USE_FETCH = f"use the capability 'fetch': from {MODULE} import fetch"
USE_FILES = f"use the capability 'files': from {MODULE} import files"
INSTEAD = {
    "abc": "classes cannot inherit here",
    "aiohttp": USE_FETCH,
    "contextlib": "use try and finally, or a class with __enter__ and __exit__",
    "enum": "use Literal for an argument, and plain constants inside",
    "fractions": "use decimal",
    "glob": USE_FILES,
    "httpx": USE_FETCH,
    "io": "csv.reader and csv.DictReader take text.splitlines()",
    "logging": "use print: what a tool prints is kept with its result",
    "numpy": "use math and statistics",
    "operator": "use a lambda, such as lambda row: row['name']",
    "pandas": "use csv and statistics",
    "pickle": "use json",
    "pytz": "use: import zones",
    "requests": USE_FETCH,
    "shutil": USE_FILES,
    "smtplib": f"use the capability 'email': from {MODULE} import send_email",
    "socket": USE_FETCH,
    "sqlite3": f"use the capability 'store': from {MODULE} import store",
    "tempfile": USE_FILES,
    "urllib.request": USE_FETCH,
    "urllib3": USE_FETCH,
    "zoneinfo": "use: import zones",
}
_NO_MODULE = re.compile(r"No module named '([\w.]+)'|Cannot resolve imported module `([\w.]+)`")
HINTS = (
    (r"cannot use yield expressions", "collect into a list and return it"),
    (r"cannot use class inheritance", "raise ValueError with a clear message; use plain classes, dataclasses or dicts"),
    (r"cannot use method decorators", "use a plain method, or a function outside the class"),
    (r"cannot use the 'del' statement", "use .pop() of a dict or list"),
    (r"cannot use class bodies containing", "put it before the class"),
    (r"callable replacement is not yet supported", "loop over re.finditer and join the parts"),
    (r"unexpected keyword argument 'default'", "convert the values before json.dumps"),
    (r"'list' object is not an iterator", "generator expressions are lists here: write next(iter([...]), None)"),
    (r"type object '(\w+)' has no attribute", "call it on a value, in a lambda: key=lambda text: text.lower()"),
    (r"object has no attribute '__name__'", "write the name as a text"),
    (r"functools' has no attribute 'wraps'", "leave it out: functions have no name here"),
    (r"from 'dataclasses'|'dataclasses' has no", "a dataclass in the result becomes an object automatically"),
    (r"name 'ConnectionError' is not defined", "fetch raises TimeoutError and ValueError"),
    (r"name 'callable' is not defined|name 'issubclass' is not defined", "use isinstance, or compare type(x)"),
    (r"datetime' has no attribute 'UTC'|name 'UTC' from 'datetime'", "write datetime.timezone.utc"),
    (r"'OrderedDict'", "a dict keeps its order"),
    (r"\.(?:Split|Parse)Result' object has no attribute|`_(?:Split|Parsed)`", "use urls.parts(url)['host']"),
)

# Found by their look alone: a warning in vain costs less than a surprise.
SURPRISES = [
    (
        re.compile(r"^\s+(?:async\s+)?def\s+__(?:bool|len)__\b"),
        "__bool__ and __len__ of a class are ignored here, without an error: every object counts as true",
    ),
    (
        re.compile(r"(?<![\w.])round\((?:[^(),]|\([^()]*\))*,"),
        (
            "round(x, n) rounds the decimal notation, not the stored value: 2.675 gives 2.68, where Python "
            "gives 2.67; use Decimal for money"
        ),
    ),
    (
        re.compile(r"(?<![\w.])next\(\s*\([^()]*\sfor\s"),
        "next() of a generator expression fails: they are lists here. Write next(iter([...]), None)",
    ),
]
LOOKED_AT_CHARS = 500
# what the interpreter calls the first text fed into a session, which is the author's source
SOURCE = "<python-input-0>"
MESSAGE_CHARS = 2000
# What an interpreter with gaps raises where Python would not; a ValueError is the author's own.
ADVISABLE = (ImportError, AttributeError, NameError, TypeError)
INTERNAL = "Internal error in monty: "
_UNSUPPORTED = "The monty syntax parser does not yet support "
logger = logging.getLogger(__name__)


def advised(message: str) -> str:
    """`message`, with what to write instead where there is advice."""
    if offer := helpers.missing(message):
        return offer
    message = message.removesuffix(" (unknown location)")
    found = _NO_MODULE.search(message)
    name = (found[1] or found[2]) if found else ""
    instead = INSTEAD.get(name) or INSTEAD.get(name.partition(".")[0])
    hint = instead or next((hint for pattern, hint in HINTS if re.search(pattern, message)), None)
    return f"{message} ({hint})" if hint else message


def warnings(source: str) -> list[Problem]:
    """Return where code that runs may do something else than its author expects. By its text: nobody parses it here."""
    found = []
    for number, line in enumerate(source.splitlines(), 1):
        code = line[:LOOKED_AT_CHARS].split("#")[0]
        for pattern, message in SURPRISES:
            if match := pattern.search(code):
                column = match.start() + 1 + len(match[0]) - len(match[0].lstrip())
                found.append(Problem(number, column, message, "warning"))
    return found


def fault_from(error: MontyError, limits: Limits, offered: Collection[str], refusals: Collection[str]) -> Fault:
    """The fault for `error`; `refusals` are the denials that the driver has given in this run."""
    if isinstance(error, MontyCrashedError):
        if error.timed_out:
            return Fault("limit", over_cpu(limits))
        if error.exit_status == -signal.SIGABRT:  # how it ends where the kernel gives it no more
            return Fault("limit", over_memory(limits))
        logger.warning("a sandbox worker ended in the middle of a run: %s", error)
        return Fault(
            "crash", "the process that ran the tool ended unexpectedly; the tool may have done part of its work"
        )
    if isinstance(error, MontySyntaxError):
        return Fault("syntax", cut(error.display("msg")), _line(_author(error.traceback())))
    if isinstance(error, MontyRuntimeError):
        return _runtime(error, limits, offered, refusals)
    logger.error("the sandbox failed in an unknown way: %s: %s", type(error).__name__, error)
    return Fault("crash", "the sandbox failed for an unknown reason")


def cut(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]}… ({len(text) - MESSAGE_CHARS} more)"


def _runtime(error: MontyRuntimeError, limits: Limits, offered: Collection[str], refusals: Collection[str]) -> Fault:
    frame = _author(error.traceback())
    line = _line(frame)
    is_loading = frame is None or frame.function_name in (None, "<module>")
    inner, message = error.exception(), error.display("msg")
    if limit := _limit(inner, message, limits):
        return Fault("limit", limit, line)
    if isinstance(inner, NotImplementedError) and is_loading and (unsupported := _unsupported(message)):
        return Fault("syntax", advised(unsupported), line)
    if isinstance(inner, PermissionError) and message in refusals:
        return Fault("denied", cut(message), line)
    if (
        isinstance(inner, ImportError | AttributeError)
        and (name := missing_name(message))
        and is_offered(name, offered)
    ):
        return Fault("denied", not_granted(name), line)
    words = message.removeprefix(INTERNAL) if message.startswith(INTERNAL) else error.display("type-msg")
    text = advised(cut(words)) if isinstance(inner, ADVISABLE) else cut(words)
    if isinstance(inner, NameError) and (name := undefined_name(message)) and is_offered(name, offered):
        text += f" (write: from {MODULE} import {name})"
    return Fault("error", text, line)


def _limit(inner: BaseException, message: str, limits: Limits) -> str | None:
    if isinstance(inner, TimeoutError) and "time limit exceeded" in message:
        return over_cpu(limits)
    if isinstance(inner, MemoryError):
        return over_memory(limits)
    if isinstance(inner, RecursionError):
        return f"recursion: the tool nests more than {limits.recursion} calls or values"
    if isinstance(inner, RuntimeError) and message.startswith("suspension limit"):
        most = limits.suspensions
        return f"calls: the tool makes more than {most} calls of functions, imports and look-ups of undefined names"
    return None


def over_cpu(limits: Limits) -> str:
    return f"processor time: the tool computes for more than {limits.cpu_seconds:g} s{limits.named('cpu_seconds')}"


def over_memory(limits: Limits) -> str:
    most = f"{in_words(limits.memory_bytes)}{limits.named('memory_bytes')}"
    return f"memory: the tool needs more than {most}"


def over_calls(limits: Limits) -> str:
    most = f"{limits.host_calls}{limits.named('host_calls')}"
    return f"host calls: the tool makes more than {most}"


def _unsupported(message: str) -> str | None:
    if message.startswith(_UNSUPPORTED):
        return f"tools cannot use {message.removeprefix(_UNSUPPORTED)}"
    if message.endswith(" are not supported"):
        return f"{message} in tools"
    return None


def column_of(error: MontyError) -> int | None:
    """The column in the author's source, for a marker."""
    if not isinstance(error, MontySyntaxError | MontyRuntimeError):
        return None
    frame = _author(error.traceback())
    return frame.column if frame else None


def _author(frames: list[Frame]) -> Frame | None:
    return next((frame for frame in reversed(frames) if frame.filename == SOURCE), None)


def _line(frame: Frame | None) -> int | None:
    return frame.line if frame else None
