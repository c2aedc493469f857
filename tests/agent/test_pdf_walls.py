"""The walls around what reads PDFs: held by a hostile program that stands in its place."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.test import override_settings

from hitlchat.agent.attachments import pdf
from hitlchat.agent.attachments.pdf import Limits
from hitlchat.sandbox.walls import walls
from tests import attaching

jailed = pytest.mark.skipif(not walls().jailed, reason=f"no jail on this machine: {walls().reason}")

HOSTILE = """
import ctypes, os, socket, subprocess, sys, tempfile
mine = {mine!r}
def main():
    try:
        {attempt}
    except (OSError, PermissionError) as error:
        sys.stdout.write("refused")
    else:
        sys.stdout.write("DONE")
"""
ATTEMPTS = {
    "read a file of the system": "open('/etc/passwd').read()",
    "read a file of ours": "open(mine).read()",
    "list our folder": "os.listdir(os.path.dirname(mine))",
    "write a file": "open(mine, 'w')",
    "write a module of Python": "open(os.path.join(os.path.dirname(os.__file__), 'x.py'), 'w')",
    "remove a file": "os.unlink(mine)",
    "make a temporary file": "tempfile.TemporaryFile()",
    "open a socket": "socket.socket()",
    "open a socket of this machine": "socket.socket(socket.AF_UNIX)",
    "start a program": "subprocess.run(['/bin/true'])",
    "become a program": "os.execv('/bin/true', ['true'])",
    "fork": "os.fork()",
    "send a signal": "os.kill(os.getppid(), 0)",
    "read the memory of its parent": "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "read the environment of its parent": "open(f'/proc/{os.getppid()}/environ', 'rb').read()",
}


def ran(folder: Path, attempt: str) -> subprocess.CompletedProcess[str]:
    mine, program = folder / "mine.txt", folder / "program" / "hostile.py"
    mine.write_text("secret", encoding="utf-8")
    program.parent.mkdir()
    program.write_text(HOSTILE.format(mine=str(mine), attempt=attempt), encoding="utf-8")
    command = pdf.command(Limits(1000), program)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={}, cwd="/")


@jailed
@pytest.mark.parametrize("attempt", list(ATTEMPTS))
def test_a_hostile_program_in_the_place_of_the_reader_cannot(attempt: str, tmp_path: Path) -> None:
    done = ran(tmp_path, ATTEMPTS[attempt])
    assert (done.stdout, done.returncode) == ("refused", 0), done.stderr
    assert (tmp_path / "mine.txt").read_text(encoding="utf-8") == "secret"


@jailed
@pytest.mark.parametrize(
    "needed", ["import colorsys", "print()", "sys.stdout.flush(); os.getpid(); 'a'.encode('cp437')"]
)
def test_what_reading_a_pdf_takes_is_allowed(needed: str, tmp_path: Path) -> None:
    done = ran(tmp_path, needed)
    assert (done.stdout.strip(), done.returncode) == ("DONE", 0), done.stderr


@jailed
@override_settings(TOOLS_REQUIRE_JAIL=True)
def test_with_all_walls_demanded_a_pdf_is_read_behind_them() -> None:
    assert pdf.extract(attaching.pdf("Hello"), "a.pdf", Limits(1000)).text == "Hello"


# Behind a filter that refuses Landlock, as a kernel without it does.
LESS = """
import runpy, sys
jail = runpy.run_path(sys.argv[1])
jail["seccomp"](python=True)
jail["run"](sys.argv[2], demanded=sys.argv[3] == "all")
"""


@jailed
@pytest.mark.parametrize("how, code, said", [("all", pdf.NO_WALL, ""), ("has", 0, "DONE")])
def test_a_wall_that_is_missing_matters_where_it_is_demanded(tmp_path: Path, how: str, code: int, said: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(HOSTILE.format(mine="", attempt="print()"), encoding="utf-8")
    command = [sys.executable, "-I", "-c", LESS, str(pdf.JAIL), str(program), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert (done.returncode, done.stdout.strip()) == (code, said)
