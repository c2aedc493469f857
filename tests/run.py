"""What `make test` runs: the whole suite as hitlchat comes (SQLite, one process), then, where PostgreSQL and Redis are
found, the tests that depend on them again on those. Arguments go to pytest.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.services import ServiceMissing, postgres_url, redis_url

NOTHING_SELECTED = int(pytest.ExitCode.NO_TESTS_COLLECTED)


def run_pass(name: str, title: str, arguments: list[str], **environment: str) -> tuple[int, Counter[str]]:
    """Run pytest once; its exit code, and how many tests ended how."""
    print(f"\n--- {title}\n", flush=True)
    kept = {key: value for key, value in os.environ.items() if key not in {"DATABASE_URL", "REDIS_URL", "TEST_PASS"}}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # Data of its own, so that a run leaves ./var alone and two runs leave each other alone.
        own = {"TEST_PASS": name, "HITLCHAT_DATA": f"{folder}/var"}
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
        code = subprocess.run(command, env=kept | own | environment, check=False).returncode
        return code, count(report)


def count(report: Path) -> Counter[str]:
    if not report.exists():
        return Counter()
    suites = ET.parse(report).getroot().iter("testsuite")
    said = Counter[str]()
    for suite in suites:
        said.update({key: int(suite.get(key, "0")) for key in ("tests", "failures", "errors", "skipped")})
    failed = said["failures"] + said["errors"]
    return Counter(passed=said["tests"] - failed - said["skipped"], failed=failed, skipped=said["skipped"])


def main(arguments: list[str]) -> int:
    try:
        database, channel = postgres_url(), redis_url()
    except ServiceMissing as error:
        print(error, file=sys.stderr)
        return 1
    both = database is not None and channel is not None
    results = [run_pass("embedded" if both else "", "SQLite, one process", arguments)]
    if database and channel:
        addresses = {"DATABASE_URL": database, "REDIS_URL": channel}
        results.append(run_pass("servers", "PostgreSQL and Redis", arguments, **addresses))
    codes = [code for code, _ in results]
    counts = sum((counted for _, counted in results), Counter[str]())
    # A selection by name may leave nothing for one of the passes, but not for all.
    codes = [code for code in codes if code != NOTHING_SELECTED] or codes
    print(f"\n{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
