"""The processes beside this one: model server, bare websocket server, hitlchat itself. They end with their block."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from tests.processes import Installation, Server, Servers


@dataclass(frozen=True)
class Child:
    pid: int
    port: int


@contextmanager
def child(module: str, *arguments: str) -> Iterator[int]:
    """`python -m module`, which prints its port and serves until its input ends; the port."""
    with child_process(module, *arguments) as begun:
        yield begun.port


@contextmanager
def child_process(module: str, *arguments: str) -> Iterator[Child]:
    """As `child`, for who wants to watch it."""
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Child(process.pid, int(process.stdout.readline()))
    finally:
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@contextmanager
def model_server() -> Iterator[dict[str, str]]:
    """The settings by which it is reached."""
    with child("bench.model_server") as port:
        base_url = f"http://127.0.0.1:{port}/v1"
        yield {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "bench"}


@contextmanager
def serving() -> Iterator[Server]:
    """`manage.py serve` on the data of this bench, with a model server of its own."""
    with serving_with(1) as (server,):
        yield server


@contextmanager
def serving_with(processes: int) -> Iterator[list[Server]]:
    """The same in several processes."""
    home = Installation(Path(settings.DATA_DIR), settings.DATABASE_URL)
    servers = Servers(home)
    own = {"DJANGO_SETTINGS_MODULE": "bench.settings", "LEASE_SECONDS": "15", "HITL_TIMEOUT_SECONDS": "86400"}
    with model_server() as model:
        try:
            yield [servers.start(**own, **model) for _ in range(processes)]
        finally:
            servers.close()


def pid(server: Server) -> int:
    process = server._process  # noqa: SLF001 - nobody else needs it
    assert process is not None
    return process.pid
