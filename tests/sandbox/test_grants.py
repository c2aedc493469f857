"""The module `hitl`: what is granted works, what is not is named, and nothing of ours leaks."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from hitlchat.sandbox import Fault, HostFunction, Limits, Report, run
from hitlchat.sandbox.engine import IN_HAND
from tests.tables import each_row

KNOWN = ("fetch", "now", "store.get", "store.set", "store.delete", "store.keys")


async def fetch(url: str, method: str = "GET") -> dict[str, Any]:
    return {"status": 200, "text": f"{method} {url}"}


def store() -> dict[str, HostFunction]:
    kept: dict[str, Any] = {}

    async def get(key: str, default: Any = None) -> Any:
        return kept.get(key, default)

    async def put(key: str, value: Any) -> None:
        kept[key] = value

    async def keys(prefix: str = "") -> list[str]:
        return [key for key in kept if key.startswith(prefix)]

    return {"store.get": get, "store.set": put, "store.keys": keys}


def raising(error: BaseException) -> dict[str, HostFunction]:
    async def fails() -> None:
        raise error

    return {"fetch": fails}


async def ask(source: str, grants: dict[str, HostFunction], **more: Any) -> Report:
    return await run(source, {}, grants=grants, offered=KNOWN, **more)


@each_row(
    "source",
    [
        "from hitl import fetch\ndef run():\n    return fetch('u', method='PUT')['text']\n",
        "import hitl\ndef run():\n    return hitl.fetch('u', 'PUT')['text']\n",
        "def run():\n    from hitl import fetch as f\n    return f('u', 'PUT')['text']\n",
        "from hitl import fetch\nasync def run():\n    return (await fetch('u', 'PUT'))['text']\n",
        "from hitl import fetch\nasync def get():\n    return await fetch('u', 'PUT')\n"
        "async def run():\n    return (await get())['text']\n",
    ],
)
async def test_a_granted_function_is_imported_and_called(source: str) -> None:
    assert (await ask(source, {"fetch": fetch})).result == "PUT u"


async def test_the_store_is_a_module_with_functions() -> None:
    source = (
        "from hitl import store\ndef run():\n    store.set('a/1', {'n': 1})\n    store.set('b', 2)\n"
        "    return [store.get('a/1'), store.get('c'), store.get('c', default=3), store.keys(prefix='a/')]\n"
    )
    assert (await ask(source, store())).result == [{"n": 1}, None, 3, ["a/1"]]


async def test_gathered_calls_run_at_the_same_time() -> None:
    barrier = asyncio.Barrier(3)

    async def meet(n: int) -> int:
        await barrier.wait()
        return n

    head = "import asyncio\nfrom hitl import fetch\nasync def run():\n"
    source = f"{head}    return await asyncio.gather(*[fetch(n) for n in range(3)])\n"
    async with asyncio.timeout(30):
        assert (await ask(source, {"fetch": meet})).result == [0, 1, 2]


async def test_of_many_gathered_calls_only_some_are_in_hand_at_a_time() -> None:
    working, most, full = 0, 0, asyncio.Event()

    async def work(n: int) -> list[list[int]]:
        nonlocal working, most
        working += 1
        most = max(most, working)
        if working == IN_HAND:
            # Time for another one to come, if one more may.
            for _ in range(100):
                await asyncio.sleep(0)
            full.set()
        await full.wait()
        answer: list[list[int]] = [[]] * 2_000
        working -= 1
        return [*answer, [n]]

    head = "import asyncio\nfrom hitl import fetch\nasync def run():\n"
    body = (
        "    found = await asyncio.gather(*[fetch(n) for n in range(30)])\n    return [each[-1][0] for each in found]\n"
    )
    async with asyncio.timeout(60):
        assert (await ask(head + body, {"fetch": work})).result == list(range(30))
    assert most == IN_HAND


async def test_a_large_answer_is_checked_beside_the_loop() -> None:
    loops: set[bool] = set()

    class Watched(list[Any]):
        def __iter__(self) -> Any:
            loops.add(asyncio._get_running_loop() is not None)
            return super().__iter__()

    async def large() -> Any:
        # The part before it is more than is checked at once.
        return ["x" * 100_000, Watched([1])]

    report = await ask("from hitl import fetch\ndef run():\n    return len(fetch())\n", {"fetch": large})
    assert report.result == 2
    assert False in loops


@each_row(
    "source, line",
    [
        ("from hitl import store\ndef run():\n    return store.get('a')\n", 1),
        ("import hitl\ndef run():\n    return hitl.store.get('a')\n", 3),
        ("import hitl.store\n", 1),
        ("from hitl.store import get\n", 1),
        ("def run():\n    from hitl import store\n", 2),
    ],
)
async def test_what_exists_but_is_not_granted_says_which_capability_to_switch_on(source: str, line: int) -> None:
    message = "store is not granted to this tool: switch on the capability 'store'"
    assert (await ask(source, {"fetch": fetch})).fault == Fault("denied", message, line)


async def test_a_part_that_is_not_granted_is_named_in_full() -> None:
    report = await ask("from hitl import store\ndef run():\n    store.delete('a')\n", store())
    message = "store.delete is not granted to this tool: switch on the capability 'store'"
    assert report.fault == Fault("denied", message, 3)


async def test_a_tool_can_do_without_what_is_not_granted() -> None:
    head = "try:\n    from hitl import store\nexcept ImportError:\n    store = None\n"
    source = f"{head}def run():\n    return store is None\n"
    assert (await ask(source, {})).result is True


@each_row(
    "source, message",
    [
        ("from hitl import secrets\n", "ImportError: cannot import name 'secrets' from 'hitl'"),
        ("import hitl\nhitl.secrets\n", "AttributeError: module 'hitl' has no attribute 'secrets'"),
        ("from hitl import store\nstore.drop\n", "AttributeError: module 'hitl.store' has no attribute 'drop'"),
    ],
)
async def test_what_does_not_exist_is_an_ordinary_error(source: str, message: str) -> None:
    fault = (await ask(source, store())).fault
    assert fault is not None
    assert (fault.kind, fault.message) == ("error", message)


@each_row("use", ["fetch('u')", "fetch"])
async def test_a_forgotten_import_is_pointed_out(use: str) -> None:
    report = await ask(f"def run():\n    return {use}\n", {"fetch": fetch})
    message = "NameError: name 'fetch' is not defined (write: from hitl import fetch)"
    assert report.fault == Fault("error", message, 2)


async def test_host_calls_belong_inside_functions() -> None:
    report = await ask("from hitl import fetch\n# ü€\nx = fetch('u')\n", {"fetch": fetch})
    assert report.fault == Fault("error", "call fetch inside a function, not while the module loads", 3)


@each_row(
    "error, message",
    [
        (ValueError("no such order"), "ValueError: no such order"),
        (TypeError("wrong"), "TypeError: wrong"),
        (KeyError("order 7"), "KeyError: order 7"),
        (TimeoutError("too slow"), "TimeoutError: too slow"),
        (OSError("/srv/secret.db is locked"), "RuntimeError: the host function failed"),
        (RuntimeError("password=hunter2"), "RuntimeError: the host function failed"),
        (UnicodeDecodeError("utf-8", b"secret", 0, 1, "bad"), "RuntimeError: the host function failed"),
        (ConnectionRefusedError("10.0.0.3"), "RuntimeError: the host function failed"),
        (asyncio.CancelledError(), "RuntimeError: the host function failed"),
    ],
)
async def test_only_five_kinds_of_error_reach_the_tool_with_their_words(error: BaseException, message: str) -> None:
    report = await ask("from hitl import fetch\ndef run():\n    return fetch()\n", raising(error))
    assert report.fault == Fault("error", message, 3)


async def test_a_host_function_that_fails_is_in_the_log_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    await ask("from hitl import fetch\ndef run():\n    return fetch()\n", raising(OSError("disk full")))
    assert "disk full" in caplog.text


async def test_a_permission_error_of_the_host_is_a_denial() -> None:
    source = "from hitl import fetch\ndef run():\n    return fetch()\n"
    report = await ask(source, raising(PermissionError("evil.example is not among the hosts")))
    assert report.fault == Fault("denied", "evil.example is not among the hosts", 3)


async def test_a_tool_can_catch_what_the_host_tells_it() -> None:
    body = "    try:\n        fetch()\n    except TimeoutError as e:\n        return str(e)\n"
    source = f"from hitl import fetch\ndef run():\n{body}"
    assert (await ask(source, raising(TimeoutError("too slow")))).result == "too slow"


@each_row(
    "call, message",
    [
        ("fetch()", "TypeError: fetch(): missing a required argument: 'url'"),
        ("fetch('u', colour=1)", "TypeError: fetch(): got an unexpected keyword argument 'colour'"),
        ("fetch(b'u')", "TypeError: the arguments of fetch at [0]: JSON cannot hold a value of type bytes"),
        (
            "fetch(fetch, len)",
            "TypeError: the arguments of fetch at [1]: JSON cannot hold a value of type function len",
        ),
        ("fetch(float('nan'))", "TypeError: the arguments of fetch at [0]: JSON cannot hold nan"),
    ],
)
async def test_arguments_that_do_not_fit_are_the_tools_mistake(call: str, message: str) -> None:
    report = await ask(f"from hitl import fetch\ndef run():\n    return {call}\n", {"fetch": fetch})
    assert report.fault == Fault("error", message, 3)


async def test_host_functions_receive_only_json() -> None:
    received: list[object] = []

    async def keep(value: object) -> None:
        received.append(value)

    source = "from decimal import Decimal\nfrom hitl import fetch\ndef run():\n    fetch((Decimal('1.0'), {2, 1}))\n"
    assert (await ask(source, {"fetch": keep})).ok
    assert received == [["1.0", [1, 2]]]


async def test_what_a_host_function_must_not_return_stays_outside() -> None:
    async def leak() -> object:
        return {"value": object()}

    report = await ask("from hitl import fetch\ndef run():\n    return fetch()\n", {"fetch": leak})
    message = "ValueError: the result of fetch at ['value']: JSON cannot hold a value of type object"
    assert report.fault == Fault("error", message, 3)


@each_row(
    "expression",
    ["datetime.datetime.now()", "datetime.date.today()", "time.time()", "time.monotonic()", "time.perf_counter()"],
)
async def test_the_clock_is_off_until_granted(expression: str) -> None:
    source = f"import datetime, time\ndef run():\n    return str({expression})\n"
    message = "the clock is not granted to this tool: switch on the capability 'now' and use: from hitl import now"
    assert (await ask(source, {})).fault == Fault("denied", message, 3)


async def test_the_granted_clock_is_the_hosts() -> None:
    async def now(timezone: str = "UTC") -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC)

    source = "import datetime\nfrom hitl import now\ndef run():\n    datetime.datetime.now()\n    return now().year\n"
    assert (await ask(source, {"now": now}, powers=["now"])).result == 2026


async def test_chance_needs_a_seed() -> None:
    report = await ask("import random\ndef run():\n    return random.random()\n", {})
    message = (
        "chance is not granted to this tool: switch on the capability 'random', or give random a seed, "
        "as in random.seed(1)"
    )
    assert report.fault == Fault("denied", message, 3)
    assert (
        await ask("import random\ndef run():\n    random.seed(1)\n    return random.random() < 1\n", {})
    ).result is True


@each_row(
    "source",
    ["import time\ndef run():\n    time.sleep(4)\n", "import asyncio\nasync def run():\n    await asyncio.sleep(4)\n"],
)
async def test_a_sleeping_tool_is_let_sleep_by_the_host(source: str) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    assert (await ask(source, {}, sleep=sleep, powers=["sleep"])).ok
    assert slept == [4.0]


async def test_cancelling_a_run_cancels_the_host_work() -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    for source in ("def run():\n    fetch()\n", "async def run():\n    await fetch()\n"):
        started.clear()
        ended.clear()
        async with asyncio.timeout(30):
            task = asyncio.ensure_future(ask(f"from hitl import fetch\n{source}", {"fetch": wait}))
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await ended.wait()
        assert (await ask("def run():\n    return 1\n", {})).ok


async def test_the_wall_clock_cancels_the_host_work() -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    source = "import asyncio\nfrom hitl import fetch\nasync def run():\n    await asyncio.gather(fetch(), fetch())\n"
    async with asyncio.timeout(30):
        report = await ask(source, {"fetch": wait}, limits=Limits(wall_seconds=0.2))
        await ended.wait()
    assert report.fault == Fault("limit", "time: the tool takes longer than 0.2 s")
