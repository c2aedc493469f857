"""Something outside of hitlchat that a tool acts on: it notes each request, and can hold its answer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest

from tests.scripted_model import Gate

CODE: Final = '''
from hitl import fetch


def run(what: str) -> str:
    """Order something."""
    return fetch("{url}/orders", method="POST", json=what, timeout=30)["text"]
'''


class _Handler(BaseHTTPRequestHandler):
    server: "Outside"

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        if len(order := self.rfile.read(length)) < length:
            return  # who sent it was killed before all of it was sent
        self.server.orders.append(order.decode())
        if self.server.gate:
            self.server.gate.hold()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"ordered")

    def log_message(self, *_: Any) -> None:
        pass


class Outside(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.orders: list[str] = []
        self.gate: Gate | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def tool(self) -> dict[str, Any]:
        """A tool that acts on this, as `add_tool` takes it."""
        reach = {"fetch": {"mode": "allowlist", "hosts": [self.url]}}
        return {"name": "order", "code": CODE.replace("{url}", self.url), "capabilities": reach}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A process that is killed hangs up."""


@pytest.fixture
def outside() -> Iterator[Outside]:
    with opened() as server:
        yield server


@contextmanager
def opened() -> Iterator[Outside]:
    """Serve until the end of the block."""
    server = Outside()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        if server.gate:
            server.gate.open()
        server.shutdown()
        thread.join(40)
        server.server_close()
