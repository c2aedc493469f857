"""A real server on loopback, for `fetch` to ask."""

import gzip
import json
import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from tools_studio.network.request import FetchPolicy

RESPONSE_BYTES = FetchPolicy("allowlist").max_bytes

SLOW = b"a-" + b"z" * (RESPONSE_BYTES - 2)  # Python's punycode codec takes hours for it

NESTED = b"[" + b"[],".join([b""] * (RESPONSE_BYTES // 4)) + b"[]]"


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

    def _redirect(self) -> None:
        """`/to/307?https://...` says where to, `/loop` leads to itself."""
        path, _, query = self.path.partition("?")
        self._send(int(path.rpartition("/")[2]), b"", location=unquote(query.partition("&")[0]))

    def _echo(self) -> None:
        """What came, as servers that reflect requests write it: PHP escapes the slashes in its JSON."""
        said = json.dumps({"path": self.path, **dict(self.headers.items())}).replace("/", "\\/")
        self._send(200, said.encode(), content_type="application/json", x_seen=str(dict(self.headers.items())))

    def _many_headers(self) -> None:
        self._send(200, b"x", **{f"x_{number}": "y" * 1000 for number in range(200)})

    def _framed(self) -> None:
        """A body of which every byte comes in a chunk of its own, with a long comment."""
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for _ in range(1000):
            self.wfile.write(b"1;" + b"c" * 8000 + b"\r\nx\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _interim(self) -> None:
        """Promises without end, and no answer."""
        for _ in range(100_000):
            self.wfile.write(b"HTTP/1.1 102 Processing\r\nx: " + b"y" * 1000 + b"\r\n\r\n")

    def _drip(self) -> None:
        """One byte after the other, each in time, and never all of them."""
        self.send_response(200)
        self.send_header("content-length", "1000000")
        self.end_headers()
        while not self.server.release.wait(0.05):
            self.wfile.write(b"x")
            self.wfile.flush()

    def _answer(self) -> None:
        self._note()
        path = self.path.partition("?")[0]
        answers: dict[str, Callable[[], None]] = {
            "/json": lambda: self._send(200, b'{"price": 12.5}', content_type="application/json; charset=utf-8"),
            "/nan": lambda: self._send(200, b'{"price": NaN}', content_type="application/json"),
            "/nested": lambda: self._send(200, NESTED, content_type="application/json"),
            "/lists": lambda: self._send(200, b"[[],[],[],[]]", content_type="application/json"),
            "/latin": lambda: self._send(200, "Zürich".encode("latin-1"), content_type="text/plain; charset=latin-1"),
            "/odd": lambda: self._send(200, b"\xffodd", content_type="text/plain; charset=no-such-charset"),
            "/charset": self._in_a_charset,
            "/slow-charset": lambda: self._send(200, SLOW, content_type="text/plain; charset=punycode"),
            "/cookie": lambda: self._send(200, b"x", set_cookie="session=1", keep_alive="timeout=5", etag="e"),
            "/hop": lambda: self._send(200, b"x", connection="x-private", x_private="1", x_public="2"),
            "/cut": lambda: self._send(200, gzip.compress(b"packed" * 100)[:-9], content_encoding="gzip"),
            "/twice": lambda: self._send(200, gzip.compress(b"a") + gzip.compress(b"b"), content_encoding="gzip"),
            "/packed-large": lambda: self._send(200, os.urandom(RESPONSE_BYTES + 1), content_encoding="gzip"),
            "/nowhere": lambda: self._send(302, b"x"),
            "/echo": self._echo,
            "/many-headers": self._many_headers,
            "/framed": self._framed,
            "/interim": self._interim,
            "/drip": self._drip,
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
        if path.startswith("/to/"):
            self._redirect()
        else:
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


def policy(server: Server, host: str = "127.0.0.1", scheme: str = "http://", **bounds: Any) -> FetchPolicy:
    return FetchPolicy("allowlist", (f"{scheme}{host}:{server.server_port}",), **bounds)


def url(server: Server, path: str = "/json", host: str = "127.0.0.1", scheme: str = "http") -> str:
    return f"{scheme}://{host}:{server.server_port}{path}"
