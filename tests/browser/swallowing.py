"""A network that loses connections without a word: they stay open, and nothing comes through any more."""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from tests.ports import free_port


@dataclass
class Network:
    """Leads to a port of this machine. `swallow` ends what is open so that neither end notices."""

    to: int
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self._era = 0
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def swallow(self) -> None:
        self._era += 1

    def close(self) -> None:
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                page, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
                self._open += [page, server]
                for one, other in ((page, server), (server, page)):
                    threading.Thread(target=self._pass_on, args=(one, other, self._era), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket, era: int) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if era == self._era:
                    other.sendall(data)
            if era == self._era:
                other.shutdown(socket.SHUT_WR)
