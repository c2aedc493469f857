"""The OS jail around a program: rlimits, no_new_privs, Landlock and seccomp. Standard library only.

Run by absolute path under `python -IS`, never imported by the web process:
    jail.py probe MONTY                 prints which walls hold on this machine
    jail.py exec WALLS MONTY ARGS...    puts up the named walls, all of them, and becomes MONTY
    jail.py run HOW PROGRAM ARGS...     puts up the walls but rlimits, and runs `main` of a program of ours behind them;
                                        HOW: `all`, or those that this machine `has`
"""

import ctypes
import os
import resource
import runpy
import struct
import sys
from collections.abc import Callable, Collection, Iterable

ADDRESS_SPACE = 1 << 30
LIFETIME_CPU_SECONDS = 13_000  # above what the runs of one worker may use together
OPEN_FILES = 32

ARCH = os.uname().machine
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
SYSCALLS = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10,
        "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17,
        "readv": 19, "writev": 20, "access": 21, "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35,
        "getpid": 39, "clone": 56, "execve": 59, "exit": 60, "sigaltstack": 131, "prctl": 157, "arch_prctl": 158,
        "gettid": 186, "futex": 202, "sched_getaffinity": 204, "getdents64": 217, "set_tid_address": 218,
        "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "tgkill": 234,
        "openat": 257, "newfstatat": 262, "ppoll": 271, "set_robust_list": 273, "prlimit64": 302, "getrandom": 318,
        "membarrier": 324, "statx": 332, "rseq": 334, "clone3": 435,
    },
    # from the kernel's generic table; not run yet
    "aarch64": {
        "read": 63, "write": 64, "close": 57, "fstat": 80, "lseek": 62, "mmap": 222, "mprotect": 226, "munmap": 215,
        "brk": 214, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "pread64": 67, "readv": 65,
        "writev": 66, "sched_yield": 124, "mremap": 216, "madvise": 233, "nanosleep": 101, "getpid": 172,
        "clone": 220, "execve": 221, "exit": 93, "sigaltstack": 132, "prctl": 167, "gettid": 178, "futex": 98,
        "sched_getaffinity": 123, "getdents64": 61, "set_tid_address": 96, "clock_gettime": 113, "clock_getres": 114,
        "clock_nanosleep": 115, "exit_group": 94, "tgkill": 131, "openat": 56, "newfstatat": 79, "ppoll": 73,
        "set_robust_list": 99, "prlimit64": 261, "getrandom": 278, "membarrier": 283, "statx": 291, "rseq": 293,
        "clone3": 435,
    },
}  # fmt: skip

# What a program in Python may do besides: bound its own time.
TIMERS = {"x86_64": {"alarm": 37, "setitimer": 38}, "aarch64": {"setitimer": 103}}
# How a program ends of which a wall was demanded that this machine has not.
NO_WALL = 70

libc = ctypes.CDLL(None, use_errno=True)


def rlimits() -> None:
    bounds = (
        (resource.RLIMIT_AS, ADDRESS_SPACE),
        (resource.RLIMIT_CPU, LIFETIME_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    )
    for name, bound in bounds:
        hard = resource.getrlimit(name)[1]
        value = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(name, (value, value))


def no_new_privs() -> None:
    if libc.prctl(38, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs is refused")


# Landlock: a ruleset that handles every kind of access, and rules that give back reading a few paths.

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, READ_FILE, READ_DIR = 1, 4, 8
FILE_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15}


def landlock(started: Collection[str] = (), read: Collection[str] = ()) -> None:
    """Deny every file but libraries, those to be started and those to read, all TCP, abstract sockets, signals."""
    abi = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        raise OSError(ctypes.get_errno(), "this kernel has no Landlock")
    rights = (1 << FILE_RIGHTS_BY_ABI.get(abi, 16)) - 1
    attributes = struct.pack("<Q", rights)
    attributes += struct.pack("<Q", 3) if abi >= 4 else b""  # TCP bind and connect
    attributes += struct.pack("<Q", 3) if abi >= 6 else b""  # abstract sockets and signals
    ruleset = libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "Landlock refuses a ruleset")
    triplet = f"{ARCH}-linux-gnu"
    for path in (*started, "/lib64", "/usr/lib64", f"/lib/{triplet}", f"/usr/lib/{triplet}"):
        _allow(ruleset, path, EXECUTE | READ_FILE)
    for path in (*read, "/etc/ld.so.cache", "/usr/share/zoneinfo"):
        _allow(ruleset, path, READ_FILE)
    if libc.syscall(RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "Landlock refuses to restrict")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    rights |= READ_DIR if os.path.isdir(path) else 0  # noqa: PTH112
    if libc.syscall(ADD_RULE, ruleset, 1, struct.pack("<Qi", rights, descriptor), 0):
        raise OSError(ctypes.get_errno(), f"Landlock refuses a rule for {path}")
    os.close(descriptor)


# seccomp: a classic BPF program over the call's number and arguments.

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, NO_SUCH_CALL, NOT_PERMITTED = 0x7FFF0000, 0x80000000, 0x00050000 | 38, 0x00050000 | 1
AT_NUMBER, AT_ARCH, AT_FIRST_ARGUMENT = 0, 4, 16
CLONE_THREAD = 0x10000


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _with_argument(number: int, test: int, value: int, otherwise: int) -> list[bytes]:
    """Allow the call only if its first argument passes the test."""
    return [
        _step(JUMP_EQUAL, number, 0, 4),
        _step(LOAD, AT_FIRST_ARGUMENT),
        _step(test, value, 0, 1),
        _step(RETURN, ALLOW),
        _step(RETURN, otherwise),
    ]


def _program(calls: dict[str, int], otherwise: int) -> list[bytes]:
    steps = [_step(LOAD, AT_ARCH), _step(JUMP_EQUAL, AUDIT_ARCH[ARCH], 1, 0), _step(RETURN, KILL)]
    steps.append(_step(LOAD, AT_NUMBER))
    if ARCH == "x86_64":  # the x32 table
        steps += [_step(JUMP_GREATER_EQUAL, 0x40000000, 0, 1), _step(RETURN, KILL)]
    # glibc falls back to clone, whose flags a filter can read
    steps += [_step(JUMP_EQUAL, calls.pop("clone3"), 0, 1), _step(RETURN, NO_SUCH_CALL)]
    steps += _with_argument(calls.pop("clone"), JUMP_SET, CLONE_THREAD, otherwise)
    # these two can name another process; the pid survives execve
    steps += _with_argument(calls.pop("prlimit64"), JUMP_EQUAL, 0, otherwise)
    steps += _with_argument(calls.pop("tgkill"), JUMP_EQUAL, os.getpid(), otherwise)
    for number in calls.values():
        steps += [_step(JUMP_EQUAL, number, 0, 1), _step(RETURN, ALLOW)]
    return [*steps, _step(RETURN, otherwise)]


def seccomp(*, python: bool = False) -> None:
    """Kill the process at any call outside the list; a program in `python`, which tries things, gets an error."""
    if ARCH not in AUDIT_ARCH:
        raise OSError(f"no list of system calls for {ARCH}")
    calls = dict(SYSCALLS[ARCH])
    if python:
        calls |= TIMERS[ARCH]
        del calls["execve"]
    steps = _program(calls, NOT_PERMITTED if python else KILL)
    code = b"".join(steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(buffer)), 16)
    if libc.prctl(22, 2, ctypes.byref(header), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp is refused")


def walls(monty: str) -> dict[str, Callable[[], None]]:
    """The walls in the only order that works: each needs what the next one forbids."""
    return {
        "rlimits": rlimits,
        "no_new_privs": no_new_privs,
        "landlock": lambda: landlock([monty]),
        "seccomp": seccomp,
    }


def probe(monty: str) -> None:
    """Put up what can be put up and print one line a wall; seccomp last, so its line also proves the write."""
    for name, raise_wall in walls(monty).items():
        try:
            raise_wall()
            line = f"{name}\n"
        except (OSError, ValueError) as error:
            line = f"{name} {error}\n"
        os.write(1, line.encode())
    os._exit(0)


def become(monty: str, names: Collection[str], arguments: list[str]) -> None:
    """Put up the named walls and become the worker; an error in any of them ends the process instead."""
    os.closerange(3, 256)
    os.chdir("/")
    table = walls(monty)
    silent = os.open(os.devnull, os.O_WRONLY)
    kernel_filter = [name for name in names if name == "seccomp"]
    for name in names:
        if name not in kernel_filter:
            table[name]()
    os.dup2(silent, 2)  # what the worker itself writes there a tool may have chosen
    os.close(silent)
    for name in kernel_filter:  # last, since it forbids the two lines above
        table[name]()
    os.execve(monty, [monty, *arguments], {})  # noqa: S606


def run(program: str, *, demanded: bool) -> None:
    """Run `main` of a program of ours behind the walls. It sets its own rlimits, and can read the modules of Python."""
    own = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]
    _put_up((no_new_privs, lambda: landlock(read=[program, *own])), demanded=demanded)
    loaded = runpy.run_path(program)
    # What it imports asks for more than what it does.
    _put_up((lambda: seccomp(python=True),), demanded=demanded)
    loaded["main"]()


def _put_up(those: Iterable[Callable[[], None]], *, demanded: bool) -> None:
    for raise_wall in those:
        trouble = "it needs Linux" if sys.platform != "linux" else ""
        try:
            if not trouble:
                raise_wall()
        except OSError as error:
            trouble = str(error)
        if trouble and demanded:
            os.write(2, f"{trouble}\n".encode())
            sys.exit(NO_WALL)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        how, program = sys.argv[2:4]
        sys.argv = sys.argv[3:]
        run(program, demanded=how == "all")
    elif sys.argv[1] == "probe":
        probe(sys.argv[2])
    else:
        become(sys.argv[3], sys.argv[2].split(","), sys.argv[4:])
