"""What tests cost: the processor time of each, its children's included, and the sums that `make test` prints.

A pytest plugin, loaded by conftest.py: it notes the seconds in the report of each test, from where tests/run.py reads
them. Seconds of a processor, since those of a clock say more about the machine than about the test.
"""

import resource
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests import forks

PROPERTY: Final = "cpu"
SLOWEST: Final = 10
_began = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_began] = spent()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.when == "teardown" and _began in item.stash:
        item.user_properties.append((PROPERTY, f"{spent() - item.stash[_began]:.3f}"))


def spent() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages) + forks.spent()


@dataclass(frozen=True)
class Cost:
    """The processor seconds of one test in one pass."""

    seconds: float
    folder: str
    name: str


def read(reports: Iterable[Path]) -> list[Cost]:
    """Return the costs noted in these reports, the highest first."""
    found = (cost for report in reports if report.exists() for cost in _of(report))
    return sorted(found, key=lambda cost: cost.seconds, reverse=True)


def _of(report: Path) -> Iterator[Cost]:
    for case in ET.parse(report).getroot().iter("testcase"):
        module = case.get("classname", "")
        noted = case.find(f"properties/property[@name='{PROPERTY}']")
        if noted is not None:
            folder = "/".join(module.split(".")[:2])
            yield Cost(float(noted.get("value", "0")), folder, f"{module.replace('.', '/')}.py::{case.get('name')}")


def table(costs: list[Cost]) -> str:
    """Return the lines to print: seconds and tests of each folder, then the tests that cost most."""
    seconds, tests = defaultdict[str, float](float), Counter(cost.folder for cost in costs)
    for cost in costs:
        seconds[cost.folder] += cost.seconds
    by_cost = sorted(seconds, key=seconds.__getitem__, reverse=True)
    folders = [f"{seconds[folder]:8.1f} s {tests[folder]:6} tests  {folder}" for folder in by_cost]
    slowest = [f"{cost.seconds:8.1f} s  {cost.name}" for cost in costs[:SLOWEST]]
    return "\n".join(["Processor time by folder:", *folders, f"The {len(slowest)} most expensive tests:", *slowest])
