"""The bench works: each of its parts comes to an end, and prints figures."""

import os
import re
import subprocess
import sys

import pytest

from bench.parts import PARTS
from tests.architecture.source import ROOT
from tests.run import OF_A_PASS

FIGURE = re.compile(r"^\S.*?  +-?[\d,.]+  \S")
NAMES = [*PARTS]


@pytest.mark.slow("starts servers and a browser")
@pytest.mark.timeout(600)
@pytest.mark.embedded
@pytest.mark.parametrize("parts", [NAMES[begin::3] for begin in range(3)], ids=" ".join)
def test_each_part_of_the_bench_prints_its_figures(parts: list[str]) -> None:
    command = [sys.executable, "-m", "bench", "--small", *parts]
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_PASS}
    done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=220, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for part in (each for each in parts if f"{each}: PostgreSQL and Redis are not both here" not in done.stdout):
        # Between the heads of the table and what the machine was busy with.
        table = re.search(rf"^{part}: .*\n {{20,}}measured .*\n((?:.*\n)*?)  \(load ", done.stdout, re.MULTILINE)
        assert table, done.stdout
        figures = [line for line in table[1].splitlines() if not line.startswith(" ")]  # else the end of a long note
        assert figures, part
        assert [line for line in figures if not FIGURE.match(line) and "no Chromium here" not in line] == []
