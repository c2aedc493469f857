"""Clients that send too much, read too little, or end at once; and what they cost the server."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.mcp_server.clients import MODERN
from tests.processes import Server

MIB = 2**20
PREFIX = "io.modelcontextprotocol"


def memory(server: Server) -> float:
    """What the server's process holds in memory, in MiB."""
    assert server._process is not None
    return _told(server._process.pid, "VmRSS")


def peak(process: int) -> float:
    """The most that a process has ever held, in MiB."""
    return _told(process, "VmHWM")


def _told(process: int, name: str) -> float:
    told = Path(f"/proc/{process}/status").read_text("ascii")
    (line,) = (each for each in told.splitlines() if each.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def head(server: Server, token: str, *more: str, method: str = "tools/list") -> bytes:
    lines = [
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        f"MCP-Protocol-Version: {MODERN}",
        f"Mcp-Method: {method}",
        *([f"Authorization: Bearer {token}"] if token else []),
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def message(method: str, **params: Any) -> bytes:
    meta = {f"{PREFIX}/protocolVersion": MODERN, f"{PREFIX}/clientCapabilities": {}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}).encode()


def request(server: Server, token: str, method: str, *more: str, **params: Any) -> bytes:
    body = message(method, **params)
    return head(server, token, f"Content-Length: {len(body)}", *more, method=method) + body


@contextmanager
def connection(server: Server, *, takes: int | None = None) -> Iterator[socket.socket]:
    """`takes`: how many bytes the client's side holds that it has not read."""
    with socket.socket() as opened:
        if takes is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, takes)
        opened.settimeout(30)
        opened.connect(("127.0.0.1", server.port))
        yield opened


def pour(server: Server, token: str, size: int, *, declared: bool) -> tuple[int, bytes]:
    """Send a body of that size, until the server has enough of it: how much was sent, and what it answered."""
    sent, piece = 0, b" " * 65536
    with connection(server) as opened:
        opened.sendall(head(server, token, f"Content-Length: {size}" if declared else "Transfer-Encoding: chunked"))
        try:
            while sent < size:
                opened.sendall(piece if declared else b"%x\r\n%s\r\n" % (len(piece), piece))
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        with suppress(ConnectionResetError):
            answer = opened.recv(65536)
    return sent, answer


def is_closed(opened: socket.socket) -> bool:
    """Whether the server has given the connection up, of which nothing is read."""
    try:
        return bool(opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) or opened.send(b"\r\n") == 0
    except OSError:
        return True


@contextmanager
def program(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Another Python, that goes on until it is killed."""
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as started:
        try:
            yield started
        finally:
            started.kill()
