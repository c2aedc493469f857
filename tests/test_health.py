"""Health as a supervisor sees it, what people read while the database fails, and the server's end."""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import httpx2
import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from tests.outside import Outside, outside
from tests.processes import Installation, Server, Servers, installation, migrated, servers
from tests.scripted_model import Gate, ScriptedModel, calls, scripted_model, text
from tests.waiting import until

pytestmark = pytest.mark.servers("what a killed process leaves is what was committed")

__all__ = ["installation", "migrated", "outside", "scripted_model", "servers"]


def ready(server: Server, **headers: str) -> tuple[int, str]:
    """The answer's status and what it says of the database, which may hold up nobody for longer than this."""
    answer = httpx2.get(f"{server.url}/readyz", headers=headers, timeout=10, trust_env=False, verify=False)
    return answer.status_code, answer.json().get("database", "")


@pytest.mark.embedded
def test_probes_are_answered_by_any_name_and_pages_are_not(servers: Servers) -> None:
    server = servers.start()
    stranger = {"Host": "10.1.2.3:8000"}
    answers = [
        httpx2.get(server.url + path, headers=stranger, trust_env=False, verify=False).status_code
        for path in ("/healthz", "/readyz", "/sign-in")
    ]
    assert answers == [200, 200, 400]


@pytest.mark.slow("starts a server and locks its database")
@pytest.mark.embedded
def test_a_locked_database_is_not_ready_and_says_so(servers: Servers) -> None:
    server = servers.start()
    with closing(sqlite3.connect(servers.home.folder / "hitlchat.sqlite3")) as other:
        other.execute("BEGIN IMMEDIATE")
        until(lambda: ready(server)[0] == 503, "the write that is tried fails")
        assert ready(server) == (503, "locked")
        assert httpx2.get(f"{server.url}/healthz", trust_env=False, verify=False).status_code == 200
    until(lambda: ready(server) == (200, ""), "it is ready again")


@pytest.mark.slow("starts a server and locks its database")
@pytest.mark.postgres
def test_a_database_that_hangs_is_not_ready_and_the_answer_does_not_wait_for_it(servers: Servers) -> None:
    server = servers.start()
    with psycopg.connect(servers.home.database) as other:
        other.execute("LOCK TABLE django_migrations IN ACCESS EXCLUSIVE MODE")
        until(lambda: ready(server)[0] == 503, "the look at it hangs")
        assert ready(server) == (503, "does not answer")
    until(lambda: ready(server) == (200, ""), "it is ready again")


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(bytes(2**14)):
            pass


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[ExitStack]:
    """A disk of its own; the stack is closed before it is taken away."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs to mount a small disk")
    with ExitStack() as stack:
        stack.callback(subprocess.run, ["umount", "--lazy", str(folder)], check=True)
        yield stack


@pytest.mark.slow("starts a server and fills its disk")
@pytest.mark.embedded
def test_a_full_disk_is_not_ready_and_says_so(migrated: Installation, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "24m") as disk:
        home = Installation(tmp_path / "disk" / "data")
        home.folder.mkdir()
        for file in migrated.folder.iterdir():
            (home.folder / file.name).write_bytes(file.read_bytes())
        started = Servers(home)
        disk.callback(started.close)
        server = started.start()
        _fill(home.folder / "filler")
        until(lambda: ready(server) == (503, "disk full"), "it is not ready")
        (home.folder / "filler").unlink()
        until(lambda: ready(server) == (200, ""), "it is ready again")


@contextmanager
def read_only() -> Iterator[None]:
    on, off = ("PRAGMA query_only=ON", "PRAGMA query_only=OFF")
    if connection.vendor == "postgresql":
        on, off = (f"SET default_transaction_read_only = {word}" for word in ("on", "off"))
    with connection.cursor() as cursor:
        cursor.execute(on)
        yield
        cursor.execute(off)


@pytest.mark.django_db(transaction=True)
def test_people_and_programs_are_told_that_the_database_is_read_only(bob: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(bob)
    with read_only():
        page = client.post("/chat/new", {"content": "hello"})
        answer = client.post("/api/conversations", {}, content_type="application/json")
    sentence = "The server's database is read-only, so nothing can be stored."
    assert (page.status_code, answer.status_code) == (503, 503)
    assert sentence.replace("'", "&#x27;") in page.content.decode()
    assert answer.json()["detail"] == sentence


@pytest.mark.slow("lets leases of a server run on")
def test_a_server_told_to_end_waits_for_its_tools_and_keeps_what_came_back(
    servers: Servers, outside: Outside, scripted_model: ScriptedModel
) -> None:
    server = servers.start(**scripted_model.environment, DRAIN_SECONDS="60")
    server.sign_in("alice").add_tool(hitlMode="DISABLED", **outside.tool)
    bob = server.sign_in("bob")
    outside.gate = Gate()
    scripted_model.enqueue(calls(("order", {"what": "a lamp"})), text("It is ordered."))
    conversation = bob.begin("Order a lamp")
    outside.gate.wait()
    server.signal(signal.SIGTERM)
    begun = _lease(servers.home)
    # For longer than a lease lasts: another process would take the call for lost otherwise.
    until(lambda: _lease(servers.home) != begun, "the lease is renewed")
    begun = _lease(servers.home)
    until(lambda: _lease(servers.home) != begun, "the lease is renewed again")
    outside.gate.open()
    assert server.wait() == 0
    server.start()
    bob = server.sign_in("bob")
    bob.wait_for_call(conversation, "succeeded")
    bob.wait_for_answer(conversation, "It is ordered.")


def _lease(home: Installation) -> object:
    query = "SELECT max(lease_until) FROM gate_toolcall"
    if home.database:
        with psycopg.connect(home.database) as there:
            return (there.execute(query).fetchone() or [None])[0]
    with closing(sqlite3.connect(home.folder / "hitlchat.sqlite3")) as here:
        return here.execute(query).fetchone()[0]
