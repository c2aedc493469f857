"""The database of a test run goes with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.services import postgres_url

pytestmark = pytest.mark.servers("a pool keeps the connections there")

# A thread that is over, and whose connection is kept by what nobody has cleared away yet.
CONFTEST = "from tests.emptying import django_db_setup\n"
LEAVES_A_SESSION = """
import threading
import pytest
from django.db import connections

kept = []

def work():
    kept.append(connections["default"])
    kept[0].ensure_connection()

@pytest.mark.django_db(transaction=True)
def test_leaves_a_session():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert kept[0].connection is not None
"""


@pytest.mark.postgres
def test_a_session_that_a_thread_left_open_does_not_keep_the_database(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_made.py").write_text(LEAVES_A_SESSION, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own = {"DATABASE_URL": f"{str(postgres_url()).rpartition('/')[0]}/left_open_{os.getpid()}"}
    options = ["-p", "no:cacheprovider", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml")]
    command = [sys.executable, "-m", "pytest", "-q", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=kept | own, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
