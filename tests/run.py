"""What `make test`, `make test-quick` and `make test-all` run: passes of pytest at the same time, each with workers,
data, ports and databases of its own. tests/selecting.py says which test belongs to which pass. Arguments go to pytest.
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
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests import costs, forks
from tests.selecting import IN_BROWSER, touched
from tests.services import ServiceMissing, postgres_url, redis_url

ROOT: Final = Path(__file__).resolve().parent.parent
NOTHING_SELECTED: Final = int(pytest.ExitCode.NO_TESTS_COLLECTED)
LOOK_EVERY: Final = 0.2
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

    def start(self, folder: Path, arguments: list[str], output: Path | None) -> subprocess.Popen[bytes]:
        """Begin it, with data of its own, so that a run leaves ./var alone and two runs leave each other alone."""
        (folder / "tmp").mkdir(parents=True)
        kept = {key: value for key, value in os.environ.items() if key not in OF_A_PASS}
        places = {"HITLCHAT_DATA": str(folder / "var"), "TMPDIR": str(folder / "tmp")}
        own = {"TEST_PASS": self.name, forks.SHARED: forks.server(), **places, **self.environment}
        workers = [f"--numprocesses={self.workers}", "--dist=worksteal"] if self.workers > 1 else []
        command = [sys.executable, "-m", "pytest", f"--junitxml={folder / 'report.xml'}", *workers, *arguments]
        if self.folder and not named(arguments):
            command.append(self.folder)
        if output is None:
            return subprocess.Popen(command, env=kept | own)
        # Only one of them can have the terminal.
        with output.open("wb") as file:
            return subprocess.Popen(command, env=kept | own, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def run(passes: list[Pass], arguments: list[str], folder: Path) -> list[int]:
    """Run all `passes` at once: most tests wait more than they work. What they print comes one after the other.

    The exit code of each; each leaves a report below `folder`.
    """
    outputs = [None, *(folder / f"{each.name}.txt" for each in passes[1:])]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for each, output in zip(passes, outputs, strict=True):
            started.append(each.start(folder / each.name, arguments, output))
        return [show(*one) for one in zip(passes, started, outputs, strict=True)]
    finally:
        for process in started:
            process.terminate()
            process.wait()


def show(which: Pass, process: subprocess.Popen[bytes], output: Path | None) -> int:
    """Print what it printed so far and goes on to print; its exit code."""
    print(f"\n--- {TITLES[which.name]}\n", flush=True)
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
    """Plan the passes of this kind of run, and how many workers each gets.

    Most tests wait more than they work. The first pass takes longest, and has the processors to itself at the end; a
    few named files need no workers. Raises: ServiceMissing.
    """
    cores = 1 if paths else os.cpu_count() or 1
    if kind == "quick":
        return [Pass("quick", 2 * cores)]
    passes = [Pass("embedded", 2 * cores if cores > 1 else 1), Pass("browser", cores, folder=IN_BROWSER)]
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
        codes = run(passes, arguments, Path(folder))
        reports = [Path(folder) / each.name / "report.xml" for each in passes]
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
    # A selection by name may leave nothing for one of the passes, but not for all. A killed one's code is below 0.
    codes = [code for code in codes if code != NOTHING_SELECTED] or codes
    return next(filter(None, codes), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
