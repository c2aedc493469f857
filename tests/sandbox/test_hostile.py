"""Programs that mean harm: each ends in time, with a fault of the expected kind, and the next tool runs."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest

from hitlchat.sandbox import Limits, check, run
from tests.tables import each_row

MEGABYTE = 1024 * 1024
TIGHT = Limits(cpu_seconds=0.3, wall_seconds=5.0, memory_bytes=32 * MEGABYTE, host_calls=50, sleep_seconds=0.2)

SHARED = "x = (1,)\nfor _ in range(60): x = (x, x)\n"

# name: (body of run, the kinds of fault that are right; "value" where an answer is right)
BODIES: dict[str, tuple[str, str]] = {
    "endless loop": ("while True: pass", "limit"),
    "loop that catches everything": (
        "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
        "limit",
    ),
    "loop in finally": ("try:\n  1 / 0\nfinally:\n  while True: pass", "limit"),
    "loop in equality": ("class A:\n  def __eq__(self, o):\n    while True: pass\nreturn A() == A()", "limit"),
    "loop in repr": ("class A:\n  def __repr__(self):\n    while True: pass\nraise ValueError(str(A()))", "limit"),
    "an error made of an object": ("class A:\n  pass\nraise ValueError(A())", "error"),
    "loop in hash": ("class A:\n  def __hash__(self):\n    while True: pass\nreturn {A(): 1}", "limit"),
    "growing list": ("x = []\nwhile True: x.append('a' * 1000)", "limit"),
    "doubling list": ("x = [0]\nwhile True: x += x", "limit"),
    "growing dict": ("x = {}\nwhile True: x[len(x)] = str(len(x)) * 9", "limit"),
    "huge text": ("return 'a' * 10 ** 12", "limit"),
    "huge list": ("return [[0] * 1000] * 10 ** 9", "limit"),
    "huge range": ("return list(range(10 ** 10))", "limit"),
    "huge shift": ("return 1 << 10 ** 12", "limit"),
    "huge power": ("return 10 ** 10 ** 8", "limit"),
    "huge factorial": ("import math\nreturn math.factorial(10 ** 7)", "limit"),
    "huge width": ("return f'{1:{10 ** 10}}'", "limit"),
    "huge padding": ("return '1'.zfill(10 ** 12)", "limit"),
    "huge join": ("return ','.join(['a' * 1000000] * 10 ** 5)", "limit"),
    "huge product": ("import itertools\nreturn list(itertools.product(range(1000), repeat=5))", "limit"),
    "huge decimal": (
        "import decimal\ndecimal.getcontext().prec = 10 ** 8\nreturn decimal.Decimal(1) / 3",
        "limit error",
    ),
    "squaring for ever": ("x = 3\nwhile True: x = x * x", "limit"),
    "digits of a huge number": ("return str(1 << 8 * 10 ** 7)", "error limit"),
    "eager generator": ("return next(x for x in range(10 ** 9) if x > 10)", "limit"),
    "deep recursion": ("def f(n): return f(n + 1)\nreturn f(0)", "limit"),
    "recursion through sorted": ("def f(n): return sorted([2, 1], key=f)\nreturn f(0)", "limit"),
    "deep value": ("x = []\nfor _ in range(10 ** 5): x = [x]\nreturn x", "limit error crash"),
    "deep comparison": ("x = []\ny = []\nfor _ in range(10 ** 4):\n  x = [x]\n  y = [y]\nreturn x == y", "limit"),
    "deep json": ("import json\nreturn json.loads('[' * 10 ** 5)", "limit error"),
    "regex backtracking": ("import re\nreturn bool(re.search('(a+)+$', 'a' * 40 + 'b'))", "value"),
    "regex back-reference": (
        "import re\nreturn bool(re.search(r'(a*)*\\\\1$', 'a' * 5000 + 'b'))",
        "value error limit",
    ),
    "regex compile bomb": ("import re\nreturn re.compile('((a{1,1000}){1,1000}){1,1000}')", "error limit"),
    "result with ten million values": ("return list(range(10 ** 6))", "limit"),
    "message of megabytes": ("raise ValueError('x' * 9_000_000)", "error"),
    "endless output": ("while True: print('x' * 1000)", "limit"),
    "output without line ends": ("while True: print('x', end='')", "limit"),
    "sleep for days": ("import time\ntime.sleep(10 ** 6)", "limit"),
    "sleep in small pieces": ("import time\nwhile True: time.sleep(0.05)", "limit"),
    "sleep of nothing": ("import time\nwhile True: time.sleep(0)", "limit"),
    "sleep backwards": ("import time\ntime.sleep(-1)", "error"),
    "sleep of no number": ("import time\ntime.sleep(float('nan'))", "error"),
    "subclasses": ("return ().__class__.__base__.__subclasses__()", "error"),
    "globals of a function": ("return run.__globals__", "error"),
    "code of a function": ("return run.__code__", "error"),
    "builtins": ("return __builtins__", "error"),
    "frames": ("try:\n  1 / 0\nexcept Exception as e:\n  return e.__traceback__.tb_frame", "error"),
    "format attributes": ("return '{0.__class__.__mro__}'.format(1)", "error value"),
    "wide dunder": ("return ().__\uff43lass__.__base__", "error syntax"),
    "eval": ('return eval(\'__import__("os").system("id")\')', "error"),
    "exec": ("exec('import subprocess')", "error"),
    "open a file": ("return open('/etc/passwd').read()", "denied"),
    "write a file": ("open('/tmp/owned', 'w').write('x')", "denied"),
    "path": ("import pathlib\nreturn pathlib.Path('/etc/passwd').read_text()", "denied"),
    "list a folder": ("import pathlib\nreturn [str(p) for p in pathlib.Path('/').iterdir()]", "denied"),
    "environment": ("import os\nreturn dict(os.environ)", "denied"),
    "one variable": ("import os\nreturn os.getenv('SECRET_KEY')", "denied"),
    "shell": ("import os\nreturn os.system('id')", "error"),
    "random bytes": ("import os\nreturn os.urandom(16).hex()", "denied"),
    "calls without end": ("from hitl import fetch\nwhile True: fetch()", "limit"),
    "calls that are caught": (
        "from hitl import fetch\nwhile True:\n  try: fetch()\n  except BaseException: pass",
        "limit",
    ),
    "recursion between host and tool": ("from hitl import fetch\ndef f(): return f() + fetch()\nreturn f()", "limit"),
    "a name the module does not have": ("import hitl\nreturn hitl.__dict__", "error"),
    "replace a granted function": ("import hitl\nhitl.fetch = lambda: 1\nreturn hitl.fetch()", "error"),
    "replace isinstance": ("global isinstance\nisinstance = lambda *a: True\nreturn [run]", "value error syntax"),
    "forged limit": ("raise TimeoutError('feed time limit exceeded')", "limit error"),
    "forged denial": ("raise ImportError(\"cannot import name 'store' from 'hitl'\")", "denied"),
    "exit": ("raise SystemExit(0)", "error"),
    "interrupt": ("raise KeyboardInterrupt", "error"),
    # The interpreter keeps the parts of a value that are the same; whoever reads or hashes it meets each of them anew.
    "a result that takes for ever to hash": (f"{SHARED}return {{x: 1}}", "limit"),
    "a set that takes for ever to hash": (f"{SHARED}return {{x}}", "limit"),
    "a key deep inside that takes for ever to hash": (f"{SHARED}return [1, {{'a': [{{x: 1}}]}}]", "limit"),
    "an argument that takes for ever to hash": (f"{SHARED}from hitl import fetch\nfetch({{x: 1}})", "limit"),
    "a keyword that takes for ever to hash": (f"{SHARED}from hitl import fetch\nfetch(a={{x}})", "limit"),
    "a helper's argument that takes for ever to hash": (f"{SHARED}import statistics\nstatistics.mean({{x}})", "limit"),
    "a length of sleep that takes for ever to hash": (f"{SHARED}import time\ntime.sleep({{x: 1}})", "limit error"),
    "a result that takes for ever to read": (f"{SHARED}return x", "limit"),
    "an argument that takes for ever to read": (f"{SHARED}from hitl import fetch\nfetch(x)", "error"),
    "an error that takes for ever to print": (f"{SHARED}raise ValueError(x)", "limit error"),
    "output that takes for ever to print": (f"{SHARED}print(x)", "limit"),
    "surrogates": ("return '\\\\ud800'", "value"),
}
SOURCES: dict[str, tuple[str, str]] = {
    "loop while loading": ("while True: pass", "limit"),
    "many parentheses": ("(" * 20_000, "syntax"),
    "many additions": ("x = " + "+".join(["a"] * 20_000), "syntax limit error"),
    "many attributes": ("x = a" + ".a" * 20_000, "syntax limit error"),
    "many brackets": ("x = " + "[" * 5_000 + "]" * 5_000, "syntax limit error"),
    "many nested blocks": ("".join(" " * n + "if 1:\n" for n in range(300)), "syntax limit error"),
    "many nested finally": ("".join(" " * n + "try:\n" for n in range(200)), "syntax limit error"),
    "many lambdas": ("x = " + "lambda: " * 8_000 + "1", "syntax limit error"),
    "a number of fifty thousand digits": ("x = " + "9" * 50_000 + "\ndef run(): return 1", "value syntax error"),
    "many cases": (
        "match 1:\n" + "".join(f" case {n}: pass\n" for n in range(3_000)) + "def run(): return 1",
        "value syntax",
    ),
    "null bytes": ("def run():\x00 return 1", "syntax"),
    "nothing but signs": ("\u202e\u2066\u200b" * 100, "syntax"),
    "entry that is no function": ("run = 1", "error"),
    "entry that is a class": ("class run:\n  pass", "error"),
    "entry that is a coroutine in secret": ("async def f(): return 1\ndef run(): return f()", "error"),
    "await in the name only": ("'''\nasync def run\n'''\ndef run(): return 1", "error"),
    "raise while loading": ("raise ValueError('no')", "error"),
    **{f"import {name}": (f"import {name}", "error") for name in (
        "socket", "subprocess", "ctypes", "threading", "multiprocessing", "gc", "pickle", "mmap", "signal",
        "importlib", "builtins", "inspect", "django", "hitlchat", "pydantic_monty",
    )},
}  # fmt: skip


def _function(body: str) -> str:
    return "def run():\n" + "".join(f"  {line}\n" for line in body.splitlines())


PROGRAMS = {name: (_function(body), kinds) for name, (body, kinds) in BODIES.items()} | SOURCES


# Those that end by themselves, with a fault or an answer.
BRIEF = [name for name, (_, kinds) in PROGRAMS.items() if "limit" not in kinds]
# One for each limit.
FIRST = ("endless loop", "growing list", "deep recursion", "calls without end", "endless output", "sleep for days")
LASTING = [name for name in PROGRAMS if name not in (*BRIEF, *FIRST)]
SLOW = pytest.mark.slow("uses up what it may")


@each_row("name", BRIEF)
async def test_a_hostile_program_ends_as_it_should_and_harms_nobody(name: str) -> None:
    await ends_as_it_should(name)


@pytest.mark.parametrize("name", [*FIRST, *(pytest.param(name, marks=SLOW) for name in LASTING)])
async def test_a_hostile_program_that_would_take_more_ends_too(name: str) -> None:
    await ends_as_it_should(name)


async def ends_as_it_should(name: str) -> None:
    source, kinds = PROGRAMS[name]
    calls: list[int] = []

    async def fetch() -> int:
        calls.append(1)
        return 1

    grants: dict[str, Any] = {"fetch": fetch}
    # These use up whatever they may.
    limits = replace(TIGHT, cpu_seconds=0.1) if "for ever" in name else TIGHT
    async with asyncio.timeout(TIGHT.wall_seconds + 10):
        report = await run(source, {}, grants=grants, offered=("fetch", "store.get"), powers=["sleep"], limits=limits)
    assert (report.fault.kind if report.fault else "value") in kinds.split(), report
    assert len(calls) <= TIGHT.host_calls
    assert len(report.output) < 70_000
    assert sys.prefix not in str(report.fault)
    assert (await run("def run():\n    return 'fine'\n", {})).result == "fine"


@each_row("name", SOURCES)
async def test_checking_a_hostile_program_ends_too(name: str) -> None:
    async with asyncio.timeout(40):
        problems = await check(SOURCES[name][0], limits=TIGHT)
    assert problems or SOURCES[name][1].startswith("value") or "await" in name or "entry" in name
