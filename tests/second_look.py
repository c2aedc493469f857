"""A test that failed is run again, once, after a pause; if it passes then, it is *unsteady*: named, and no failure.

A pytest plugin for pytest-rerunfailures, which tests/run.py loads and asks for the second look. A test that holds a
guarantee gets one only if a wait ran out: whatever else it says of the product counts the first time.
"""

from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests import waiting

PAUSE: Final = 2  # seconds
OPTIONS: Final = ("-p", "tests.second_look", "--reruns=1", f"--reruns-delay={PAUSE}", "--rerun-show-tracebacks")
MOST: Final = 5  # unsteady tests of one run; more are a failure
NAMES: Final = "unsteady.txt"
LIBRARIES_THAT_WAIT: Final = {"playwright", "pytest_timeout"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    again = pytest.mark.flaky(reruns=1, reruns_delay=PAUSE, condition=ran_out)
    for item in items:
        if item.get_closest_marker("guarantee"):
            item.add_marker(again)


def ran_out(error: BaseException | None) -> bool:
    """Return whether it is a wait that took too long: raised by tests/waiting.py, Playwright or pytest-timeout."""
    if isinstance(error, PlaywrightTimeout | waiting.RanOut):
        return True
    # Playwright's expectations and pytest-timeout raise what a statement of a test would, so it counts who did.
    return error is not None and _raised_by(error).partition(".")[0] in LIBRARIES_THAT_WAIT


def _raised_by(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "" if at is None else str(at.tb_frame.f_globals.get("__name__", ""))


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
