"""Starts programs as forks of a process that has imported hitlchat and what other people wrote, once for all passes.

A fork is a real process: it has a session, sockets and database connections of its own, and dies of `SIGKILL` like any
other. It reads the settings from its own environment; where that has other apps, or settings that do not load, it
becomes a fresh interpreter. tests/forks.py is the client, tests/launcher.py that of programs which hitlchat
starts.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
import types
from contextlib import suppress
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connections
from django.test.signals import setting_changed
from django.utils.functional import empty

SETTINGS: Final = "hitlchat.settings"
# Imported before the first fork. None of these starts a thread or opens anything as it is imported.
IMPORTED: Final = (
    "autobahn.twisted.websocket",
    "channels.auth",
    "channels.generic.websocket",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    "cryptography.hazmat.primitives.serialization",
    "django.contrib.auth.hashers",
    "django.core.handlers.asgi",
    "django.core.management",
    "django.core.management.commands.migrate",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms",
    "django.template.defaulttags",
    "httpx2",
    "jsonschema",
    "markdown_it",
    "mcp.client.session",
    "mcp.server.lowlevel",
    "mcp.server.mcpserver",
    "mcp.server.transport_security",
    "mcp.types",
    "openai",
    "psycopg",
    "pydantic",
    "pygments.lexers",
    "redis.asyncio",
    "rich.console",
    "twisted.web.http",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)
# They and what they import read settings only as these are used, but for asgi.py: its middleware keeps some.
OURS: Final = ("hitlchat.urls", "hitlchat.asgi")
LARGEST_REQUEST: Final = 2**20
DESCRIPTORS: Final = 3  # standard input, output and error of the program


class QuickHasher(PBKDF2PasswordHasher):
    """Hashes passwords in no time instead of 0.4 s. A fresh interpreter reads such a hash, and renews it."""

    iterations = 1


def serve(alive: socket.socket, programs: socket.socket) -> None:
    """Fork for each request until the process that started this one is gone.

    alive: ends with that process. programs: where those connect that want a fork. Each sends its request with the
    descriptors that the program is to have, and is told of it on that connection.
    """
    signal.signal(signal.SIGCHLD, _collect)
    while True:
        ready = select.select([alive, programs], [], [])[0]
        if alive in ready:
            return
        connection = programs.accept()[0]
        said, streams, _, _ = socket.recv_fds(connection, LARGEST_REQUEST, DESCRIPTORS)
        told = connection.detach()
        if said and os.fork() == 0:
            alive.close()
            programs.close()
            _keep(json.loads(said), streams, told)
        for descriptor in (*streams, told):
            os.close(descriptor)


def _collect(_number: int, _frame: object) -> None:
    """Take note of keepers that have ended, so that their processor time counts as this process's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _keep(request: dict[str, Any], streams: list[int], told: int) -> None:
    """Fork once more, and tell the program's id, then how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(told)
        _become(request, streams)
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError):
        os.write(told, f"{pid}\n".encode())
        _until_ended(pid, told)
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(told, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _until_ended(pid: int, told: int) -> None:
    """Wait for the end of the program; kill it once nobody is there any more to be told of it."""
    ended, poll = os.pidfd_open(pid), select.poll()
    poll.register(ended, select.POLLIN)
    # That the other side has gone is told without being asked for.
    poll.register(told, 0)
    if ended not in dict(poll.poll()):
        os.kill(pid, signal.SIGKILL)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Be the program: run the script as if Python had been started with it."""
    os.setsid()
    # As in a program that is started: what began all this may have been told to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    os.umask(request["umask"])
    sys.argv[:] = request["arguments"]
    # Found out once by whoever asks first; and an interpreter reads the path as it starts.
    tempfile.tempdir = None
    sys.path[1:1] = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    if request["settings"] and not _settled():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ)
    code = _ran(sys.argv[0])
    # What the end of an interpreter does, which os._exit leaves out.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for written in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            written.flush()
    os._exit(code)


def _ran(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001  # an interpreter, too, prints whatever reaches it
        traceback.print_exc()
    else:
        return 0
    return 1


def _settled() -> bool:
    """Read the settings anew and tell of each that differs, as Django's own tests do; False if that is not enough."""
    before = settings._wrapped
    del sys.modules[SETTINGS]
    module = os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    settings._wrapped = empty
    try:
        now = settings.INSTALLED_APPS
    except Exception:  # noqa: BLE001  # whatever it is, the program meets it again in a fresh interpreter
        return False
    if module != SETTINGS or now != before.INSTALLED_APPS:
        return False
    # Defaults that other people's apps added as they were imported.
    for name in vars(before).keys() - before._explicit_settings - vars(settings._wrapped).keys():
        setattr(settings, name, getattr(before, name))
    settings.PASSWORD_HASHERS = ["tests.fork_server.QuickHasher"]
    vars(connections).clear()
    vars(connections).update(vars(type(connections)()))
    for name in dir(settings):
        value = getattr(settings, name)
        if name.isupper() and name != "DATABASES" and getattr(before, name, None) != value:
            setting_changed.send(sender=type(settings._wrapped), setting=name, value=value, enter=True)
    return True


def _import_ours() -> None:
    """Import what is ours, on the settings of an installation that is not there."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HITLCHAT_DATA": folder, "DJANGO_SETTINGS_MODULE": SETTINGS}
        # Its reactor has a loop with descriptors that forks must not share: each that serves imports the true one.
        sys.modules["daphne.server"] = types.ModuleType("daphne.server")
        importlib.import_module("django").setup()
        for name in OURS:
            importlib.import_module(name)
        for name in ("hitlchat.asgi", "daphne.server"):
            del sys.modules[name]


def main() -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    _import_ours()
    assert threading.active_count() == 1, "a fork has only the thread that forked"
    assert "twisted.internet.reactor" not in sys.modules
    gc.freeze()
    serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))


if __name__ == "__main__":
    main()
