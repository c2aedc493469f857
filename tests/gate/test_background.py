"""Work beside requests, and the process that does it."""

import subprocess
import sys
from typing import Final

from tests.processes import ROOT

# As a server does that loads the application once and forks for each worker.
FORKING: Final = """
import os
from hitlchat.base.background import me
print(me(), flush=True)
if child := os.fork():
    os.waitpid(child, 0)
print(me(), flush=True)
"""


def test_a_fork_has_a_name_of_its_own_in_leases() -> None:
    command = [sys.executable, "-c", FORKING]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    before, in_fork, after = done.stdout.split()
    assert before == after != in_fork
