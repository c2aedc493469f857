"""What a tool gives back, and what it is told when it does not work."""

import asyncio
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from hitlchat.sandbox import Fault, Limits, Report, close, run
from tests.tables import each_row


async def value_of(expression: str, **arguments: Any) -> Report:
    names = ", ".join(arguments)
    return await run(f"{IMPORTS}\ndef run({names}):\n    return {expression}\n", arguments)


NO_INHERITANCE = (
    "tools cannot use class inheritance and metaclasses "
    "(raise ValueError with a clear message; use plain classes, dataclasses or dicts)"
)
IMPORTS = "from dataclasses import dataclass; from decimal import Decimal; import datetime, re, math, collections"


async def test_a_tool_returns_its_result_and_what_it_printed() -> None:
    report = await run("def run(a, b):\n    print('adding', a)\n    return {'sum': a + b}\n", {"a": 1, "b": 2})
    assert report.ok
    assert (report.result, report.output, report.fault) == ({"sum": 3}, "adding 1\n", None)
    assert report.duration_ms > 0


async def test_nothing_a_tool_prints_reaches_the_server(capfd: pytest.CaptureFixture[str]) -> None:
    await run("import sys\nprint('outside')\ndef run():\n    print('inside')\n    print('e', file=sys.stderr)\n", {})
    assert capfd.readouterr() == ("", "")


async def test_dates_and_decimals_arrive_as_such() -> None:
    source = "def run(d, m, t):\n    return [d.year, str(m + 1), t.hour, d, m, t]\n"
    arguments = {"d": date(2026, 1, 2), "m": Decimal("1.50"), "t": datetime(2026, 1, 2, 3, tzinfo=UTC)}
    report = await run(source, arguments)
    assert report.result == [2026, "2.50", 3, "2026-01-02", "1.50", "2026-01-02T03:00:00+00:00"]


async def test_another_function_can_be_the_entry() -> None:
    source = "async def run(a):\n    return 1\ndef preview(a):\n    return f'would use {a}'\n"
    assert (await run(source, {"a": 1}, entry="preview")).result == "would use 1"


async def test_an_entry_that_is_no_name_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="is not a function name"):
        await run("", {}, entry="run(); x")


async def test_two_runs_share_nothing() -> None:
    assert (await run("secret = 1\ndef run():\n    return secret\n", {})).ok
    report = await run("def run():\n    return secret\n", {})
    assert report.fault == Fault("error", "NameError: name 'secret' is not defined", 2)


@each_row(
    "expression, result",
    [
        ("None", None),
        ("[True, 1, -2.5, 'ü']", [True, 1, -2.5, "ü"]),
        ("(1, (2,))", [1, [2]]),
        ("{3, 1, 2}", [1, 2, 3]),
        ("frozenset(['b', 'a'])", ["a", "b"]),
        ("{1, 'a'}", ["a", 1]),
        ("Decimal('1.10')", "1.10"),
        ("datetime.date(2026, 1, 2)", "2026-01-02"),
        ("datetime.datetime(2026, 1, 2, 3, 4)", "2026-01-02T03:04:00"),
        ("collections.Counter('aab')", {"a": 2, "b": 1}),
        ("10 ** 30", 10**30),
        ("['[...]', '<b>bold</b>', 'f(x)', 'wait...', '{...}']", ["[...]", "<b>bold</b>", "f(x)", "wait...", "{...}"]),
        ("'<function run at 0x1>'", "<function run at 0x1>"),
    ],
)
async def test_a_result_becomes_plain_json(expression: str, result: object) -> None:
    report = await value_of(expression)
    assert (report.result, report.fault) == (result, None)


async def test_a_dataclass_becomes_an_object() -> None:
    head = "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n    y: list\n"
    source = f"{head}def run():\n    return A(1, [A(2, [])])\n"
    assert (await run(source, {})).result == {"x": 1, "y": [{"x": 2, "y": []}]}


@each_row(
    "expression, message",
    [
        ("b'x'", "the result: JSON cannot hold a value of type bytes"),
        ("{'a': [1, b'x']}", "the result at ['a'][1]: JSON cannot hold a value of type bytes"),
        ("float('nan')", "the result: JSON cannot hold nan"),
        ("[float('inf')]", "the result at [0]: JSON cannot hold inf"),
        ("Decimal('NaN')", "the result: JSON cannot hold NaN"),
        ("{1: 2}", "the result: JSON keys are text, not int"),
        ("datetime.timedelta(1)", "the result: JSON cannot hold a value of type timedelta"),
        ("1j", "the result: JSON cannot hold a value of type complex"),
        ("...", "the result: JSON cannot hold a value of type ellipsis"),
        ("len", "the result: JSON cannot hold a value of type function len"),
        ("int", "the result: JSON cannot hold a value of type type"),
        ("1 << 5000", "the result: an integer may have at most 4096 bits"),
        ("run", "the result: JSON cannot hold this value"),
        ("[1, lambda: 1]", "the result at [1]: JSON cannot hold this value"),
        ("{'k': range(3)}", "the result at ['k']: JSON cannot hold this value"),
        ("re.compile('a')", "the result: JSON cannot hold this value"),
        ("math", "the result: JSON cannot hold this value"),
    ],
)
async def test_a_result_that_json_cannot_hold_is_named(expression: str, message: str) -> None:
    report = await value_of(expression)
    assert report.result is None
    assert report.fault == Fault("error", message)


async def test_an_object_of_the_tools_own_class_is_named() -> None:
    report = await run("class Box:\n    pass\ndef run():\n    return [Box()]\n", {})
    assert report.fault == Fault("error", "the result at [0]: JSON cannot hold a value of type Box")


async def test_however_many_texts_look_like_something_else_they_stay_texts_and_what_is_none_is_refused() -> None:
    texts = "['<b>' for _ in range(450)] + ['x' * 90 + '...'] * 450"
    assert (await run(f"def run():\n    return {texts}\n", {})).result == ["<b>"] * 450 + ["x" * 90 + "..."] * 450
    report = await run(f"def run():\n    return {texts} + [run]\n", {})
    assert report.fault == Fault("error", "the result at [900]: JSON cannot hold this value")


async def test_texts_under_long_keys_are_told_apart_too() -> None:
    inner = "{str(n) + 'k' * 900: '<b>' for n in range(200)}"
    report = await run(f"def run():\n    return {inner} | {{'last': run}}\n", {})
    assert report.fault == Fault("error", "the result at ['last']: JSON cannot hold this value")


async def test_a_result_that_holds_itself_is_refused() -> None:
    report = await run("def run():\n    x = []\n    x.append(x)\n    return {'x': x}\n", {})
    assert report.fault == Fault("error", "the result at ['x'][0]: JSON cannot hold this value")


@each_row(
    "source, kind, message, line",
    [
        ("def run():\n\n    return 1 / 0\n", "error", "ZeroDivisionError: division by zero", 3),
        ("def run():\n    raise ValueError('only 143.00')\n", "error", "ValueError: only 143.00", 2),
        ("def f(x):\n    return x['a']\ndef run():\n    return f({})\n", "error", "KeyError: a", 2),
        (
            "# ü€\nx = 1\ny = x + 'a'\n",
            "error",
            "TypeError: unsupported operand type(s) for +: 'int' and 'str'",
            3,
        ),
        ("def run(:\n    pass\n", "syntax", "Expected a parameter or the end of the parameter list", 1),
        (
            "def run():\n    x = 1\n    yield x\n",
            "syntax",
            "tools cannot use yield expressions (collect into a list and return it)",
            3,
        ),
        ("class E(Exception):\n    pass\n", "syntax", NO_INHERITANCE, 1),
        (
            "from json import *\n",
            "syntax",
            "Wildcard imports (`from ... import *`) are not supported in tools",
            1,
        ),
        ("import nothing\n", "error", "ModuleNotFoundError: No module named 'nothing'", 1),
        ("x = 1\n", "error", "NameError: name 'run' is not defined", None),
        (
            "def run(a):\n    return a\n",
            "error",
            "TypeError: run() missing 1 required positional argument: 'a'",
            1,
        ),
        ("x = '\ud800'", "syntax", "the code contains half a character (a lone surrogate)", None),
    ],
)
async def test_a_fault_is_one_sentence_with_the_authors_line(
    source: str, kind: Any, message: str, line: int | None
) -> None:
    assert (await run(source, {})).fault == Fault(kind, message, line)


@each_row("argument", [b"x", {1: 2}, object(), {"a": {1, 2}}, "\ud800", {"\ud800": 1}])
async def test_an_argument_that_is_no_json_never_reaches_the_tool(argument: object) -> None:
    report = await run("def run(a):\n    return 1\n", {"a": argument})
    assert report.fault is not None
    assert report.fault.kind == "arguments"
    assert report.fault.message.startswith("the arguments")


async def test_a_very_long_message_is_cut_and_says_so() -> None:
    report = await run("def run():\n    raise ValueError('x' * 100_000)\n", {})
    assert report.fault is not None
    assert report.fault.message.endswith("… (98012 more)")
    assert len(report.fault.message) < 2100


def test_one_sandbox_serves_several_loops_and_threads() -> None:
    results: list[object] = []

    def work(number: int) -> None:
        for _ in range(3):
            results.append(asyncio.run(run("def run(n):\n    return n\n", {"n": number})).result)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results, key=repr) == sorted(list(range(6)) * 3)


async def test_after_closing_the_next_run_starts_anew() -> None:
    assert (await run("def run():\n    return 1\n", {})).ok
    await close()
    await close()
    assert (await run("def run():\n    return 2\n", {}, limits=Limits())).result == 2
