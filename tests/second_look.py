"""A test that failed is run again, once, after a pause; if it passes then, it is *unsteady*: named, and no failure.

A pytest plugin for pytest-rerunfailures, which tests/run.py loads and asks for the second look. A test that holds a
guarantee gets one only if a wait ran out: whatever else it says of the product counts the first time.
"""

from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Final

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests import waiting

OPTIONS: Final = ("-p", "tests.second_look", "--reruns=1", "--reruns-delay=2", "--rerun-show-tracebacks")
MOST: Final = 5  # unsteady tests of one run; more are a failure
NAMES: Final = "unsteady.txt"


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    again = pytest.mark.flaky(reruns=1, reruns_delay=config.option.reruns_delay, condition=ran_out)
    for item in items:
        if item.get_closest_marker("guarantee"):
            item.add_marker(again)


def ran_out(error: BaseException | None) -> bool:
    """Return whether it is a wait that took too long: one of tests/waiting.py, Playwright or pytest-timeout."""
    match error:
        case waiting.RanOut() | PlaywrightTimeout():
            return True
        # The others are raised as a statement of a test is: only who raised them tells them apart.
        case pytest.fail.Exception():
            return any(_module(frame) == "pytest_timeout" for frame in _frames(error))
        case AssertionError():
            return any(_expected_in_vain(frame) for frame in _frames(error))
    return False


def _frames(error: BaseException) -> list[FrameType]:
    return [frame for frame, _ in walk_tb(error.__traceback__)]


def _expected_in_vain(frame: FrameType) -> bool:
    """Return whether it is that of a Playwright expectation that was told that its time is over.

    One that could not be asked (a selector that fits two elements or is none, a page that is closed) was told no such
    thing.
    """
    told = frame.f_locals.get("result")
    return _module(frame).startswith("playwright.") and isinstance(told, dict) and told.get("timedOut") is True


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Leave the names of unsteady tests beside the report, a line each."""
    again, failed, broken = (
        {report.nodeid for report in terminalreporter.getreports(state)} for state in ("rerun", "failed", "error")
    )
    if config.option.xmlpath:
        lines = [f"{name}\n" for name in sorted(again - failed - broken)]
        Path(config.option.xmlpath).with_name(NAMES).write_text("".join(lines), encoding="utf-8")


def unsteady(folder: Path) -> list[str]:
    """Return the names that a run left in `folder`, where its report is."""
    names = folder / NAMES
    return names.read_text(encoding="utf-8").splitlines() if names.exists() else []
