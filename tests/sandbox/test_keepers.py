"""The processes that drive the workers: what a tool does to one of them, it does to no other run and not to us."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pytest_django import Settings

from hitlchat.sandbox import Fault, Limits, close, run
from hitlchat.sandbox.pool import KeeperFailed, start
from hitlchat.sandbox.wire import Channel, Closed
from tests.sandbox.test_limits import children, keepers, state, stopped, workers
from tests.waiting import soon, until

TRIVIAL = "def run():\n    return 1\n"
WAITS = "from hitl import fetch\ndef run():\n    fetch()\n    return 1\n"
# A key that four lines of code make, and that takes longer to hash than anyone lives.
BOMB = "def run():\n    x = (1,)\n    for _ in range(60):\n        x = (x, x)\n    return {x: 1}\n"


@pytest.mark.slow("reads a value that takes for ever")
async def test_reading_a_value_that_takes_for_ever_blocks_neither_this_process_nor_other_runs() -> None:
    bomb = asyncio.ensure_future(run(BOMB, {}, limits=Limits(cpu_seconds=0.2, wall_seconds=20)))
    others = [(await run(TRIVIAL, {})).result for _ in range(20)]
    report = await bomb
    assert report.fault == Fault(
        "limit", "processor time: the values that the tool hands over take too long to read", None
    )
    assert others == [1] * 20


async def test_a_killed_keeper_is_a_crash_and_the_next_run_is_fine() -> None:
    async def kill() -> None:
        for pid in keepers():
            os.kill(pid, signal.SIGKILL)

    report = await run(WAITS, {}, grants={"fetch": kill})
    assert report.fault is not None
    assert report.fault.kind == "crash"
    assert "ended unexpectedly" in report.fault.message
    assert (await run(TRIVIAL, {})).result == 1


def test_a_folder_that_runs_no_programs_is_named_as_the_reason_why_no_tool_runs(tmp_path: Path) -> None:
    """As a file system that is mounted with noexec, which the temporary one of a container is unless told otherwise."""
    (launcher := tmp_path / "worker").write_text("#!/bin/sh\n", encoding="utf-8")
    with pytest.raises(KeeperFailed, match=f"^{tmp_path} lets no program be started.* noexec"):
        start(launcher)


async def test_keepers_that_died_while_nobody_looked_are_replaced() -> None:
    assert (await run(TRIVIAL, {})).ok
    for pid in keepers():
        os.kill(pid, signal.SIGKILL)
    # On a busy machine a process lives on for a moment after its signal.
    await soon(lambda: not keepers(), "the keepers are dead")
    assert [(await run(TRIVIAL, {})).fault for _ in range(3)] == [None] * 3


@pytest.mark.slow("stops a keeper until its time is over")
async def test_a_stopped_keeper_is_given_up() -> None:
    async def stop() -> None:
        await stopped(keepers())

    await close()
    async with asyncio.timeout(40):
        report = await run(WAITS, {}, grants={"fetch": stop}, limits=Limits(wall_seconds=0.5))
    assert report.fault == Fault("limit", "time: the tool takes longer than 0.5 s")
    assert (await run(TRIVIAL, {})).result == 1


async def test_no_more_keepers_run_than_the_setting_says_and_each_has_one_worker(settings: Settings) -> None:
    settings.TOOL_WORKERS = 2
    await close()
    reports = await asyncio.gather(*(run(TRIVIAL, {}) for _ in range(12)))
    assert [report.result for report in reports] == [1] * 12
    assert len(keepers()) <= 2
    assert len(workers()) <= 2


async def test_a_keeper_that_starts_for_a_cancelled_run_serves_the_next_one(settings: Settings) -> None:
    settings.TOOL_WORKERS = 1
    await close()
    cancelled = asyncio.ensure_future(run(TRIVIAL, {}))
    await soon(lambda: any(each.name == "sandbox-start" for each in threading.enumerate()), "a keeper starts")
    cancelled.cancel()
    await asyncio.wait([cancelled])
    assert (await run(TRIVIAL, {})).result == 1
    assert len(keepers()) == 1


async def test_a_keeper_sees_no_environment_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    await close()
    assert (await run(TRIVIAL, {})).ok
    assert not any(b"hunter2" in environment_of(pid) for pid in keepers())


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


SERVER = """
import asyncio, os, signal
from hitlchat.sandbox import run
async def main():
    assert (await run('def run(): return 1', {})).ok
    print('running', flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_when_the_server_is_killed_its_keepers_and_workers_end_by_themselves() -> None:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path.cwd()) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"running\n"
        python = Path(sys.executable).resolve().name
        started = children(server.pid, python)
        started += [worker for keeper in started for worker in children(keeper, "monty")]
        assert len(started) == 2
        server.kill()
        server.wait(40)
        until(lambda: not any(is_running(pid) for pid in started), "all of them have ended")


def is_running(pid: int) -> bool:
    try:
        return state(pid) != "Z"
    except OSError:
        return False


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = socket.socketpair()
    channels = Channel(one, "_mark"), Channel(other, "_mark")
    yield channels
    for channel in channels:
        channel.close()


async def test_what_is_sent_arrives_as_it_was(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    message = {
        "dates": [date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)],
        "numbers": [Decimal("1.50"), 10**300, 0.1, -0.0, True, None],
        "text": "ü\u0000\U0001f600",
        "nested": {"decimal": ["decimal", "1"], "": {}},
    }
    await here.send(message)
    await here.send({"second": "x" * 100_000})
    assert await there.receive() == message
    assert await there.receive() == {"second": "x" * 100_000}


async def test_long_messages_pass_while_both_sides_talk(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    long = {"text": "x" * 5_000_000}
    async with asyncio.timeout(40):
        received = await asyncio.gather(here.receive(), there.receive(), here.send(long), there.send(long))
    assert received[:2] == [long, long]


async def test_a_message_that_was_cut_off_makes_the_connection_useless(ends: tuple[Channel, Channel]) -> None:
    here, _ = ends
    sending = asyncio.ensure_future(here.send({"text": "x" * 5_000_000}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert not here.whole


async def test_the_end_of_the_other_side_is_noticed(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    there.close()
    with pytest.raises(Closed):
        await here.receive()
    with pytest.raises(Closed):
        await here.send({"text": "x" * 1_000_000})


async def test_what_json_and_the_wire_do_not_know_is_a_mistake_of_ours(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(TypeError, match="a bytes cannot be sent"):
        await ends[0].send({"value": b"x"})
    with pytest.raises(ValueError, match="a frame of"):
        ends[0].pack({"value": "x" * 70_000_000})


async def test_closing_ends_what_runs_and_what_is_only_starting() -> None:
    await close()
    running = [asyncio.ensure_future(run(TRIVIAL, {})) for _ in range(4)]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await close()
        reports = await asyncio.gather(*running)
    assert all(report.ok or report.fault.kind in ("crash", "unavailable") for report in reports if report.fault)
    assert (await run(TRIVIAL, {})).ok
    await close()
    await soon(lambda: not keepers(), "none is left")


async def test_a_worker_in_the_middle_of_a_run_ends_with_its_keeper() -> None:
    started: list[int] = []

    async def note() -> None:
        started.extend(workers())

    source = "from hitl import fetch\ndef run():\n    fetch()\n    while True: pass\n"
    await close()  # those that other tests left go on
    running = asyncio.ensure_future(run(source, {}, grants={"fetch": note}, limits=Limits(cpu_seconds=20)))
    await soon(lambda: started, "it runs")
    running.cancel()
    await asyncio.wait([running])
    await soon(lambda: not any(is_running(pid) for pid in started), "the worker has ended")
