"""Faults: servers killed at a moment of some call, halted for longer than a lease, cut off from what they stand on."""

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

KILL, HALT, HOLD, CUT = "kill", "halt", "hold", "cut"
KILLS_PER_FAULT: Final = 8
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


@dataclass
class Tally:
    """How many faults there were by kind; kills by the moment waited for, and by the states that calls were left in."""

    faults: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)


def play(stage: Stage, kills: int, random: Random) -> Tally:
    """Let so many kills and some other faults happen, in a random order. All servers are up in the end."""
    tally, others = Tally(), [HALT, *(f"{what} {name}" for name in stage.lines for what in (HOLD, CUT))]
    plan = [KILL] * kills + [others[number % len(others)] for number in range(kills // KILLS_PER_FAULT)]
    random.shuffle(plan)
    for fault in plan:
        time.sleep(random.uniform(*CALM_SECONDS))
        tally.faults[fault] += 1
        what, _, name = fault.partition(" ")
        if what == KILL:
            _kill(stage, random, tally)
        elif what == HALT:
            _halt(random.choice(stage.servers), random.uniform(*HALT_SECONDS))
        else:
            line, seconds = stage.lines[name], random.uniform(*LINE_SECONDS)
            (line.hold if what == HOLD else line.cut)(seconds)
    return tally


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
