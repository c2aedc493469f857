"""The limits come from the environment; a value out of range stops the start, and a limit that ends a run is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from hitlchat.base import environment
from hitlchat.sandbox import Limits, check, run
from hitlchat.sandbox.limits import KIB, MIB, VARIABLES
from tests.tables import each_row

HITL = "from hitl import fetch\n"
# setting: (a small value, a tool that goes over it)
OVER = {
    "TOOL_CPU_SECONDS": (0.1, "def run(a):\n    while True: pass\n"),
    "TOOL_WALL_SECONDS": (0.2, "import time\ndef run(a):\n    time.sleep(5)\n"),
    "TOOL_MEMORY_MIB": (8, "def run(a):\n    x = []\n    while True: x.append('ab' * 1000 + str(len(x)))\n"),
    "TOOL_HOST_CALLS": (3, f"{HITL}def run(a):\n    for _ in range(4): fetch('a')\n"),
    "TOOL_HELPER_CALLS": (3, "import html\ndef run(a):\n    for _ in range(4): html.escape('a')\n"),
    "TOOL_SLEEP_SECONDS": (0.1, "import time\ndef run(a):\n    time.sleep(0.2)\n"),
    "TOOL_SOURCE_KIB": (1, f"{'#' * 2000}\ndef run(a): ...\n"),
    "TOOL_ARGUMENT_KIB": (1, "def run(a): ...\n"),
    "TOOL_RESULT_KIB": (1, "def run(a):\n    return 'x' * 2000\n"),
}


async def fetch(url: str) -> None:
    """Answer at once."""


@pytest.mark.parametrize("variable", OVER)
async def test_a_limit_from_the_settings_ends_the_run_and_names_its_variable(variable: str, settings: Settings) -> None:
    value, source = OVER[variable]
    setattr(settings, variable, value)
    argument = "x" * (2000 if variable == "TOOL_ARGUMENT_KIB" else 1)
    report = await run(source, {"a": argument}, grants={"fetch": fetch}, powers=["sleep"])
    assert report.fault is not None
    assert report.fault.kind == "limit"
    assert report.fault.message.endswith(f"({variable})")
    assert f"{value:g}" in report.fault.message


async def test_what_is_cut_from_the_output_names_its_variable(settings: Settings) -> None:
    settings.TOOL_OUTPUT_KIB = 1
    report = await run("def run():\n    print('x' * 2000)\n", {})
    assert report.output.endswith("977 more bytes of output cut (TOOL_OUTPUT_KIB)")


async def test_the_arguments_of_host_and_helper_calls_name_the_variable_too(settings: Settings) -> None:
    settings.TOOL_ARGUMENT_KIB = 1
    for call in ("fetch('x' * 2000)", "html.escape('x' * 2000)"):
        fault = (await run(f"{HITL}import html\ndef run():\n    {call}\n", {}, grants={"fetch": fetch})).fault
        assert fault is not None
        assert fault.message.endswith("must not be larger than 1 KiB (TOOL_ARGUMENT_KIB)")


async def test_the_check_has_the_same_limit_for_the_code(settings: Settings) -> None:
    settings.TOOL_SOURCE_KIB = 1
    [problem] = await check(OVER["TOOL_SOURCE_KIB"][1])
    assert problem.message.endswith("1 KiB (TOOL_SOURCE_KIB)")


async def test_a_limit_that_the_caller_set_names_no_variable() -> None:
    report = await run(OVER["TOOL_CPU_SECONDS"][1], {"a": "x"}, limits=Limits(cpu_seconds=0.1))
    assert report.fault is not None
    assert report.fault.message == "processor time: the tool computes for more than 0.1 s"


def test_without_variables_the_limits_are_those_of_the_page() -> None:
    assert {name: getattr(Limits(), name) for name in VARIABLES} == {
        "cpu_seconds": 2,
        "wall_seconds": 30,
        "memory_bytes": 64 * MIB,
        "host_calls": 200,
        "helper_calls": 5000,
        "sleep_seconds": 10,
        "source_bytes": 64 * KIB,
        "argument_bytes": 256 * KIB,
        "result_bytes": 256 * KIB,
        "output_bytes": 64 * KIB,
    }


@each_row("value, read", [("", 2.0), ("5", 5.0), (" 0.5 ", 0.5), ("60", 60.0), ("0.1", 0.1)])
def test_a_number_is_read_from_the_environment(value: str, read: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_CPU_SECONDS", value)
    assert environment.number("TOOL_CPU_SECONDS", 2, least=0.1, most=60) == read


@each_row("value", ["0", "0.09", "61", "-1", "1e1", "nan", "inf", "two", "1,5", "1.", "٣", "1_0"])
def test_what_is_no_number_in_range_is_refused_with_the_range(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_CPU_SECONDS", value)
    with pytest.raises(ImproperlyConfigured) as refused:
        environment.number("TOOL_CPU_SECONDS", 2, least=0.1, most=60)
    assert str(refused.value) == f"TOOL_CPU_SECONDS is {value!r}; expected a number from 0.1 to 60"


@each_row(
    "variable, value, said",
    [
        ("TOOL_WORKERS", "0", "expected a whole number from 1 to 64"),
        ("TOOL_WALL_SECONDS", "0", "expected a number from 1 to 600"),
    ],
)
def test_a_limit_out_of_range_stops_the_start(variable: str, value: str, said: str) -> None:
    command = [sys.executable, "-c", "import hitlchat.settings"]
    environ = {**os.environ, variable: value}
    done = subprocess.run(
        command, env=environ, cwd=Path.cwd(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode != 0
    assert f"{variable} is {value!r}; {said}" in done.stderr
