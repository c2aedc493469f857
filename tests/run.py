"""What `make test`, `make test-quick` and `make test-all` run: passes of pytest, one after the other, each with as many
workers as there are processors. tests/selecting.py says which test belongs to which pass. Arguments go to pytest.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests import costs, forks, second_look
from tests.selecting import IN_BROWSER, touched
from tests.services import ServiceMissing, postgres_url, redis_url

ROOT: Final = Path(__file__).resolve().parent.parent
NOTHING_SELECTED: Final = int(pytest.ExitCode.NO_TESTS_COLLECTED)
REASONS, PRINTED = 12, 12  # lines shown once more of each test that failed
ROOM: Final = 8 * 2**30  # bytes, of which a whole run needs about a quarter
# The last one would have each program of a test compile all modules anew.
OF_A_PASS: Final = {"DATABASE_URL", "REDIS_URL", "TEST_PASS", "HITLCHAT_DATA", "PYTHONDONTWRITEBYTECODE"}
TITLES: Final = {
    "quick": "The quick ones: SQLite, no browser",
    "embedded": "SQLite, one process",
    "browser": "In a browser",
    "servers": "PostgreSQL and Redis: what depends on them",
    "every": "PostgreSQL and Redis: everything that touches the database",
}
ON_POSTGRES: Final = ("servers", "every")


@dataclass(frozen=True)
class Pass:
    """One run of pytest. `name` is its TEST_PASS, `folder` where all of its tests are."""

    name: str
    workers: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""

    def run(self, folder: Path, arguments: list[str]) -> int:
        """Run it on data of its own, so that it leaves ./var alone; pytest's exit code. Its report is in `folder`."""
        print(f"\n--- {TITLES[self.name]}\n", flush=True)
        (folder / "tmp").mkdir(parents=True)
        kept = {key: value for key, value in os.environ.items() if key not in OF_A_PASS}
        places = {"HITLCHAT_DATA": str(folder / "var"), "TMPDIR": str(folder / "tmp")}
        own = {"TEST_PASS": self.name, forks.SHARED: forks.server(), **places, **self.environment}
        options = [*second_look.OPTIONS, f"--junitxml={folder / 'report.xml'}", *same_order()]
        if self.workers > 1:
            options += [f"--numprocesses={self.workers}", "--dist=worksteal"]
        where = [self.folder] if self.folder and not named(arguments) else []
        command = [sys.executable, "-m", "pytest", *options, *arguments, *where]
        return subprocess.run(command, env=kept | own, check=False).returncode


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
    said = Counter[str]()
    for suite in suites:
        said.update({key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")})
    failed = said["failures"] + said["errors"]
    return Counter(passed=said["tests"] - failed - said["skipped"], failed=failed, skipped=said["skipped"])


def failures(report: Path) -> list[str]:
    """Return of each failed test its name, why it failed, and the end of what it printed: what a cut log must keep."""
    if not report.exists():
        return []
    found = []
    for case in ET.parse(report).getroot().iter("testcase"):
        for told in (*case.iterfind("failure"), *case.iterfind("error")):
            reasons = [line for line in (told.text or "").splitlines() if line.startswith("E  ")][-REASONS:]
            printed = (case.findtext("system-out") or "").splitlines()[-PRINTED:]
            found.append("\n".join([f"{case.get('classname')}::{case.get('name')}", *reasons, *printed]))
    return found


def planned(kind: str, paths: list[Path]) -> list[Pass]:
    """Plan the passes of this kind of run. A few named files need no workers. Raises: ServiceMissing."""
    cores = 1 if paths else os.cpu_count() or 1
    if kind == "quick":
        return [Pass("quick", cores)]
    passes = [Pass("embedded", cores), Pass("browser", cores, folder=IN_BROWSER)]
    database, channel = postgres_url(), redis_url()
    if database is not None and channel is not None:
        addresses = {"DATABASE_URL": database, "REDIS_URL": channel}
        # Its servers have databases for so many workers, as a Redis comes.
        workers = min(4, cores)
        passes.append(Pass("every" if kind == "all" else "servers", workers, addresses))
    if not paths:
        return passes
    wanted = touched(paths, ROOT) | ({"every"} if kind == "all" else set())
    return [each for each in passes if each.name in wanted]


def named(arguments: list[str]) -> list[Path]:
    """Return the files and folders among the arguments, other than the whole of tests/."""
    found = [Path(each.partition("::")[0]) for each in arguments if not each.startswith("-")]
    return [path for path in found if path.exists() and path.resolve() not in {ROOT, ROOT / "tests"}]


def scratch() -> str | None:
    """Return a folder in memory for what tests write, or None where there is none, or little room.

    Databases wait for the disk each time they are closed; that they do is for the test of power cuts to see.
    """
    in_memory = Path("/dev/shm")  # whoever else can write there cannot write into a folder of ours
    roomy = in_memory.is_dir() and shutil.disk_usage(in_memory).free > ROOM
    return str(in_memory) if roomy else None


def main(arguments: list[str]) -> int:
    began = time.monotonic()
    kind = arguments.pop(0)[2:] if arguments[:1] in (["--quick"], ["--all"]) else ""
    try:
        passes = planned(kind, named(arguments))
    except ServiceMissing as error:
        print(error, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="hitlchat-", dir=scratch()) as folder:
        places = [Path(folder) / each.name for each in passes]
        codes = [each.run(place, arguments) for each, place in zip(passes, places, strict=True)]
        reports = [place / "report.xml" for place in places]
        unsteady = [name for place in places for name in second_look.unsteady(place)]
        counts = sum((count(report) for report in reports), Counter[str]())
        spent = costs.read(reports)
        failed = [told for report in reports for told in failures(report)]
    # What its forks took counts once it has ended.
    forks.end()
    if len(spent) > costs.SLOWEST:
        print(f"\n{costs.table(spent)}")
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
