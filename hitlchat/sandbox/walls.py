"""The walls between a tool and this machine."""

import functools
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic_monty._binary import find_monty_binary

JAIL = Path(__file__).parents[1] / "base" / "jail.py"
OS_WALLS = ("rlimits", "no_new_privs", "landlock", "seccomp")
INTERPRETER = "interpreter"
# Putting them up takes 50 ms; a machine under load must not be taken for one that has none.
PROBE_SECONDS = 60


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
    probed = _probe(binary)
    return Walls({name: why for name in OS_WALLS if (why := probed.get(name, "no answer"))})


def _probe(binary: str) -> dict[str, str]:
    """Return for each wall the empty text if it went up, else why not."""
    command = [sys.executable, "-IS", str(JAIL), "probe", binary]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(OS_WALLS, f"the probe did not run ({type(error).__name__})")
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: why for name, _, why in lines}
