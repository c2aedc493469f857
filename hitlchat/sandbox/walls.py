"""Which walls stand between a tool and this machine."""

import functools
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic_monty._binary import find_monty_binary

JAIL = Path(__file__).with_name("jail.py")
OS_WALLS = ("rlimits", "no_new_privs", "landlock", "seccomp")


@dataclass(frozen=True)
class Walls:
    """True for each wall that is up; `reason` says why the others are not."""

    interpreter: bool
    rlimits: bool
    no_new_privs: bool
    landlock: bool
    seccomp: bool
    reason: str

    @property
    def jailed(self) -> bool:
        """Whether the kernel holds a worker. Landlock may be missing: then it could read files, not send them."""
        return self.rlimits and self.no_new_privs and self.seccomp

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in OS_WALLS if getattr(self, name))


@functools.cache
def walls() -> Walls:
    """What holds on this machine, found by putting it up around a process that ends at once."""
    try:
        binary = find_monty_binary()
    except FileNotFoundError:
        return _walls({}, "the interpreter is not installed: install pydantic-monty")
    if not sys.platform.startswith("linux"):
        return _walls({"interpreter": ""}, "the jail needs Linux")
    said = _probe(binary)
    reasons = [f"{name}: {said.get(name, 'no answer')}" for name in OS_WALLS if said.get(name, "?")]
    return _walls(said | {"interpreter": ""}, "; ".join(reasons))


def _walls(said: dict[str, str], reason: str) -> Walls:
    up = {name: said.get(name) == "" for name in ("interpreter", *OS_WALLS)}
    return Walls(**up, reason=reason)


def _probe(binary: str) -> dict[str, str]:
    """Per wall the empty text if it went up, else why not."""
    command = [sys.executable, "-IS", str(JAIL), "probe", binary]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False, env={})  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(OS_WALLS, f"the probe did not run ({type(error).__name__})")
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: why for name, _, why in lines}
