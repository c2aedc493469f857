"""What `make test` runs: the whole suite as hitlchat comes (SQLite, one process) and, where PostgreSQL and Redis are
found, at the same time the tests that depend on them again on those. Arguments go to pytest.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.services import ServiceMissing, postgres_url, redis_url

NOTHING_SELECTED = int(pytest.ExitCode.NO_TESTS_COLLECTED)
LOOK_EVERY = 0.2
OF_A_PASS = {"DATABASE_URL", "REDIS_URL", "TEST_PASS"}


@dataclass(frozen=True)
class Pass:
    """One run of pytest. `name` is its TEST_PASS, or empty where there is only one."""

    name: str
    title: str
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, folder: Path, arguments: list[str], output: Path | None) -> subprocess.Popen[bytes]:
        """Begin it, with data of its own, so that a run leaves ./var alone and two runs leave each other alone."""
        folder.mkdir()
        kept = {key: value for key, value in os.environ.items() if key not in OF_A_PASS}
        own = {"TEST_PASS": self.name, "HITLCHAT_DATA": str(folder / "var"), **self.environment}
        command = [sys.executable, "-m", "pytest", f"--junitxml={folder / 'report.xml'}", *arguments]
        if output is None:
            return subprocess.Popen(command, env=kept | own)
        # Only one of them can have the terminal.
        with output.open("wb") as file:
            return subprocess.Popen(command, env=kept | own, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def run(passes: list[Pass], arguments: list[str], folder: Path) -> tuple[list[int], Counter[str]]:
    """All `passes` at once: most tests wait more than they work. What they print comes one after the other.

    The exit code of each, and how many tests ended how.
    """
    outputs = [None, *(folder / f"{each.name}.txt" for each in passes[1:])]
    started = [
        each.start(folder / str(number), arguments, output)
        for number, (each, output) in enumerate(zip(passes, outputs, strict=True))
    ]
    try:
        codes = [show(*one) for one in zip(passes, started, outputs, strict=True)]
    finally:
        for process in started:
            process.terminate()
            process.wait()
    return codes, sum((count(folder / str(number) / "report.xml") for number in range(len(passes))), Counter())


def show(which: Pass, process: subprocess.Popen[bytes], output: Path | None) -> int:
    """Print what it printed so far and goes on to print; its exit code."""
    print(f"\n--- {which.title}\n", flush=True)
    if output is None:
        return process.wait()
    with output.open("rb") as file:
        while (ended := process.poll()) is None:
            sys.stdout.buffer.write(file.read())
            sys.stdout.buffer.flush()
            time.sleep(LOOK_EVERY)
        sys.stdout.buffer.write(file.read())
    sys.stdout.buffer.flush()
    return ended


def count(report: Path) -> Counter[str]:
    if not report.exists():
        return Counter()
    suites = ET.parse(report).getroot().iter("testsuite")
    said = Counter[str]()
    for suite in suites:
        said.update({key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")})
    failed = said["failures"] + said["errors"]
    return Counter(passed=said["tests"] - failed - said["skipped"], failed=failed, skipped=said["skipped"])


def planned() -> list[Pass]:
    """ServiceMissing."""
    database, channel = postgres_url(), redis_url()
    if database is None or channel is None:
        return [Pass("", "SQLite, one process")]
    addresses = {"DATABASE_URL": database, "REDIS_URL": channel}
    return [Pass("embedded", "SQLite, one process"), Pass("servers", "PostgreSQL and Redis", addresses)]


def main(arguments: list[str]) -> int:
    try:
        passes = planned()
    except ServiceMissing as error:
        print(error, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        codes, counts = run(passes, arguments, Path(folder))
    # A selection by name may leave nothing for one of the passes, but not for all.
    codes = [code for code in codes if code != NOTHING_SELECTED] or codes
    print(f"\n{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    # Also of one that was killed, whose code is below 0.
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
