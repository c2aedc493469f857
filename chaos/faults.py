"""Faults: servers killed at a moment of some call, halted for longer than a lease, cut off from what they stand on,
without room on the disk, or with a clock that jumps.
"""

import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Final

from chaos.moments import MOMENTS, Moment
from chaos.stage import Stage
from hitlchat.agent.models import Run, RunStatus
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import SETTLED
from tests.processes import Server
from tests.shifted import BACKWARDS, FORWARDS

KILL, HALT, HOLD, CUT, FILL, JUMP = "kill", "halt", "hold", "cut", "full disk", "clock jumps"
KILLS_PER_FAULT: Final = 5
# Most promises are at stake around a run.
WAITED_FOR: Final[tuple[Moment | None, ...]] = (*MOMENTS, *MOMENTS[-2:] * 2, None)
# So long a busy machine may take until it comes; and what is waited for where no moment is.
MOMENT_SECONDS, ANY_SECONDS = 8.0, 2.0
AFTER_A_MOMENT: Final = 0.03
# Between two faults, so that calls get somewhere.
CALM_SECONDS: Final = (0.0, 0.4)
# A lease of these servers is three seconds: others may take over meanwhile, or not.
HALT_SECONDS: Final = (0.5, 5.0)
LINE_SECONDS: Final = (0.2, 2.0)
DOWN_SECONDS: Final = 0.2
FULL_SECONDS: Final = (0.5, 3.0)
# What is left on the disk: at most what the database's log has reached already, and a few transactions.
ROOM: Final = 100_000
# After a fault that leaves its server alive, the next tool must run within this time.
GOES_ON_SECONDS: Final = 30.0


@dataclass
class Tally:
    """How many faults there were by kind; kills by the moment waited for, and by the states that calls were left in.

    `stuck`: what was not over with the fault. `untried`: why others were not tried.
    """

    faults: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    stuck: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)


def play(stage: Stage, kills: int, random: Random) -> Tally:
    """Let so many kills and some other faults happen, in a random order. All servers are up in the end."""
    tally = Tally()
    others = [*_of_place(stage, tally), HALT]
    plan = [KILL] * kills + [others[number % len(others)] for number in range(kills // KILLS_PER_FAULT)]
    random.shuffle(plan)
    for fault in plan:
        time.sleep(random.uniform(*CALM_SECONDS))
        tally.faults[fault] += 1
        if fault == KILL:
            _kill(stage, random, tally)
            continue
        _happen(fault, stage, random.choice(stage.servers), random)
        if not stage.moments.wait("in the tool", GOES_ON_SECONDS):
            tally.stuck.append(f"after a fault ({fault}) no tool ran for {GOES_ON_SECONDS:g} s")
    return tally


def _of_place(stage: Stage, tally: Tally) -> list[str]:
    """Return the faults that this place can have besides."""
    if stage.lines:
        return [JUMP, *(f"{what} {name}" for name in stage.lines for what in (HOLD, CUT))]
    try:
        stage.servers[0].limit_files(None)
    except (OSError, AttributeError) as error:
        tally.untried.append(f"{FILL}: this system does not let a process limit the files of another ({error})")
        return []
    return [FILL]


def _happen(fault: str, stage: Stage, server: Server, random: Random) -> None:
    what, _, name = fault.partition(" ")
    if fault == HALT:
        _halt(server, random.uniform(*HALT_SECONDS))
    elif fault == FILL:
        _fill(stage, server, random)
    elif fault == JUMP:
        server.signal(random.choice((FORWARDS, BACKWARDS)))
    else:
        line, seconds = stage.lines[name], random.uniform(*LINE_SECONDS)
        (line.hold if what == HOLD else line.cut)(seconds)


def _kill(stage: Stage, random: Random, tally: Tally) -> None:
    moment, server = random.choice(WAITED_FOR), random.choice(stage.servers)
    if moment is None:
        time.sleep(random.uniform(0, ANY_SECONDS))
    else:
        stage.moments.wait(moment, MOMENT_SECONDS)
        time.sleep(random.uniform(0, AFTER_A_MOMENT))
    server.kill()
    tally.kills[moment or "any"] += 1
    tally.states.update({*ToolCall.objects.exclude(status__in=SETTLED).values_list("status", flat=True)})
    tally.states["run at work"] += Run.objects.filter(status=RunStatus.RUNNING).exists()
    time.sleep(random.uniform(0, DOWN_SECONDS))
    server.start()


def _halt(server: Server, seconds: float) -> None:
    server.signal(signal.SIGSTOP)
    time.sleep(seconds)
    server.signal(signal.SIGCONT)


def _fill(stage: Stage, server: Server, random: Random) -> None:
    """Leave room for a few writes, which may end in the middle of a transaction, then none; then as before."""
    log = stage.home.folder / "hitlchat.sqlite3-wal"
    server.limit_files(random.randrange(ROOM + (log.stat().st_size if log.exists() else 0)))
    time.sleep(random.uniform(*FULL_SECONDS))
    server.limit_files(None)
