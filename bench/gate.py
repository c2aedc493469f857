"""What the gate costs a call: submit, ask, decide, claim, perform, on record."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db import transaction

from bench import people, sizes
from bench.figures import Figure
from bench.floor import Floor, timed
from bench.home import ARGUMENTS
from bench.measure import Stopwatch, database_bytes, median
from hitlchat.agent.models import Conversation, Role
from hitlchat.base.background import background
from hitlchat.base.database import in_db
from hitlchat.gate import decide
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, admit, prepare, submit
from hitlchat.gate.transition import call_moved

FEW, MANY = sizes.of((10, 10_000), (4, 20))
ROUNDS, TIMES = sizes.of((5, 40), (1, 2))
GOAL_MS, GOAL_BYTES = 3.0, 6 * 1024


def measure() -> Iterator[Figure]:
    floor = Floor()
    commit, least = timed(floor.commit), timed(floor.cycle)
    yield Figure("floor: one bare commit, CPU", commit.cpu, "ms", note=f"{commit.wall:.2f} ms on the wall")
    yield Figure("floor: two commits, compare-and-set, CPU", least.cpu, "ms", note=f"{least.wall:.2f} ms on the wall")
    people.ready()
    _wait(FEW)
    yield from _figures(f"{FEW} waiting, no conversation", None, least)
    yield from _figures(f"{FEW} waiting, {FEW} messages", people.conversation(FEW // 4), least)
    yield from _figures(f"{FEW} waiting, 1,000 messages", people.conversation(250), least)
    before = database_bytes()
    _wait(MANY - FEW)
    each = (database_bytes() - before) / (MANY - FEW)
    yield from _figures(f"{MANY:,} waiting, 1,000 messages", people.conversation(250), least)
    yield Figure("disk for a waiting approval", each / 1024, "KB", goal=GOAL_BYTES / 1024, note="with its audit event")


def _figures(where: str, conversation: Conversation | None, least: Stopwatch) -> Iterator[Figure]:
    found = asyncio.run(_cycles(conversation))
    written = f"{found.written / 1024:.0f} KB written"
    yield Figure(f"one call, {where}: CPU", found.cpu, "ms", least.cpu, GOAL_MS, note=written)
    yield Figure(f"one call, {where}: wall", found.wall, "ms", least.wall)


async def _cycles(conversation: Conversation | None) -> Stopwatch:
    turn = await in_db(_last_turn)(conversation) if conversation else None
    request = CallRequest(
        "gated",
        json.dumps(ARGUMENTS),
        await in_db(people.caller)(),
        among=conversation.tools if conversation else None,
        conversation_id=conversation.pk if conversation else None,
        turn_id=turn,
        user_prompt="call gated",
    )
    rounds = []
    async with _server_loop() as recorded:
        await _cycle(request, recorded)
        for _ in range(ROUNDS):
            with Stopwatch() as watch:
                for _ in range(TIMES):
                    await _cycle(request, recorded)
            rounds.append(watch)
    return Stopwatch(
        cpu=median(one.cpu for one in rounds) * 1000 / TIMES,
        wall=median(one.wall for one in rounds) * 1000 / TIMES,
        written=int(median(one.written for one in rounds) / TIMES),
    )


async def _cycle(request: CallRequest, recorded: asyncio.Queue[UUID]) -> None:
    call = await submit(request)
    approval = call.approval
    await in_db(decide.approve)(approval.pk, people.actor(), digest=approval.digest)
    assert await recorded.get() == call.pk


@asynccontextmanager
async def _server_loop() -> AsyncIterator[asyncio.Queue[UUID]]:
    """This loop works as a server's does; the queue tells which calls have succeeded."""
    loop = asyncio.get_running_loop()
    succeeded: asyncio.Queue[UUID] = asyncio.Queue()

    def listen(*, call_id: UUID, status: Status, **_: Any) -> None:
        if status == Status.SUCCEEDED:
            loop.call_soon_threadsafe(succeeded.put_nowait, call_id)

    background.adopt(loop)
    call_moved.connect(listen)
    yield succeeded
    call_moved.disconnect(listen)
    await background.drain(5)
    background.adopt(None)


def _wait(count: int) -> None:
    """Put so many calls on record that wait."""
    prepared = async_to_sync(prepare)(CallRequest("gated", json.dumps(ARGUMENTS), people.caller()))
    with transaction.atomic():
        calls = [admit(prepared) for _ in range(count)]
    assert ToolCall.objects.filter(status=Status.WAITING).count() >= len(calls)


def _last_turn(conversation: Conversation) -> UUID:
    return conversation.messages.filter(role=Role.ASSISTANT).order_by("-seq").values_list("pk", flat=True)[0]
