"""The walls between a tool and this machine, and what an administrator is told about them."""

import functools
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic_monty._binary import find_monty_binary

from hitlchat.base.sentences import translatable

# What starts the processes, as it was when this one started.
PYTHON = sys.executable
JAIL = Path(__file__).parents[1] / "base" / "jail.py"
OS_WALLS = ("rlimits", "no_new_privs", "landlock", "seccomp")
INTERPRETER = "interpreter"
# Putting them up takes 50 ms; a machine under load must not be taken for one that has none.
PROBE_SECONDS = 60
# The process that drives the interpreter imports this without Django's settings, which gettext_noop would read.
KEEPS_OUT = {
    "interpreter": translatable(
        "A separate interpreter runs the code of tools. It has no access to files, processes, the network "
        "or environment variables, only to what a tool was granted."
    ),
    "rlimits": translatable(
        "The kernel limits each worker's memory, processor time and open files, and lets it write no file."
    ),
    "no_new_privs": translatable("A worker cannot gain rights by starting another program."),
    "landlock": translatable("A worker can open no file but the interpreter's own, and reach no other process."),
    "seccomp": translatable(
        "The kernel ends a worker at any system call beyond the few that the interpreter needs: no sockets, no new"
        " processes."
    ),
}


@dataclass(frozen=True)
class Walls:
    """The walls that are not up, each with why; all others are."""

    missing: Mapping[str, str]

    @property
    def interpreter(self) -> bool:
        return INTERPRETER not in self.missing

    @property
    def jailed(self) -> bool:
        """Return whether each wall of the kernel is up: what TOOLS_REQUIRE_JAIL demands."""
        return len(self.names) == len(OS_WALLS)

    @property
    def names(self) -> tuple[str, ...]:
        """The walls of the kernel that are up, in the order in which a worker puts them up."""
        return tuple(name for name in OS_WALLS if name not in self.missing)

    @property
    def reason(self) -> str:
        """Return which walls are not up and why; empty if all are."""
        return "; ".join(f"{name}: {why}" for name, why in self.missing.items())


@functools.cache
def walls() -> Walls:
    """Return what holds on this machine, found by putting it up around a process that ends at once."""
    try:
        binary = find_monty_binary()
    except FileNotFoundError:
        not_tried = dict.fromkeys(OS_WALLS, "not tried, because there is no interpreter to confine")
        return Walls({INTERPRETER: "pydantic-monty is not installed", **not_tried})
    if not sys.platform.startswith("linux"):
        return Walls(dict.fromkeys(OS_WALLS, "it needs Linux"))
    command = [sys.executable, "-IS", str(JAIL), "probe", binary]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Walls(dict.fromkeys(OS_WALLS, f"the probe did not run ({type(error).__name__})"))
    # A line for each wall: its name, and why it did not go up, if it did not.
    answers = {name: why for name, _, why in (line.partition(" ") for line in done.stdout.splitlines())}
    return Walls({name: why for name in OS_WALLS if (why := answers.get(name, "no answer"))})


def launcher(folder: Path, found: Walls) -> Path:
    """Write the file that a keeper starts as its worker: away from our folder, into the jail, then the interpreter."""
    jail = [PYTHON, "-IS", str(JAIL), "exec", ",".join(found.names)] if found.names else []
    script = folder / "worker"
    command = shlex.join([*jail, find_monty_binary()])
    script.write_text(f'#!/bin/sh\ncd / && exec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


@dataclass(frozen=True)
class Wall:
    """One wall around tool code: in one sentence what it keeps out, and why it is missing if it is."""

    name: str
    keeps_out: str
    missing: str = ""

    @property
    def is_up(self) -> bool:
        return not self.missing


@dataclass(frozen=True)
class Status:
    """`missing` names the walls that are down and why, `failure` says why the last start of a worker failed."""

    walls: list[Wall]
    missing: str
    is_jailed: bool
    is_jail_required: bool
    most_workers: int
    workers: int
    interpreter: str
    failure: str

    @property
    def is_started(self) -> bool:
        return self.workers > 0

    @property
    def is_partly_jailed(self) -> bool:
        return any(wall.is_up for wall in self.walls[1:])

    @property
    def can_run(self) -> bool:
        return self.walls[0].is_up and (self.is_jailed or not self.is_jail_required)
