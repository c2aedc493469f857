import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.outbound.certificates import trusted
from tests.outbound.resolving import answering
from tests.tools_studio.fetching.shop import Server, Shop

answers = pytest.fixture(answering)


@contextmanager
def serving() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Shop)
    server.asked, server.arrived, server.release = [], threading.Event(), threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    thread.join(40)
    server.server_close()


@pytest.fixture
def shop() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def tls_shop(shop: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with trusted("localhost", tmp_path, monkeypatch) as context:
        shop.socket = context.wrap_socket(shop.socket, server_side=True)
        yield shop
