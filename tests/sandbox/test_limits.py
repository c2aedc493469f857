"""Each limit bites, and its fault names it."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from hitlchat.sandbox import Fault, Limits, close, run
from hitlchat.sandbox.limits import in_words
from hitlchat.sandbox.session import Watch
from tests.waiting import soon

CPU = Limits(cpu_seconds=0.2)


def children(parent: int, name: str) -> list[int]:
    """The ids of the direct children of a process that run the program `name`."""
    running = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in sorted(running) if is_child(pid, parent, name)]


def is_child(pid: int, parent: int, name: str) -> bool:
    try:
        its_parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        return int(its_parent) == parent and Path(f"/proc/{pid}/exe").readlink().name == name
    except OSError:  # it has just ended
        return False


def keepers() -> list[int]:
    """The ids of the processes that drive this process's workers."""
    python = Path(sys.executable).resolve().name
    return [pid for pid in children(os.getpid(), python) if b"hitlchat.sandbox.keeper" in cmdline(pid)]


def workers() -> list[int]:
    """The ids of this process's workers."""
    return [worker for keeper in keepers() for worker in children(keeper, "monty")]


async def stopped(pids: list[int]) -> None:
    """Stop these processes, and wait until they stand still."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    await soon(lambda: all(state(pid) == "T" for pid in pids), "they stand still")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended
        return b""


@pytest.mark.parametrize(
    "body, limits, message, line",
    [
        ("    while True:\n        pass\n", CPU, "processor time: the tool computes for more than 0.2 s", None),
        (
            "    while True:\n        try:\n            while True: pass\n        except:\n            pass\n",
            CPU,
            "processor time: the tool computes for more than 0.2 s",
            None,
        ),
        (
            "    x = []\n    while True: x.append('ab' * 1000 + str(len(x)))\n",
            # So much that the interpreter's own count, which knows the line, is over it well before the kernel's is.
            Limits(),
            "memory: the tool needs more than 64 MiB (TOOL_MEMORY_MIB)",
            3,
        ),
        ("    return run()\n", Limits(), "recursion: the tool nests more than 200 calls or values", 2),
        (
            "    import time\n    for _ in range(3):\n        time.sleep(4)\n",
            Limits(sleep_seconds=10),
            "sleep: the tool sleeps for more than 10 s (TOOL_SLEEP_SECONDS)",
            None,
        ),
        ("    return 'x' * 300_000\n", Limits(), "the result must not be larger than 256 KiB (TOOL_RESULT_KIB)", None),
        ("    return [0] * 500_000\n", Limits(), "the result must not be larger than 256 KiB (TOOL_RESULT_KIB)", None),
    ],
)
async def test_a_limit_ends_the_run_and_is_named(body: str, limits: Limits, message: str, line: int | None) -> None:
    async def no_time(_: float) -> None:
        return

    fault = (await run(f"def run():\n{body}", {}, limits=limits, sleep=no_time, powers=["sleep"])).fault
    assert fault is not None
    assert (fault.kind, fault.message, fault.line) == ("limit", message, line)


@pytest.mark.slow("bets on the clock of a processor")
async def test_waiting_for_the_host_costs_no_processor_time() -> None:
    async def slow() -> None:
        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0.3))])

    source = "from hitl import fetch\ndef run():\n    fetch()\n    return 1\n"
    assert (await run(source, {}, grants={"fetch": slow}, limits=CPU)).result == 1


@pytest.mark.slow("bets on the clock of a processor")
async def test_time_in_which_others_have_the_processor_costs_no_processor_time() -> None:
    resumed: list[asyncio.Task[None]] = []

    async def go_on(pids: list[int]) -> None:
        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(1.5))])
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    async def stop() -> None:
        pids = workers()
        await stopped(pids)
        resumed.append(asyncio.create_task(go_on(pids)))

    source = "from hitl import fetch\ndef run():\n    fetch()\n    return 1\n"
    report = await run(source, {}, grants={"fetch": stop}, limits=CPU)
    await asyncio.gather(*resumed)
    assert (report.result, report.fault) == (1, None)


async def test_processor_time_is_added_up_over_all_that_a_run_does() -> None:
    async def fetch() -> None:
        """Give the tool a pause."""

    body = "    while True:\n        for _ in range(10_000): pass\n        fetch()\n"
    limits = Limits(cpu_seconds=0.2, host_calls=10_000)
    report = await run(f"from hitl import fetch\ndef run():\n{body}", {}, grants={"fetch": fetch}, limits=limits)
    assert report.fault == Fault("limit", "processor time: the tool computes for more than 0.2 s")


async def test_the_kernel_gives_a_worker_less_than_twice_the_limit() -> None:
    bounds: list[str] = []

    async def look() -> None:
        limits = await asyncio.to_thread(Path(f"/proc/{workers()[0]}/limits").read_text)
        bounds.append(next(line for line in limits.splitlines() if line.startswith("Max data size")).split()[3])

    await close()
    source = "from hitl import look\ndef run():\n    look()\n"
    for mib in (64, 128):
        await run(source, {}, grants={"look": look}, limits=Limits(memory_bytes=mib << 20))
        assert mib << 20 < int(bounds[-1]) < 2 * mib << 20


GROWING = """
import sys
held = []
print(flush=True)
sys.stdin.read(1)
while True:
    held.append(b"x" * 1_000_000)
    print(len(held), flush=True)
"""


@pytest.mark.parametrize("is_held_by_the_kernel", [True, False])
def test_what_grows_is_ended_before_twice_the_limit(is_held_by_the_kernel: bool) -> None:
    command = [sys.executable, "-c", GROWING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        watch = Watch(child.pid, Limits(memory_bytes=64 << 20))
        if not is_held_by_the_kernel:
            resource.prlimit(child.pid, resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        child.stdin.write(b"x")
        child.stdin.flush()
        held = 0
        while line := child.stdout.readline():
            held = int(line)
            if not is_held_by_the_kernel and watch.fault is None:
                watch.look()
    assert 40 < held < 128
    assert child.returncode == (1 if is_held_by_the_kernel else -signal.SIGKILL)
    memory = Fault("limit", "memory: the tool needs more than 64 MiB (TOOL_MEMORY_MIB)")
    assert watch.fault == (None if is_held_by_the_kernel else memory)


async def test_the_wall_clock_ends_what_waits() -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    source = "from hitl import fetch\ndef run():\n    fetch()\n"
    report = await run(source, {}, grants={"fetch": wait}, limits=Limits(wall_seconds=0.1))
    assert report.fault == Fault("limit", "time: the tool takes longer than 0.1 s")


async def test_host_calls_are_counted_and_one_more_cannot_be_caught() -> None:
    calls = 0

    async def count() -> None:
        nonlocal calls
        calls += 1

    body = "    while True:\n        try:\n            fetch()\n        except BaseException:\n            pass\n"
    report = await run(f"from hitl import fetch\ndef run():\n{body}", {}, grants={"fetch": count})
    assert report.fault == Fault("limit", "host calls: the tool makes more than 200 (TOOL_HOST_CALLS)", 5)
    assert calls == 200


@pytest.mark.slow("uses up what it may")
async def test_names_that_do_not_exist_do_not_keep_the_host_busy() -> None:
    body = "    while True:\n        try:\n            nothing\n        except NameError:\n            pass\n"
    report = await run(f"def run():\n{body}", {})
    assert report.fault is not None
    assert report.fault.kind == "limit"
    assert report.fault.message.startswith("calls: the tool makes more than 10700 calls of functions, imports and")


async def test_large_source_is_refused_before_it_is_read() -> None:
    report = await run("#" * 70_000, {})
    assert report.fault == Fault("limit", "source: the code is larger than the limit of 64 KiB (TOOL_SOURCE_KIB)")


async def test_large_arguments_are_refused_before_anything_runs() -> None:
    report = await run("print('ran')\ndef run(a):\n    return 1\n", {"a": "ü" * 140_000})
    assert report.fault == Fault("limit", "the arguments must not be larger than 256 KiB (TOOL_ARGUMENT_KIB)")
    assert report.output == ""


async def test_large_arguments_of_a_host_call_never_reach_the_host() -> None:
    async def never(text: str) -> None:
        raise AssertionError("reached")

    source = "from hitl import fetch\ndef run():\n    fetch('x' * 300_000)\n"
    report = await run(source, {}, grants={"fetch": never})
    message = "TypeError: the arguments of fetch must not be larger than 256 KiB (TOOL_ARGUMENT_KIB)"
    assert report.fault == Fault("error", message, 3)


async def test_output_is_cut_and_says_by_how_much() -> None:
    report = await run("def run():\n    print('x' * 100_000)\n    return 1\n", {}, limits=Limits(output_bytes=1000))
    assert report.result == 1
    assert report.output == "x" * 1000 + "\n… 99001 more bytes of output cut"


async def test_output_is_cut_between_characters() -> None:
    report = await run("def run():\n    print('€€')\n", {}, limits=Limits(output_bytes=4))
    assert report.output == "€\n… 3 more bytes of output cut"


async def test_output_before_a_fault_is_kept() -> None:
    report = await run("def run():\n    print('so far')\n    raise ValueError('no further')\n", {})
    assert report.output == "so far\n"


async def test_a_killed_worker_is_a_crash_and_the_next_run_is_fine() -> None:
    async def kill() -> None:
        for pid in workers():
            os.kill(pid, signal.SIGKILL)

    source = "from hitl import fetch\ndef run():\n    fetch()\n    return 1\n"
    report = await run(source, {}, grants={"fetch": kill})
    assert report.fault is not None
    assert report.fault.kind == "crash"
    assert "ended unexpectedly" in report.fault.message
    assert (await run("def run():\n    return 2\n", {})).result == 2


@pytest.mark.slow("stops a worker until its time is over")
async def test_a_stopped_worker_is_killed_from_outside() -> None:
    async def stop() -> None:
        await stopped(workers())

    source = "from hitl import fetch\ndef run():\n    fetch()\n    return 1\n"
    async with asyncio.timeout(40):
        report = await run(source, {}, grants={"fetch": stop}, limits=Limits(wall_seconds=0.5))
    assert report.fault == Fault("limit", "time: the tool takes longer than 0.5 s")
    for pid in workers():
        os.kill(pid, signal.SIGKILL)
    assert (await run("def run():\n    return 2\n", {})).result == 2


async def test_cancelling_a_busy_tool_returns_at_once_and_the_next_run_is_fine() -> None:
    started = asyncio.Event()

    async def start() -> None:
        started.set()

    source = "from hitl import fetch\ndef run():\n    fetch()\n    while True:\n        pass\n"
    task = asyncio.ensure_future(run(source, {}, grants={"fetch": start}))
    async with asyncio.timeout(30):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await run("def run():\n    return 2\n", {})).result == 2


@pytest.mark.slow("waits as long as a run waits for a worker")
async def test_when_all_workers_are_taken_a_run_is_told_to_come_back(settings: Settings) -> None:
    settings.TOOL_WORKERS = 2
    await close()
    taken, release = asyncio.Barrier(settings.TOOL_WORKERS + 1), asyncio.Event()

    async def wait() -> None:
        await taken.wait()
        await release.wait()

    source = "from hitl import fetch\ndef run():\n    fetch()\n    return 1\n"
    async with asyncio.timeout(40):
        others = [asyncio.ensure_future(run(source, {}, grants={"fetch": wait})) for _ in range(settings.TOOL_WORKERS)]
        await taken.wait()
        report = await run("def run():\n    return 1\n", {})
        release.set()
        assert all([(await other).ok for other in others])
    assert report.fault == Fault("busy", "all 2 sandbox workers (TOOL_WORKERS) are busy: try again in a moment")


@pytest.mark.parametrize("size, words", [(300, "300 bytes"), (64 * 1024, "64 KiB"), (3 * 512 * 1024, "1.5 MiB")])
def test_sizes_read_as_people_write_them(size: int, words: str) -> None:
    assert in_words(size) == words
