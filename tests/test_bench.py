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


@pytest.mark.embedded
@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_the_bench_prints_its_figures(part: str) -> None:
    command = [sys.executable, "-m", "bench", "--small", part]
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_PASS}
    done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    # Between the heads of the table and what the machine was busy with.
    printed, _, _ = done.stdout.partition("\n  (load ")
    rows = re.split(r"\n {20,}measured .*\n", printed)[1].splitlines()
    figures = [line for line in rows if not line.startswith(" ")]  # the end of a long note
    assert figures
    assert [line for line in figures if not FIGURE.match(line) and "no Chromium here" not in line] == []
