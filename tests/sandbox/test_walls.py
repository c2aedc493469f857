"""The second wall: what the kernel holds around a worker."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings
from pydantic_monty._binary import find_monty_binary

from hitlchat.sandbox import check, run, walls
from hitlchat.sandbox.walls import JAIL, OS_WALLS, Walls
from tests.sandbox.test_limits import workers

jailed = pytest.mark.skipif(not walls().jailed, reason=f"no jail on this machine: {walls().reason}")


async def proc_file(name: str) -> str:
    """A file of /proc about a worker, read while a tool runs in it."""
    read: list[str] = []

    async def look() -> None:
        read.append(await asyncio.to_thread(Path(f"/proc/{workers()[0]}/{name}").read_text))

    assert (await run("from hitl import fetch\ndef run():\n    fetch()\n", {}, grants={"fetch": look})).ok
    return read[0]


def test_the_walls_of_this_machine_are_found() -> None:
    found = walls()
    assert found.interpreter
    assert (found.reason == "") == found.jailed


@jailed
async def test_a_worker_has_no_new_privileges_and_a_system_call_filter() -> None:
    status = dict(line.split(":\t") for line in (await proc_file("status")).splitlines())
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@jailed
async def test_a_worker_has_limits_of_its_own() -> None:
    limits = {line[:26].strip(): line[26:47].strip() for line in (await proc_file("limits")).splitlines()}
    assert limits["Max file size"] == "0"
    assert limits["Max core file size"] == "0"
    assert int(limits["Max address space"]) <= 1 << 30
    assert int(limits["Max open files"]) <= 32


async def test_a_worker_inherits_no_environment_folder_or_files(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    async def look() -> None:
        worker = Path(f"/proc/{workers()[0]}")
        seen.append((worker / "cwd").readlink())
        seen.append(sorted(int(entry.name) for entry in (worker / "fd").iterdir())[:3])
        seen.append({str(entry.readlink()) for entry in (worker / "fd").iterdir() if int(entry.name) > 2})

    monkeypatch.setenv("SECRET_KEY", "hunter2")
    assert "hunter2" not in await proc_file("environ")
    assert (await run("from hitl import fetch\ndef run():\n    fetch()\n", {}, grants={"fetch": look})).ok
    assert seen[:2] == [Path("/"), [0, 1, 2]]
    assert not any(str(link).startswith("/") for link in seen[2])  # type: ignore[attr-defined]


# What is tried from inside the same walls, by an interpreter that could do anything.
PROBES = {
    "read a file": "open('/etc/passwd').read()",
    "read the source": f"open({str(JAIL)!r}).read()",
    "list a folder": "os.listdir('/')",
    "write a file": "open('/tmp/x', 'w')",
    "read the memory of the parent": "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "read the environment of the parent": "open(f'/proc/{os.getppid()}/environ', 'rb')",
    "connect": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "open a local socket": "socket.socket(socket.AF_UNIX)",
    "fork": "os.fork()",
    "start a shell": "os.execv('/bin/sh', ['sh', '-c', 'exit 0'])",
    "signal the parent": "os.kill(os.getppid(), 0)",
    "limit the parent": "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (64, 64))",
    "raise a limit": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "take much memory": "bytearray(2 << 30)",
    "trace": "check(libc.ptrace(0, 0, 0, 0))",
    "mount": "check(libc.mount(b'a', b'/', b'tmpfs', 0, 0))",
    "leave the namespace": "check(libc.unshare(0x10000000))",
    "change the user": "os.setuid(1)",
    "change a mode": "os.chmod('/tmp', 0o777)",
    "make a pipe of its own": "os.mkfifo('/tmp/x')",
    "io_uring": "check(libc.syscall(425, 1, 0))",
    "bpf": "check(libc.syscall(321, 0, 0, 0))",
    "userfaultfd": "check(libc.syscall(323, 0))",
    "memfd": "os.memfd_create('x')",
    "keyctl": "check(libc.syscall(250, 0, 0, 0))",
}
PROBE = """
import ctypes, os, resource, runpy, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(answer):
    if answer < 0: raise OSError(ctypes.get_errno(), 'refused')
jail = runpy.run_path(sys.argv[1])
os.closerange(3, 256)
for attempt in sys.argv[3:]:
    if not os.fork():
        for wall in jail['walls'](sys.argv[2]).values(): wall()
        os.write(1, b'inside ')
        try:
            exec(attempt)
        except BaseException as error:
            os.write(1, type(error).__name__.encode())
        else:
            os.write(1, b'DONE')
        os._exit(0)
    os.wait()
    os.write(1, b'\\n')
"""


@jailed
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
def test_full_python_in_the_same_jail_can_do_nothing_of_what_is_tried() -> None:
    command = [sys.executable, "-IS", "-c", PROBE, str(JAIL), find_monty_binary(), *PROBES.values()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    endings = dict(zip(PROBES, done.stdout.splitlines(), strict=True))
    assert [attempt for attempt, ending in endings.items() if not ending.startswith("inside ")] == []
    assert [attempt for attempt, ending in endings.items() if "DONE" in ending] == []


@jailed
def test_a_wall_that_cannot_be_put_up_ends_the_worker_before_it_starts() -> None:
    command = [sys.executable, "-IS", str(JAIL), "exec", "rlimits,moat", find_monty_binary(), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode != 0
    assert done.stdout == ""


# In a process of its own, since the pool of this one runs already.
WITHOUT_JAIL = """
import asyncio, json, sys
from django.conf import settings
from hitlchat.sandbox import run, walls
sys.executable = '/nowhere/python'  # what starts the jail
async def asked(require):
    settings.TOOLS_REQUIRE_JAIL = require
    return await run('def run(): return 1', {})
async def main():
    strict, loose, again = await asked(True), await asked(False), await asked(True)
    print(json.dumps([strict.fault and strict.fault.kind, strict.fault.message, loose.result, again.fault.kind]))
asyncio.run(main())
"""


def in_a_process(code: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=Path.cwd())


def test_where_the_jail_is_required_and_missing_nothing_runs() -> None:
    done = in_a_process(WITHOUT_JAIL)
    assert (
        done.stderr
        == "tools run with a wall missing: "
        + "; ".join(f"{wall}: the probe did not run (FileNotFoundError)" for wall in OS_WALLS)
        + "\n"
    )
    kind, message, loose, again = json.loads(done.stdout)
    assert (kind, loose, again) == ("unavailable", 1, "unavailable")
    assert message.startswith("every wall is required (TOOLS_REQUIRE_JAIL), and this machine lacks some: rlimits: ")


@pytest.mark.parametrize("wall", OS_WALLS)
def test_with_any_wall_missing_the_jail_is_not_whole(wall: str) -> None:
    found = Walls({wall: "refused"})
    assert (found.jailed, found.reason) == (False, f"{wall}: refused")
    assert found.names == tuple(name for name in OS_WALLS if name != wall)


# In a process to which the kernel refuses one of the two, as the engines of some containers do.
REFUSING = """
import asyncio, ctypes, json, os, struct, sys
from pathlib import Path
step = lambda code, value, yes=0, no=0: struct.pack('<HBBI', code, yes, no, value)
refused = 0x00050000 | 1
program = {
    'seccomp': [step(0x15, 157, 0, 3), step(0x20, 16), step(0x15, 22, 0, 1), step(0x06, refused),
                step(0x20, 0), step(0x15, 317, 0, 1), step(0x06, refused)],
    'landlock': [step(0x15, 444, 0, 1), step(0x06, refused)],
}[sys.argv[1]]
code = b''.join([step(0x20, 0), *program, step(0x06, 0x7FFF0000)])
kept = ctypes.create_string_buffer(code, len(code))
header = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', len(code) // 8, ctypes.addressof(kept)), 16)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(header), 0, 0) == 0
from django.conf import settings
from hitlchat.sandbox import pool, run, status, walls
from tests.sandbox.test_limits import workers
async def main():
    said = {}
    async def look():
        launcher = pool._pool._launcher.read_text()
        said['put up'] = launcher.partition(' exec ')[2].partition(' exec ')[2].split()[0].split(',')
        said['address space'] = '1073741824' in Path(f'/proc/{workers()[0]}/limits').read_text()
    tool = 'from hitl import fetch\\ndef run():\\n    fetch()\\n'
    said['runs'] = (await run(tool, {}, grants={'fetch': look})).ok
    said['missing'] = [wall.name for wall in status().walls if wall.missing]
    said['why'] = status().missing
    settings.TOOLS_REQUIRE_JAIL = True
    said['strictly'] = [(await run(tool, {}, grants={'fetch': look})).fault.kind, status().can_run]
    print(json.dumps(said))
asyncio.run(main())
"""


@jailed
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("wall", ["seccomp", pytest.param("landlock", marks=pytest.mark.slow("like the other wall"))])
def test_one_missing_wall_leaves_the_others_up_and_is_not_enough_where_all_are_required(wall: str) -> None:
    command = [sys.executable, "-c", REFUSING, wall]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=Path.cwd())
    said = json.loads(done.stdout)
    assert (said["runs"], said["address space"], said["missing"]) == (True, True, [wall])
    assert said["put up"] == [name for name in OS_WALLS if name != wall]
    assert said["why"].startswith(f"{wall}: ")
    assert said["strictly"] == ["unavailable", False]


FORGETFUL = """
import asyncio
from hitlchat.sandbox import run
print(asyncio.run(run('def run(): return 1', {})).result)
"""


@pytest.mark.slow("starts three processes, and hopes for a race")
def test_a_process_that_forgets_to_close_ends_cleanly() -> None:
    for _ in range(3):
        done = in_a_process(FORGETFUL)
        assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


HASTY = """
import asyncio, threading
from hitlchat.sandbox import close, run
async def main():
    asyncio.ensure_future(run('def run(): return 1', {}))
    while not any(each.name == 'sandbox-start' for each in threading.enumerate()):
        await asyncio.sleep(0.01)
    await close()
asyncio.run(main())
"""


def test_a_process_that_ends_while_a_keeper_starts_takes_it_along_without_a_word() -> None:
    done = in_a_process(HASTY)
    assert (done.returncode, done.stderr) == (0, "")


FORKED = """
import asyncio, os, sys
from hitlchat.sandbox import run
def once(): return asyncio.run(run('def run(): return 1', {}))
assert once().ok
pid = os.fork()
if pid == 0:
    os._exit(0 if once().fault.kind == 'unavailable' else 1)
print(os.waitpid(pid, 0)[1], once().result)
"""


def test_a_fork_of_the_process_says_that_it_has_no_sandbox() -> None:
    assert in_a_process(FORKED).stdout == "0 1\n"


@override_settings(TOOLS_REQUIRE_JAIL=True)
async def test_where_the_setting_requires_the_jail_it_is_asked_for() -> None:
    report = await run("def run():\n    return 1\n", {})
    assert report.ok == walls().jailed
    assert (await check("def run(): ...\n") == []) == walls().jailed
