"""Who may use a worker, and who is next."""

import asyncio

import pytest
from pytest_django import Settings

from hitlchat.sandbox import Share, run
from hitlchat.sandbox import shares as real
from hitlchat.sandbox.pool import Shares, largest
from tests.waiting import soon

ONE = "def run():\n    return 1\n"


@pytest.fixture
def shares(settings: Settings) -> Shares:
    settings.TOOL_WORKERS = 4
    return Shares()


def taken(shares: Shares, *people: str) -> list[Share | None]:
    return [shares.now(person) for person in people]


def test_one_person_holds_at_most_half_of_the_workers(shares: Shares) -> None:
    first, second, third = taken(shares, "bob", "bob", "bob")
    assert first
    assert second
    assert third is None
    assert shares.now("charlie")
    first.leave()
    first.leave()
    assert [share is not None for share in taken(shares, "bob", "bob")] == [True, False]


@pytest.mark.parametrize("workers, most", [(1, 1), (2, 1), (3, 1), (4, 2), (64, 32)])
def test_there_is_always_a_share(settings: Settings, workers: int, most: int) -> None:
    settings.TOOL_WORKERS = workers
    assert largest() == most


def test_what_is_short_has_no_share_of_its_own_but_needs_a_worker_too(shares: Shares) -> None:
    assert all(shares.now("bob", is_run=False) for _ in range(4))
    assert shares.now("charlie", is_run=False) is None


async def test_a_free_worker_goes_to_whoever_holds_the_fewest_and_then_to_the_first(shares: Shares) -> None:
    held = taken(shares, "bob", "bob", "dora", "dora")
    got: list[str] = []

    async def waits(person: str, since: float) -> None:
        if await shares.soon(person, 20, since=since):
            got.append(person)

    people = [("bob", 1.0), ("dora", 2.0), ("erin", 4.0), ("charlie", 3.0)]
    async with asyncio.TaskGroup() as group:
        for person, since in people:
            group.create_task(waits(person, since))
        await soon(lambda: len(shares._waiting) == len(people), "all wait")
        for share in held:
            assert share
            share.leave()
    assert got == ["charlie", "bob", "erin", "dora"]


async def test_who_gives_up_waiting_takes_nothing(shares: Shares) -> None:
    held = taken(shares, "bob", "bob", "dora", "dora")
    assert await shares.soon("charlie", 0.01) is None
    waiting = asyncio.ensure_future(shares.soon("charlie", 20))
    await asyncio.sleep(0)
    waiting.cancel()
    for share in held:
        assert share
        share.leave()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert all(taken(shares, "bob", "bob", "charlie", "charlie"))


@pytest.mark.slow("waits as long as a run waits for a worker")
async def test_a_run_on_a_share_finds_its_worker_however_many_wait(settings: Settings) -> None:
    settings.TOOL_WORKERS = 2
    mine, other = real.now("bob"), real.now("charlie")
    assert mine
    assert other
    try:
        with mine.used():
            assert (await run(ONE, {})).result == 1
            assert (await run(ONE, {})).result == 1
        fault = (await run(ONE, {})).fault
        assert fault
        assert fault.kind == "busy"
    finally:
        mine.leave()
        other.leave()
    with mine.used():  # given back: it asks for another
        assert (await run(ONE, {})).result == 1
