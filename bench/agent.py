"""A whole gated turn: the user says something, the model calls a tool, it waits, a yes, it runs, the model answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx2
from channels.layers import get_channel_layer
from django.conf import settings

from bench import people, sizes
from bench.children import model_server
from bench.figures import Figure
from bench.floor import Floor
from bench.measure import Stopwatch, median
from hitlchat.agent import runner
from hitlchat.agent.model_client import client, endpoint
from hitlchat.agent.models import Conversation, Run, RunStatus
from hitlchat.agent.transcript import wires
from hitlchat.agent.writing import group
from hitlchat.base.background import background
from hitlchat.base.database import in_db
from hitlchat.gate import decide
from hitlchat.gate.models import Approval

TURNS = sizes.of((10, 100, 500), (10,))
REPEATS = sizes.of(9, 1)
# CPU in milliseconds and kilobytes written, at each of those turns.
GOALS: dict[int, tuple[float | None, float | None]] = {10: (15, 64), 100: (None, 64), 500: (60, 64)}


def measure() -> Iterator[Figure]:
    people.ready()
    with model_server() as model:
        for name, value in model.items():
            setattr(settings, name, value)
        for turn in TURNS:
            yield from asyncio.run(_at(turn))


async def _at(turn: int) -> list[Figure]:
    talk = await in_db(people.conversation)(turn - 1)
    async with _server_loop(talk) as events:
        await _turn(talk, events, "gated")
        # By turns, so that what else the machine does meets both alike.
        pairs = [(await _turn(talk, events, "gated"), await _turn(talk, events, "free")) for _ in range(REPEATS)]
    gated, free = zip(*pairs, strict=True)
    least = await _floor(talk)
    cpu, free_cpu = (median(one.cpu for one in found) * 1000 for found in (gated, free))
    wall, written = median(one.wall for one in gated) * 1000, median(one.written for one in gated) / 1024
    cpu_goal, written_goal = GOALS[turn]
    return [
        Figure(f"turn {turn}, gated: CPU", cpu, "ms", least.cpu * 1000, cpu_goal, note=f"{wall:.0f} ms on the wall"),
        Figure(f"turn {turn}: what the gate adds to one that needs no yes: CPU", cpu - free_cpu, "ms"),
        Figure(f"turn {turn}, gated: written", written, "KB", least.written / 1024, written_goal),
    ]


class Events:
    """What open pages are told, in the order of telling."""

    def __init__(self, layer: Any, channel: str) -> None:
        self._layer = layer
        self._channel = channel

    async def until(self, kind: str, times: int = 1) -> dict[str, Any]:
        event: dict[str, Any] = {}
        while times:
            event = await asyncio.wait_for(self._layer.receive(self._channel), 20)
            times -= event["type"] == f"conversation.{kind}"
        return event


@asynccontextmanager
async def _server_loop(talk: Conversation) -> AsyncIterator[Events]:
    """This loop works as a server's does, without its sweeper."""
    background.adopt(asyncio.get_running_loop())
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(group(talk.pk), channel)
    yield Events(layer, channel)
    await runner.let_go()
    await background.drain(5)
    background.adopt(None)
    await client(endpoint()).close()
    client.cache_clear()


async def _turn(talk: Conversation, events: Events, tool: str) -> Stopwatch:
    watch = Stopwatch()
    with watch:
        _, run_id = await in_db(runner.say)(talk, f"call {tool}, please")
        await events.until("message", 3)
        if tool == "gated":
            await events.until("run")
    if tool == "gated":
        approval = await in_db(_waiting)(talk)
        with watch:
            await in_db(decide.approve)(approval.pk, people.actor(), digest=approval.digest)
    with watch:
        await events.until("message", 2)
        await asyncio.sleep(0.01)
    assert await in_db(_status)(run_id) == RunStatus.DONE
    return watch


def _waiting(talk: Conversation) -> Approval:
    return Approval.objects.get(call__conversation_id=talk.pk, call__status="waiting")


def _status(run_id: UUID) -> str:
    return Run.objects.get(pk=run_id).status


# -- The least that a turn can cost: two streamed requests and two commits, by hand ------------------------------------


async def _floor(talk: Conversation) -> Stopwatch:
    history = await in_db(wires)(talk.pk, to="")
    floor = await in_db(Floor)()
    rounds = []
    async with httpx2.AsyncClient(timeout=30, trust_env=False) as http:
        await _request(http, history)
        for _ in range(REPEATS):
            with Stopwatch() as watch:
                await _request(http, history)
                await in_db(floor.cycle)()
                await _request(http, history)
            rounds.append(watch)
    return Stopwatch(cpu=median(one.cpu for one in rounds), written=int(median(one.written for one in rounds)))


async def _request(http: httpx2.AsyncClient, history: list[str]) -> list[Any]:
    body = f'{{"model":"bench","stream":true,"messages":[{",".join(history)}]}}'.encode()
    found = []
    headers = {"Content-Type": "application/json"}
    async with http.stream("POST", f"{settings.OPENAI_BASE_URL}/chat/completions", content=body, headers=headers) as r:
        async for line in r.aiter_lines():
            if line.startswith("data: {"):
                found.append(json.loads(line[6:])["choices"][0]["delta"])
    return found
