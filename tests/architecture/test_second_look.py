"""What tests/run.py says of a test that fails once, and of one that fails twice."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.second_look import MOST

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
GUARANTEE = '@pytest.mark.guarantee("gate:no-yes-no-run")'

Said = tuple[int, str, str]
Run = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run these tests as `make test` does: the exit code, all that it printed, and what came after the last sum."""

    def made(*tests: str) -> Said:
        file = tmp_path / "test_made.py"
        file.write_text("\n".join([HEAD, *tests]), encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "TEST_PASS"))}
        command = [
            sys.executable,
            "-m",
            "tests.run",
            f"--rootdir={ROOT}",
            "-c",
            str(ROOT / "pyproject.toml"),
            str(file),
        ]
        done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=200, check=False)
        return done.returncode, done.stdout + done.stderr, re.split(r"\n(?=\d+ passed, )", done.stdout)[-1]

    return made


def test_a_test_that_fails_every_other_time_is_named_unsteady_and_the_run_is_green(run: Run) -> None:
    code, printed, end = run(
        EVERY_OTHER_TIME.format(name="plain", marks=""),
        A_WAIT.format(name="promised", marks=GUARANTEE),
        "def test_steady(): pass",
    )
    assert (code, end.splitlines()[0]) == (0, "3 passed, 0 failed, 0 skipped"), printed
    assert [line.rpartition("::")[2] for line in end.splitlines()[2:]] == ["test_plain", "test_promised"]
    assert re.search(r"RERUN .*::test_plain", printed)
    assert re.search(r"PASSED .*::test_plain", printed)
    assert "AssertionError: the statement is false" in printed


def test_a_false_statement_about_a_guarantee_is_a_failure_the_first_time(run: Run) -> None:
    code, printed, end = run(EVERY_OTHER_TIME.format(name="promised", marks=GUARANTEE), "def test_steady(): pass")
    assert (code, end.strip()) == (1, "1 passed, 1 failed, 0 skipped"), printed


def test_what_fails_twice_is_a_failure_and_not_unsteady(run: Run) -> None:
    code, printed, end = run("def test_broken(): assert False")
    assert (code, end.strip()) == (1, "0 passed, 1 failed, 0 skipped"), printed


def test_many_unsteady_tests_are_a_failure(run: Run) -> None:
    code, printed, end = run(*(EVERY_OTHER_TIME.format(name=f"n{n}", marks="") for n in range(MOST + 1)))
    assert (code, end.splitlines()[0]) == (1, f"{MOST + 1} passed, 0 failed, 0 skipped"), printed


def test_what_cannot_be_collected_gets_no_second_look(run: Run) -> None:
    code, printed, _ = run("import nothing_of_this_name")
    assert code != 0
    assert "RERUN" not in printed
