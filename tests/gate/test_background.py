"""Work beside requests, and the process that does it."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.dispatch import Signal
from django.test import Client
from django.utils.module_loading import import_string
from pytest_django import Settings

from hitlchat import subscribers
from hitlchat.agent import runner
from hitlchat.base.background import Worker, failing
from hitlchat.mcp_server import submissions
from tests.processes import ROOT
from tests.waiting import soon

# As a server does that loads the application once and forks for each worker.
FORKING: Final = """
import os
from hitlchat.base.background import me
print(me(), flush=True)
if child := os.fork():
    os.waitpid(child, 0)
print(me(), flush=True)
"""


def test_a_fork_has_a_name_of_its_own_in_leases() -> None:
    command = [sys.executable, "-c", FORKING]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    before, in_fork, after = done.stdout.split()
    assert before == after != in_fork


async def test_a_worker_outlives_its_failures_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    looks: list[str] = []

    async def look() -> None:
        looks.append("failed" if len(looks) < 2 else "done")
        if looks[-1] == "failed":
            raise OSError("the database restarts")

    worker = Worker("cleaner", look, every=0.01)
    working = asyncio.create_task(worker.work())
    await soon(lambda: "done" in looks, "it tries again")
    assert looks[:3] == ["failed", "failed", "done"]
    assert caplog.text.count("The worker 'cleaner' failed and will try again") == 2
    assert "cleaner" not in failing
    working.cancel()
    await asyncio.wait([working])


async def test_what_fails_is_tried_less_often_but_what_renews_a_lease_is_not() -> None:
    async def fail() -> None:
        raise OSError("the database restarts")

    patient, holder = Worker("patient", fail, every=2), Worker("holder", fail, every=2, longest=2)
    pauses = [(patient.pause, holder.pause)]
    for _ in range(4):
        await patient.turn()
        await holder.turn()
        pauses.append((patient.pause, holder.pause))
    failing.clear()
    assert pauses == [(2, 2), (4, 2), (8, 2), (10, 2), (10, 2)]


@pytest.mark.parametrize("made", [runner.heartbeat, submissions.lease_worker])
async def test_a_lease_outlives_a_failure_to_renew_it(made: Callable[[], Worker], settings: Settings) -> None:
    settings.LEASE_SECONDS = 3
    worker = made()
    usual = worker.pause
    worker._failures = 5
    assert worker.pause == usual < settings.LEASE_SECONDS / 2


async def test_a_worker_that_is_woken_looks_at_once() -> None:
    looks: list[None] = []

    async def look() -> None:
        looks.append(None)

    worker = Worker("cleaner", look, every=3600)
    working = asyncio.create_task(worker.work())
    await soon(lambda: len(looks) == 1, "it looks at its start")
    await asyncio.to_thread(worker.wake)
    await soon(lambda: len(looks) == 2, "it looks again")
    working.cancel()
    await asyncio.wait([working])


@pytest.mark.django_db(transaction=True)
def test_readyz_names_the_workers_that_fail(client: Client) -> None:
    failing.add("sweeper")
    try:
        assert client.get("/readyz").json()["failing"] == ["sweeper"]
    finally:
        failing.discard("sweeper")
    assert "failing" not in client.get("/readyz").json()


def test_a_listener_that_fails_is_logged_by_its_name_and_the_next_one_is_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    signal, called = Signal(), []
    # Without what it is told of a call, it fails.
    signal.connect(subscribers.listener("hitlchat.agent.runner.on_move"), weak=False)
    signal.connect(lambda **_: called.append("next"), weak=False)
    signal.send_robust(sender=None)
    assert called == ["next"]
    assert "hitlchat.agent.runner.on_move" in caplog.text


def test_every_signal_of_ours_names_its_listeners_in_one_place() -> None:
    made = [
        path for path in Path(ROOT, "hitlchat").rglob("*.py") for _ in re.findall(r"= Signal\(\)", path.read_text())
    ]
    assert len(made) == len(subscribers.LISTENERS.keys() - {user_logged_in, user_login_failed})
    assert not [path for path in made if re.search(r"\b(call_moved|_changed|progressed)\.connect", path.read_text())]
    for signal, paths in subscribers.LISTENERS.items():
        assert all(callable(import_string(path)) for path in paths)
        assert signal.has_listeners()
