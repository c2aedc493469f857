import datetime
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hitlchat.outbound.network import tls
from tests.tools_studio.fetching.shop import Server, Shop


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
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """A resolver of our own, in the place of the C library's: it cannot be told to ask another name server."""
    known: dict[str, list[tuple[str, ...]]] = {}
    looked_up: list[str] = []

    def getaddrinfo(host: str, port: int, **_: object) -> list[Any]:
        looked_up.append(host)
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        return [(None, None, None, "", (address, port)) for address in addresses]

    def answer(name: str, *addresses: str | tuple[str, ...]) -> list[str]:
        """`name` leads to these addresses. Tuples are the answers to one look-up after the other."""
        one_by_one = [each for each in addresses if isinstance(each, tuple)]
        known[name] = one_by_one or [tuple(str(each) for each in addresses)]
        return looked_up

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answer


def certificate(name: str, folder: Path) -> Path:
    """A certificate for `name` with its key, signed by itself."""
    key, subject = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]),
    )
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
        now + datetime.timedelta(days=1)
    )
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "shop.pem"
    path.write_bytes(private + builder.sign(key, hashes.SHA256()).public_bytes(pem))
    return path


@pytest.fixture
def tls_shop(shop: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    path = certificate("localhost", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    shop.socket = context.wrap_socket(shop.socket, server_side=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    tls.cache_clear()
    yield shop
    tls.cache_clear()
