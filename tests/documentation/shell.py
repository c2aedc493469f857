"""A scratch installation as the documentation has it, and a shell in its folder."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2

from tests import forks, template
from tests.architecture.source import ROOT
from tests.ports import free_port
from tests.processes import Installation
from tests.waiting import until

PROGRAM: Final = ROOT / "tests" / "documentation" / "program.py"
# What a checkout has besides documentation; everything that is written goes into folders that are the scratch's own.
FILES: Final = (
    "Makefile",
    "manage.py",
    "hitlchat",
    "tools_studio",
    "requirements.lock",
    "requirements-dev.lock",
    "deploy",
)
COMMAND_SECONDS: Final = 60.0


class Scratch:
    """`folder`: in which commands are given, with `var` and a `.venv` of its own below."""

    def __init__(self, above: Path) -> None:
        self.folder = above / "hitlchat"
        for each in ("var", ".venv/bin", "bin"):
            (self.folder / each).mkdir(parents=True)
        for each in FILES:
            (self.folder / each).symlink_to(ROOT / each)
        template.copy_to(self.folder / "var" / "hitlchat.sqlite3")
        python = f'exec {sys.executable} -IS {PROGRAM} {forks.server()} {sys.executable} "$@"'
        for name, line in {
            ".venv/bin/python": python,
            "bin/python": python,
            # `manage.py` alone stands for it, as docs/operating.md says.
            "bin/manage.py": 'exec .venv/bin/python manage.py "$@"',
            # Shows what it was given.
            "bin/claude": "printf '%s\\n' \"$@\"",
        }.items():
            (self.folder / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
            (self.folder / name).chmod(0o755)
        for each in ("runtime", "dev"):
            (self.folder / ".venv" / each).touch()
        (self.folder / ".curlrc").write_text('fail-with-body\nnoproxy = "*"\nmax-time = 60\n', encoding="utf-8")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def variables(self) -> dict[str, str]:
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = {"PATH": path, "PORT": str(self.port), "CURL_HOME": str(self.folder), "SHOP_TOKEN": "a token"}
        return Installation(self.folder / "var").variables(**own)

    @contextmanager
    def shell(self) -> "Iterator[Shell]":
        shell = Shell(self)
        try:
            yield shell
        finally:
            shell.close()

    def is_ready(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/readyz", timeout=5, trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False


class Shell:
    """Bash, which is given one command after the other. What is in the background is ended with it."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._log = scratch.folder.parent / f"shell-{os.urandom(4).hex()}.log"
        self._servers = self._log.with_suffix(".servers")
        self._count = 0
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                cwd=scratch.folder,
                env=scratch.variables(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )

    @property
    def output(self) -> str:
        """Return everything that was written, but by servers."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def run(self, command: str, entry: str = "") -> str:
        """Run it to its end and return what it wrote; `entry` is what is typed. AssertionError if it fails."""
        code, written = self._give(f"{{ {command}\n}} <<'TYPED'\n{entry}TYPED")
        assert code == 0, f"{command}\nended with {code}:\n{written}"
        return written

    def serve(self, command: str) -> None:
        """Start a server in the background, and wait until it is ready."""
        self._give(f"{_bare(command)} >>{self._servers} 2>&1 &")
        until(self._serves, f"{command} serves", seconds=COMMAND_SECONDS)

    def watch(self, command: str, words: str) -> str:
        """Run what does not end by itself until it has written these words."""
        before = len(self.output)
        self._give(f"{_bare(command)} &")
        until(lambda: words in self.output[before:], f"{command} shows {words!r}")
        self._give("kill %%; wait %%")
        return self.output[before:]

    def close(self) -> None:
        try:
            self._give("kill $(jobs -p) 2>/dev/null; wait")
        finally:
            # A fork is killed when the program that stands for it is.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()

    def _serves(self) -> bool:
        assert self._give('[ -n "$(jobs -pr)" ]')[0] == 0, f"the server ended:\n{self._servers.read_text()[-4000:]}"
        return self._scratch.is_ready()

    def _give(self, command: str) -> tuple[int, str]:
        """Give it to the shell, and return its exit code and what was written meanwhile."""
        assert self._process.stdin is not None
        self._count += 1
        mark, before = f"--- command {self._count} ended with ", len(self.output)
        self._process.stdin.write(f"{command}\nprintf '\\n{mark}%s.\\n' $?\n")
        self._process.stdin.flush()

        def ended() -> "tuple[int, str] | None":
            written, found, rest = self.output[before:].partition(f"\n{mark}")
            assert self._process.poll() is None, f"the shell ended:\n{self.output[-4000:]}"
            return (int(rest.partition(".")[0]), written) if found and "." in rest else None

        done = until(ended, command, seconds=COMMAND_SECONDS)
        assert done is not None
        return done


def with_terminal(command: str) -> str:
    """Return the command so that it is run at a terminal, which is given what it reads."""
    quoted = command.replace("'", "'\\''")
    return f"script --quiet --return --command '{quoted}' /dev/null"


def _bare(command: str) -> str:
    """Return a command without the comment behind it, and without its own way into the background."""
    return re.sub(r"\s+# .*$", "", command).removesuffix("&")


def filled(command: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        command = command.replace(name, value)
    return command
