"""A receiver of webhooks on the loopback: it keeps what it is sent, and can be made to misbehave."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Delivery:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Inbound:
    """`status` is what it answers, with `headers` and `said`. While `hangs`, it answers nothing at all."""

    port: int = 0
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    said: bytes = b""
    hangs: bool = False
    got: list[Delivery] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/services/T0/B0/very-secret-path"

    @property
    def events(self) -> list[str]:
        return [each.json["type"] for each in self.got]


@contextmanager
def receiving() -> Iterator[Inbound]:
    inbound = Inbound()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            inbound.got.append(Delivery(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            if inbound.hangs:
                inbound.over.wait(40)
                return
            self.send_response(inbound.status)
            for name, value in inbound.headers.items():
                self.send_header(name, value)
            if inbound.status != 204:
                self.send_header("Content-Length", str(len(inbound.said)))
            self.end_headers()
            self.wfile.write(inbound.said)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Who waited in vain hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    inbound.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield inbound
    finally:
        inbound.over.set()
        server.shutdown()
        thread.join(40)
        server.server_close()
