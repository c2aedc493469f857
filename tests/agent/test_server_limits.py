"""What the real server takes in from anybody."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from hitlchat.asgi import LARGEST_BODY, http
from tests.mcp_server.floods import MIB, pour
from tests.processes import ROOT, Server, Servers
from tests.waiting import until

pytestmark = pytest.mark.embedded


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_hardly_too_large_is_taken_to_its_end_so_that_its_client_reads_why_it_is_refused(
    servers: Servers, declared: bool
) -> None:
    server, size = servers.start(), LARGEST_BODY + 8 * MIB
    sent, answer = pour(server, "", size, declared=declared)
    assert (sent, answer[:12]) == (size, b"HTTP/1.1 413")
    assert httpx2.get(f"{server.url}/healthz", verify=False).status_code == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_sent_and_the_server_lives_on(servers: Servers) -> None:
    server = servers.start()
    assert httpx2.post(f"{server.url}/sign-in", content=b"x" * 1000, verify=False).status_code != 413
    head = f"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LARGEST_BODY + 1}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=40) as connection:
        connection.sendall(head.encode())
        assert b"larger than 20 MiB" in b"".join(iter(lambda: connection.recv(65536), b""))
    assert httpx2.get(f"{server.url}/healthz", verify=False).status_code == 200


@pytest.mark.slow("starts a server and a command")
def test_a_download_that_fails_while_it_is_made_is_broken_off_and_the_server_lives_on(servers: Servers) -> None:
    server = servers.start()
    bob = server.sign_in("bob")
    conversation = bob.begin("hello")
    until(lambda: not server.home.runs("running"), "the demo model has answered")
    server.home.manage(
        "shell", "-v", "0", "-c", "from hitlchat.agent.models import Message as m; m.objects.update(role='?')"
    )
    for _ in range(2):
        with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
            bob.get(f"/api/conversations/{conversation}/export")
    assert bob.get("/api/conversations").status_code == 200
    assert "has already been started" not in server.log


def peak_mebibytes(server: Server) -> int:
    assert server._process is not None
    lines = Path(f"/proc/{server._process.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def upload(mebibytes: int) -> Iterable[bytes]:
    yield b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    yield from (b"x" * 2**20 for _ in range(mebibytes))
    yield b"\r\n--edge--\r\n"


@pytest.mark.slow("bounds memory")
def test_a_file_of_200_mb_is_refused_while_it_arrives_and_never_held_in_memory(servers: Servers) -> None:
    server = servers.start()
    bob = server.sign_in("bob")
    url, before = f"{server.url}/api/conversations/{bob.begin('')}/attachments", peak_mebibytes(server)
    headers = {"Content-Type": "multipart/form-data; boundary=edge", "X-CSRFToken": bob.csrf, "Origin": server.url}
    headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in bob.cookies.items())
    try:
        answer = httpx2.post(url, content=upload(200), headers=headers, verify=False, timeout=40)
    except httpx2.TransportError:
        # Closed while more was being sent, so that the answer could not be read any more.
        answer = None
    assert answer is None or answer.status_code == 413
    assert peak_mebibytes(server) - before < 100
    assert httpx2.get(f"{server.url}/healthz", verify=False).status_code == 200


async def test_behind_any_server_a_body_that_does_not_say_its_length_is_refused_while_it_arrives() -> None:
    sent: list[dict[str, Any]] = []
    asked = 0

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": b"x" * 2**20, "more_body": True}

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    scope = {"type": "http", "method": "POST", "path": "/api/conversations", "headers": [], "query_string": b""}
    await http(scope, receive, send)
    assert [event.get("status") for event in sent] == [413, None]
    assert b"larger than 20 MiB" in sent[1]["body"]
    assert asked <= LARGEST_BODY // 2**20 + 2


ARRIVING: Final = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "hitlchat.settings"
import django
django.setup()
from hitlchat.management.commands.serve import GracefulServer
server, request = GracefulServer(application=None, endpoints=["tcp:0"]), object()
server.connections = {}
server.protocol_connected(request)
server.kill_all_applications()
assert server.create_application(request, {}) is None
"""


@pytest.mark.slow("starts a process")
def test_a_request_that_still_arrives_as_the_server_ends_is_dropped_without_an_error(tmp_path: Path) -> None:
    environment = {**os.environ, "HITLCHAT_DATA": str(tmp_path)}
    subprocess.run([sys.executable, "-c", ARRIVING], cwd=ROOT, env=environment, check=True, timeout=120)
