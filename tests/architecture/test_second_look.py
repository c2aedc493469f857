"""What a run says of a test that fails once, and of one that fails twice."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.forks import SHARED
from tests.run import SLOW
from tests.second_look import MOST
from tests.services import chromium_path

# Each test fails the first time that it runs, and says so in a file of its own.
HEAD = """
from pathlib import Path
import pytest
from tests.waiting import until

def first(name):
    seen = Path(__file__).with_name(name)
    if seen.exists():
        return False
    seen.touch()
    return True
"""
EVERY_OTHER_TIME = """
{marks}
def test_{name}():
    assert not first("{name}"), "the statement is false"
"""
A_WAIT = """
{marks}
def test_{name}():
    until(lambda: not first("{name}"), "the second look", seconds=0)
"""
IN_A_BROWSER = """
from playwright.sync_api import expect, sync_playwright
from tests.services import CHROMIUM_ARGS, chromium_path

@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium_path(), args=[*CHROMIUM_ARGS])

@pytest.fixture
def page(browser):
    page = browser.new_page()
    page.set_content("<p>One</p><p>Two</p>")
    page.set_default_timeout(500)
    expect.set_options(timeout=500)
    return page
"""
ONCE = """
{marks}
def test_{name}(page):
    if first("{name}"):
        {fails}
"""
WAITS = {
    "nothing_to_click": "page.locator('#none').click()",
    "another_number": "expect(page.locator('p')).to_have_count(3)",
    "still_there": "expect(page.locator('p').first).not_to_be_visible()",
    "no_window": "page.wait_for_event('popup')",
}
NO_WAITS = {
    "two_to_click": "page.locator('p').click()",
    "no_selector": "page.locator('[[').click()",
    "two_that_have_a_text": "expect(page.locator('p')).to_have_text('One')",
    "no_selector_expected": "expect(page.locator('[[')).to_be_visible()",
    "no_box_to_tick": "expect(page.locator('p').first).to_be_checked()",
    "closed": "page.close(); page.locator('p').first.click()",
    "closed_and_expected": "page.close(); expect(page.locator('p')).to_have_count(2)",
    "an_error_of_the_page": "page.evaluate('throw new Error(`Timeout 50ms exceeded.`)')",
    "words_of_the_test": "pytest.fail('Timeout (>240.0s) from pytest-timeout.')",
}
TOO_LONG = """
import threading

@pytest.mark.timeout(1, func_only=True)
{marks}
def test_too_long():
    if first("too_long"):
        threading.Event().wait(60)
"""
needs_chromium = pytest.mark.skipif(chromium_path() is None, reason="needs Chromium")
GUARANTEE = '@pytest.mark.guarantee("gate:no-yes-no-run")'

pytestmark = pytest.mark.slow("runs pytest")

Said = tuple[int, str, str]
Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run these tests as `make test-slow` does where no servers are named, but look again at once: the exit code, all
    that it printed, and what followed the last sum.
    """

    def made(*tests: str) -> Said:
        file = tmp_path / "test_made.py"
        file.write_text("\n".join([HEAD, 'pytestmark = pytest.mark.slow("it may")', *tests]), encoding="utf-8")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "TEST_")) or name == SHARED
        }
        command = [
            sys.executable,
            "-m",
            "tests.run",
            f"--{SLOW}",
            "--reruns-delay=0",
            f"--rootdir={ROOT}",
            "-c",
            str(ROOT / "pyproject.toml"),
            str(file),
        ]
        done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=200, check=False)
        return done.returncode, done.stdout + done.stderr, re.split(r"\n(?=\d+ passed, )", done.stdout)[-1]

    return made


def test_a_test_that_fails_once_is_named_unsteady_and_the_run_is_green(run: Run) -> None:
    code, printed, end = run(
        EVERY_OTHER_TIME.format(name="plain", marks=""),
        A_WAIT.format(name="promised", marks=GUARANTEE),
        TOO_LONG.format(marks=GUARANTEE),
        "def test_steady(): pass",
    )
    assert (code, end.splitlines()[0]) == (0, "4 passed, 0 failed, 0 skipped"), printed
    assert names(end) == {"plain", "promised", "too_long"}
    assert re.search(r"RERUN .*::test_plain", printed)
    assert re.search(r"PASSED .*::test_plain", printed)
    assert "AssertionError: the statement is false" in printed


@needs_chromium
def test_many_unsteady_tests_are_a_failure(run: Run) -> None:
    waits = [ONCE.format(name=name, fails=fails, marks=GUARANTEE) for name, fails in WAITS.items()]
    more = [EVERY_OTHER_TIME.format(name=f"n{n}", marks="") for n in range(MOST + 1 - len(waits))]
    code, printed, end = run(IN_A_BROWSER, *waits, *more)
    assert (code, end.splitlines()[0]) == (1, f"{MOST + 1} passed, 0 failed, 0 skipped"), printed
    assert names(end) >= WAITS.keys()


@needs_chromium
def test_what_fails_twice_is_a_failure_and_a_false_statement_about_a_guarantee_the_first_time(run: Run) -> None:
    made = [ONCE.format(name=name, fails=fails, marks=GUARANTEE) for name, fails in NO_WAITS.items()]
    made += ["def test_broken(): assert False", "def test_steady(): pass"]
    promised = EVERY_OTHER_TIME.format(name="promised", marks=GUARANTEE)
    code, printed, end = run(
        IN_A_BROWSER, *made, promised, "def test_broken(): assert False", "def test_steady(): pass"
    )
    assert (code, end.strip()) == (1, f"1 passed, {len(NO_WAITS) + 2} failed, 0 skipped"), printed


def names(end: str) -> set[str]:
    return {line.rpartition("::test_")[2] for line in end.splitlines()[2:]}
