"""What the real server takes in from anybody."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import httpx2
import pytest

from hitlchat.asgi import LARGEST_BODY
from tests.processes import ROOT, Server, Servers

pytestmark = pytest.mark.embedded


def is_refused(server: Server, body: bytes | Iterable[bytes]) -> bool:
    try:
        return httpx2.post(f"{server.url}/sign-in", content=body, timeout=40, verify=False).status_code == 413
    except httpx2.TransportError:
        # Closed while more was being sent, so that the answer could not be read any more.
        return True


def test_a_body_that_is_too_large_is_refused_and_the_server_lives_on(servers: Servers) -> None:
    server = servers.start()
    assert is_refused(server, b"x" * (LARGEST_BODY + 1))
    assert not is_refused(server, b"x" * 1000)
    assert httpx2.get(f"{server.url}/healthz", verify=False).status_code == 200


def test_a_body_that_does_not_say_its_length_is_refused_once_it_is_too_large(servers: Servers) -> None:
    server = servers.start()
    assert is_refused(server, (b"x" * 2**20 for _ in range(LARGEST_BODY // 2**20 + 2)))
    assert httpx2.get(f"{server.url}/healthz", verify=False).status_code == 200


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


def test_a_request_that_still_arrives_as_the_server_ends_is_dropped_without_an_error(tmp_path: Path) -> None:
    environment = {**os.environ, "HITLCHAT_DATA": str(tmp_path)}
    subprocess.run([sys.executable, "-c", ARRIVING], cwd=ROOT, env=environment, check=True, timeout=120)
