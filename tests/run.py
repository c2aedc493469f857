"""What `make test` and `make test-slow` run: passes of pytest, one after the other, each with about as many workers as
there are processors. Markers in the files (`slow`, `browser`, `servers`, ...; see pyproject.toml) say which test
belongs to which pass. Arguments go to pytest.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests import forks, second_look
from tests.services import ServiceMissing, postgres_url, redis_url

ROOT: Final = Path(__file__).resolve().parent.parent
NOTHING_SELECTED: Final = int(pytest.ExitCode.NO_TESTS_COLLECTED)
REASONS, PRINTED = 12, 12  # lines shown once more of each test that failed
SLOWEST: Final = 10  # tests of each pass whose durations are shown
ROOM: Final = 8 * 2**30  # bytes, of which a whole run needs about a quarter
# The last one would have each program of a test compile all modules anew.
OF_A_PASS: Final = {"DATABASE_URL", "REDIS_URL", "HITLCHAT_DATA", "PYTHONDONTWRITEBYTECODE"}
SLOW: Final = "slow"
ONLY_THERE: Final = "postgres or (processes and not browser)"
ON_SERVERS: Final = f"{ONLY_THERE} or (servers and not browser and not embedded)"
# A Redis as it comes has databases for so many workers.
MOST_WORKERS: Final = 4


@dataclass(frozen=True)
class Pass:
    """One run of pytest: of the tests in `places`, or that arguments name, whose markers are as `markers` says."""

    title: str
    markers: str
    places: list[str]
    workers: int
    environment: dict[str, str] = field(default_factory=dict)

    def migrate(self, folder: Path) -> subprocess.Popen[bytes]:
        """Begin to migrate the database with which its tests begin: its workers would wait for one of them."""
        return subprocess.Popen([sys.executable, "-m", "tests.template"], env=self._environment(folder))

    def run(self, folder: Path, arguments: list[str]) -> int:
        """Run it on data of its own, so that it leaves ./var alone; pytest's exit code. Its report is in `folder`."""
        print(f"\n--- {self.title}\n", flush=True)
        shown = [f"--junitxml={folder / 'report.xml'}", f"--durations={SLOWEST}"]
        options = ["-m", self.markers, *shown, *same_order()]
        if self.workers > 1:
            options += [f"--numprocesses={self.workers}", "--dist=worksteal"]
        command = [sys.executable, "-m", "pytest", *options, *arguments, *self.places]
        return subprocess.run(command, env=self._environment(folder), check=False).returncode

    def _environment(self, folder: Path) -> dict[str, str]:
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if key not in OF_A_PASS}
        own = {"HITLCHAT_DATA": str(folder / "var"), "TMPDIR": str(folder / "tmp"), forks.SHARED: forks.server()}
        return kept | own | self.environment


def planned(speed: str, *, is_part: bool) -> list[Pass]:
    """Plan the passes over the tests that are (or are not) slow. `is_part`: arguments name files. ServiceMissing."""
    database, channel = postgres_url(), redis_url()
    has_servers = database is not None and channel is not None
    here = f"{speed} and not ({ONLY_THERE})" if has_servers else speed
    # What waits as long as it computes leaves room for one more worker.
    workers = 1 if is_part else (os.cpu_count() or 1) + 1
    everywhere = marked(speed) if speed == SLOW else ["tests"]
    passes = [
        Pass("SQLite, one process", f"{here} and not browser", [] if is_part else everywhere, workers),
        Pass("In a browser", f"{here} and browser", [] if is_part else marked(speed, "browser"), workers),
    ]
    if database is not None and channel is not None:
        addresses = {"DATABASE_URL": database, "REDIS_URL": channel}
        where = [] if is_part else marked(speed, "postgres", "processes", "servers")
        on_servers = f"{speed} and ({ON_SERVERS})"
        passes.append(Pass("PostgreSQL and Redis", on_servers, where, min(workers, MOST_WORKERS), addresses))
    return passes


def marked(speed: str, *markers: str) -> list[str]:
    """Return the files of this speed with one of these markers, if any are given: to read all the others takes as long
    as fifty tests.
    """
    each = [markers] * bool(markers) + [(SLOW,)] * (speed == SLOW)
    marks = [re.compile(rf"pytest\.mark\.({'|'.join(names)})\b") for names in each]
    texts = {file: file.read_text(encoding="utf-8") for file in sorted((ROOT / "tests").rglob("test_*.py"))}
    return [str(file.relative_to(ROOT)) for file, text in texts.items() if all(mark.search(text) for mark in marks)]


@cache
def same_order() -> list[str]:
    """Return what has pytest-randomly, which prints the seed, give every run of a commit the same order."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
    try:
        commit = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # a checkout without its history
        return []
    return [f"--randomly-seed={int(commit[:8], 16)}"]


def count(report: Path) -> Counter[str]:
    if not report.exists():
        return Counter()
    suites = ET.parse(report).getroot().iter("testsuite")
    found = Counter[str]()
    for suite in suites:
        found.update({key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")})
    failed = found["failures"] + found["errors"]
    return Counter(passed=found["tests"] - failed - found["skipped"], failed=failed, skipped=found["skipped"])


def failures(report: Path) -> list[str]:
    """Return of each failed test its name, why it failed, and the end of what it printed: what a cut log must keep."""
    if not report.exists():
        return []
    found = []
    for case in ET.parse(report).getroot().iter("testcase"):
        for failure in (*case.iterfind("failure"), *case.iterfind("error")):
            reasons = [line for line in (failure.text or "").splitlines() if line.startswith("E  ")][-REASONS:]
            printed = (case.findtext("system-out") or "").splitlines()[-PRINTED:]
            found.append("\n".join([f"{case.get('classname')}::{case.get('name')}", *reasons, *printed]))
    return found


def scratch() -> str | None:
    """Return a folder in memory for what tests write, or None where there is none, or little room.

    Databases wait for the disk each time they are closed; that they do is for the test of power cuts to see.
    """
    in_memory = Path("/dev/shm")  # whoever else can write there cannot write into a folder of ours
    roomy = in_memory.is_dir() and shutil.disk_usage(in_memory).free > ROOM
    return str(in_memory) if roomy else None


def main(arguments: list[str]) -> int:
    began = time.monotonic()
    is_slow = arguments[:1] == [f"--{SLOW}"]
    arguments = [*second_look.OPTIONS, *(arguments[1:] if is_slow else arguments)]
    is_part = any(Path(each.partition("::")[0]).exists() for each in arguments if not each.startswith("-"))
    try:
        passes = planned(SLOW if is_slow else f"not {SLOW}", is_part=is_part)
    except ServiceMissing as error:
        print(error, file=sys.stderr)
        return 1
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hitlchat-", dir=scratch()))
        places = [Path(folder) / str(number) for number, _ in enumerate(passes)]
        if not is_part:
            for each, place in zip(passes, places, strict=True):
                stack.enter_context(each.migrate(place))
        codes = [each.run(place, arguments) for each, place in zip(passes, places, strict=True)]
        reports = [place / "report.xml" for place in places]
        unsteady = [name for place in places for name in second_look.unsteady(place)]
        counts = sum((count(report) for report in reports), Counter[str]())
        failed = [failure for report in reports for failure in failures(report)]
    # What its forks took counts once it has ended.
    forks.end()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time")
    if failed:
        print(*("", *failed), "", sep="\n\n")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    if unsteady:
        print("Unsteady (failed, and passed at a second look):", *unsteady, sep="\n  ")
    if len(unsteady) > second_look.MOST:
        print(f"{len(unsteady)} unsteady tests are a failure; {second_look.MOST} are the most.")
        codes.append(1)
    # A selection by name may leave nothing for one of the passes, but not for all. A killed one's code is below 0.
    codes = [code for code in codes if code != NOTHING_SELECTED] or codes
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
