"""A model server sends too much or never stops: a real server reads little of it, and serves everyone meanwhile."""

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.mcp_server.floods import MIB, memory, peak
from tests.processes import STEADY, Person, Server, Servers
from tests.waiting import until

pytestmark = [pytest.mark.embedded, pytest.mark.slow("bounds memory and the processor's time")]

FLOOD: Final = 100 * MIB
# What an answer may cost at most, once the first one was read.
MOST_MIB: Final = 40
# What a flood may cost the server, in seconds of processor time: the requests of those who look meanwhile take one.
MOST_SECONDS: Final = 5
STREAM: Final = {"Content-Type": "text/event-stream"}


@cache
def _packed() -> bytes:
    return gzip.compress(b"data: " + bytes(FLOOD), 1)


def _poured(before: bytes, piece: bytes) -> Iterator[bytes]:
    yield before
    for _ in range(FLOOD // len(piece)):
        yield piece


def _dripped() -> Iterator[bytes]:
    while True:
        yield b": still there\n\n"
        time.sleep(0.05)


Kind = tuple[int, dict[str, str], Callable[[], Iterator[bytes]], str]

KINDS: Final[dict[str, Kind]] = {
    "one line": (200, STREAM, lambda: _poured(b"data: ", b"x" * MIB), "One event of the model server"),
    "one event of many lines": (
        200,
        STREAM,
        lambda: _poured(b"", b"data: x\n" * 2**17),
        "One event of the model server",
    ),
    "no event stream": (200, {}, lambda: _poured(b"{", b" " * MIB), "One event of the model server"),
    "an error": (400, {}, lambda: _poured(b"", b"x" * MIB), "refused the request (400)"),
    "a gzip bomb": (200, STREAM | {"Content-Encoding": "gzip"}, lambda: iter([_packed()]), "compresses its answers"),
    "an error as a gzip bomb": (500, {"Content-Encoding": "gzip"}, lambda: iter([_packed()]), "compresses its answers"),
    "a drip": (200, STREAM, _dripped, "did not finish its answer within 5 seconds"),
}


class _Hostile(BaseHTTPRequestHandler):
    """Answers with what the last message names."""

    def do_POST(self) -> None:
        assert self.headers["accept-encoding"] == "identity"
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, headers, body, _ = KINDS[asked["messages"][-1]["content"]]
        with suppress(OSError):
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in body():
                self.wfile.write(piece)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hostile() -> Iterator[str]:
    """Where it is."""
    _packed()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join(10)
    server.server_close()


@contextmanager
def served_meanwhile(server: Server) -> Iterator[None]:
    """Somebody else sends one request after the other, and each is answered."""
    served = threading.Event()
    over = threading.Event()

    def ask() -> None:
        with httpx2.Client(trust_env=False, verify=False, timeout=60) as web:
            while not over.is_set():
                assert web.get(f"{server.url}/healthz").status_code == 200
                served.set()
                over.wait(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert served.wait(60)
        yield
        served.clear()
        assert served.wait(60), "nobody else is served"
    finally:
        over.set()
        thread.join(60)


def worked(pid: int) -> float:
    """The processor time that a process has taken, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def told(bob: Person, message: str) -> str:
    """The notice that follows this message in a conversation of its own."""
    conversation = bob.begin(message)

    def look() -> str:
        said = bob.conversation(conversation)["messages"]
        return next((each["content"] for each in said if each["role"] == "notice"), "")

    return until(look, f"the run about {message!r} ends", seconds=90)


def costs_little(server: Server, kinds: Iterable[str]) -> None:
    """One answer of each kind is refused as expected, at little cost, while others are served."""
    assert server._process is not None
    bob = server.sign_in("bob")
    told(bob, "no event stream")
    before = peak(server._process.pid)
    for kind in kinds:
        began = worked(server._process.pid)
        with served_meanwhile(server):
            assert KINDS[kind][3] in told(bob, kind), kind
        after, seconds = peak(server._process.pid), worked(server._process.pid) - began
        sys.stderr.write(f"{kind}: {before:.0f} MiB before, {after:.0f} MiB at most, {seconds:.2f} s of work\n")
        assert after - before < MOST_MIB, kind
        assert seconds < MOST_SECONDS, kind
    bob.close()
    assert memory(server) - before < MOST_MIB
    assert "Traceback" not in server.log


@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_floods_of_100_mb_cost_a_real_server_little_memory_and_nobody_else_time(servers: Servers, hostile: str) -> None:
    # An answer of status 500 is asked for three times with pauses: only the answer without an end may meet the limit.
    at = {**STEADY, "OPENAI_BASE_URL": hostile, "OPENAI_API_KEY": "any", "OPENAI_MODEL": "any"}
    costs_little(servers.start(**at), [kind for kind in KINDS if kind != "a drip"])
    costs_little(servers.start(**at, MODEL_ANSWER_SECONDS="5"), ["a drip"])
