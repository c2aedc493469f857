"""A trivial authored tool, warm: the whole way through the gate, next to the bare sandbox run."""

import asyncio
from collections.abc import Iterator

from bench import people
from bench.figures import Figure
from bench.measure import Stopwatch, median
from hitlchat import sandbox
from hitlchat.gate.background import background
from hitlchat.gate.crossing import in_db
from hitlchat.gate.models import Tool
from hitlchat.gate.settling import settled
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tools_studio import authoring
from tools_studio.authoring import Draft

CODE = "def run(n: int) -> int:\n    return n + 1\n"
ROUNDS, TIMES = 5, 40
GOAL_MS = 4.0


def measure() -> Iterator[Figure]:
    if not Tool.objects.filter(name="successor").exists():
        tool = authoring.create(Draft("successor", CODE, hitl_mode="DISABLED"), people.bob().pk)
        authoring.publish(tool)
    yield from asyncio.run(_figures())


async def _figures() -> list[Figure]:
    background.adopt(asyncio.get_running_loop())
    request = CallRequest("successor", {"n": 1}, await in_db(people.caller)())
    bare = await _rounds(_bare)
    whole = await _rounds(lambda: _whole(request))
    await background.drain(5)
    background.adopt(None)
    await sandbox.close()
    walls = sandbox.walls()
    note = "jailed" if walls.jailed else "not jailed here"
    return [
        Figure("bare sandbox run: wall", bare.wall, "ms", note=note),
        Figure("submit, allow, run, record: wall", whole.wall, "ms", bare.wall, GOAL_MS + bare.wall),
        Figure("what that adds: wall", whole.wall - bare.wall, "ms", goal=GOAL_MS),
        Figure("what that adds: CPU of this process", whole.cpu - bare.cpu, "ms"),
    ]


async def _rounds(work: object) -> Stopwatch:
    assert callable(work)
    rounds = []
    for number in range(ROUNDS + 1):
        with Stopwatch() as watch:
            for _ in range(TIMES):
                await work()
        if number:  # the first one warms up
            rounds.append(watch)
    return Stopwatch(
        cpu=median(one.cpu for one in rounds) * 1000 / TIMES, wall=median(one.wall for one in rounds) * 1000 / TIMES
    )


async def _bare() -> None:
    report = await sandbox.run(CODE, {"n": 1})
    assert report.result == 2


async def _whole(request: CallRequest) -> None:
    call = await settled((await submit(request)).pk, 10)
    assert call.status == Status.SUCCEEDED
    assert call.result == 2
