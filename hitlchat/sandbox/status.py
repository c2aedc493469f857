"""The state of the sandbox, for an administrator's page."""

from dataclasses import dataclass
from importlib.metadata import version

from django.conf import settings

from hitlchat.base.sentences import translatable
from hitlchat.sandbox import pool
from hitlchat.sandbox.walls import walls

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
    is_started: bool
    interpreter: str
    failure: str

    @property
    def is_partly_jailed(self) -> bool:
        return any(wall.is_up for wall in self.walls[1:])

    @property
    def can_run(self) -> bool:
        return self.walls[0].is_up and (self.is_jailed or not self.is_jail_required)


def status() -> Status:
    """Return the state in this process. Starts nothing; the first call probes the walls, which takes a moment."""
    found, started = walls(), pool.current()
    return Status(
        walls=[Wall(name, sentence, found.missing.get(name, "")) for name, sentence in KEEPS_OUT.items()],
        missing=found.reason,
        is_jailed=found.jailed,
        is_jail_required=bool(settings.TOOLS_REQUIRE_JAIL),
        most_workers=settings.TOOL_WORKERS,
        workers=started.size if started else 0,
        is_started=started is not None and started.size > 0,
        interpreter=f"pydantic-monty {version('pydantic-monty')}",
        failure=started.failure if started else "",
    )
