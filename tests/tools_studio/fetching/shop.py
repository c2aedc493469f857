"""A real server on loopback, for `fetch` to ask."""

import gzip
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote_to_bytes

from tools_studio.fetching import RESPONSE_BYTES, FetchPolicy

SLOW = b"a-" + b"z" * (RESPONSE_BYTES - 2)  # Python's punycode codec takes hours for it


class Shop(BaseHTTPRequestHandler):
    """Answers by path, and notes what it was asked."""

    server: "Server"

    def _note(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.append((self.command, self.path, dict(self.headers.items()), body))
        self.server.arrived.set()

    def _late(self) -> None:
        self.server.release.wait(20)
        self._send(200, b"late")

    def _in_a_charset(self) -> None:
        charset, _, body = self.path.partition("?")[2].partition("&")
        self._send(200, unquote_to_bytes(body), content_type=f"text/plain; charset={charset}")

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _answer(self) -> None:
        self._note()
        path = self.path.partition("?")[0]
        answers: dict[str, Callable[[], None]] = {
            "/json": lambda: self._send(200, b'{"price": 12.5}', content_type="application/json; charset=utf-8"),
            "/nan": lambda: self._send(200, b'{"price": NaN}', content_type="application/json"),
            "/latin": lambda: self._send(200, "Zürich".encode("latin-1"), content_type="text/plain; charset=latin-1"),
            "/odd": lambda: self._send(200, b"\xffodd", content_type="text/plain; charset=no-such-charset"),
            "/charset": self._in_a_charset,
            "/slow-charset": lambda: self._send(200, SLOW, content_type="text/plain; charset=punycode"),
            "/away": lambda: self._send(302, b"", location="http://127.0.0.1:1/secret"),
            "/large": lambda: self._send(200, b"x" * (RESPONSE_BYTES + 1)),
            "/full": lambda: self._send(200, b"x" * RESPONSE_BYTES),
            "/gzip": lambda: self._send(200, gzip.compress(b"packed"), content_encoding="gzip"),
            "/bomb": lambda: self._send(200, gzip.compress(b"\0" * 50_000_000), content_encoding="gzip"),
            "/liar": lambda: self._send(200, b"not gzip", content_encoding="gzip"),
            "/brotli": lambda: self._send(200, b"?", content_encoding="br"),
            "/slow": self._late,
            "/teapot": lambda: self._send(418, b"short and stout"),
        }
        answers.get(path, lambda: self._send(200, b"hello"))()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    asked: list[tuple[str, str, dict[str, str], bytes]]
    arrived: threading.Event
    release: threading.Event

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of these tests."""


def policy(server: Server, host: str = "127.0.0.1", scheme: str = "http://") -> FetchPolicy:
    return FetchPolicy((f"{scheme}{host}:{server.server_port}",))


def url(server: Server, path: str = "/json", host: str = "127.0.0.1", scheme: str = "http") -> str:
    return f"{scheme}://{host}:{server.server_port}{path}"
