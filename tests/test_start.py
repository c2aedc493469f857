"""Commands import what they need: counted in a process of their own, since its time says little on a busy machine."""

import json
import subprocess
import sys
from typing import Final

import pytest

from hitlchat.agent.model_client import OwnAddress
from tests import forks
from tests.processes import ROOT, TRULY_SERVE, Installation, Servers, installation, migrated, servers, without_people

__all__ = ["installation", "migrated", "servers", "without_people"]

# The client of model servers, that of MCP and its server, traces, Redis, Markdown, and the tables for odd characters.
LARGE: Final = ("openai", "mcp", "mcp_types", "opentelemetry", "redis", "markdown_it", "pygments", "prometheus_client")
# One command after the other, and after each of them what has been imported by then.
ALL: Final = """
import contextlib, json, runpy, sys
commands, found = sys.argv[1:], {}
for command in commands:
    sys.argv = ["manage.py", *command.split()]
    with contextlib.suppress(SystemExit):
        runpy.run_path("manage.py", run_name="__main__")
    found[command] = sorted({name.partition(".")[0] for name in sys.modules})
print("\\n" + json.dumps(found))
"""
# The library is loaded only once the loop has gone round since.
FIRST_REQUEST: Final = """
import asyncio, django, sys, threading
from importlib.abc import MetaPathFinder

django.setup()
from hitlchat.agent import model_client, request

turned = threading.Event()

class Halting(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        assert name != "openai" or turned.wait(20), "the loop stands still while the library is loaded"

async def ask():
    asyncio.get_running_loop().call_soon(turned.set)
    async for _ in request.ask(model_client.Endpoint("http://127.0.0.1:9", "key", "none"), b"{}"):
        pass

assert "openai" not in sys.modules
sys.meta_path.insert(0, Halting())
try:
    asyncio.run(ask())
except model_client.ModelTrouble:
    print("asked")
"""
COMMANDS: Final = (
    "approvals list",
    "grants list",
    "policy list",
    "people list",
    "audit verify --plain",
    "create_token alice --kind api",
)


def imported(home: Installation, *commands: str) -> dict[str, set[str]]:
    """Run commands in one process and return the names of the packages that were imported once each was over."""
    done = subprocess.run(
        [sys.executable, "-c", ALL, *commands],
        cwd=ROOT,
        env=home.variables(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return {command: {*names} for command, names in json.loads(done.stdout.splitlines()[-1]).items()}


@pytest.mark.slow("imports in fresh interpreters")
@pytest.mark.embedded
def test_a_command_that_talks_to_the_database_imports_no_large_library(installation: Installation) -> None:
    # What the template was made with may have waited for a seal for longer than `audit verify` lets pass.
    installation.manage("audit", "seal")
    found = imported(installation, *COMMANDS, "check")
    assert {command: found[command] & {*LARGE} for command in COMMANDS} == {command: set() for command in COMMANDS}
    # It looks at all that there is, but not at the client of model servers.
    assert "openai" not in found["check"]


@pytest.mark.slow("starts programs")
@pytest.mark.embedded
def test_commands_still_say_that_approvals_are_switched_off(installation: Installation) -> None:
    _, _, errors = forks.run(("manage.py", "approvals", "list"), installation.variables(HITL_ENABLED="0"), timeout=120)
    assert "hitlchat.W001" in errors


@pytest.mark.slow("imports in fresh interpreters")
@pytest.mark.embedded
def test_the_first_model_request_keeps_nobody_waiting_while_its_library_is_loaded(installation: Installation) -> None:
    variables = installation.variables(DJANGO_SETTINGS_MODULE="hitlchat.settings")
    command = [sys.executable, "-c", FIRST_REQUEST]
    ran = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.strip() == "asked", ran.stderr


@pytest.mark.embedded
def test_showing_plain_text_does_not_read_all_of_unicode() -> None:
    program = (
        "from hitlchat.base import visible; visible.see('plain text');assert not visible.patterns.cache_info().currsize"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=120)


@pytest.mark.embedded
def test_the_server_starts_and_ends_as_people_start_and_end_it(servers: Servers) -> None:
    """In other tests the server is a fork of a process that has imported libraries already."""
    server = servers.start(TRULY_SERVE)
    assert server.sign_in("bob").get("/api/approvals").status_code == 200
    assert server.stop() == 0


def test_the_bench_begins_before_django_is_set_up() -> None:
    command = [sys.executable, "-m", "bench", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "chat" in done.stdout


@pytest.mark.embedded
def test_the_first_link_is_of_the_address_that_people_know_the_server_by(without_people: Installation) -> None:
    servers = Servers(without_people)
    try:
        server = servers.start(HITL_PUBLIC_URL="https://hitl.example.com")
        assert "\n  https://hitl.example.com/welcome/" in server.log
    finally:
        servers.close()


def test_a_server_that_listens_everywhere_shows_an_address_that_it_answers_to() -> None:
    address = OwnAddress()
    address.learn("0.0.0.0", 8000)
    assert address.url == "http://127.0.0.1:8000"
