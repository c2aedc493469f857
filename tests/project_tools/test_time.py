"""Functions that take too long, and what is said of them meanwhile and afterwards."""

import asyncio
import threading
from concurrent.futures import Future

import pytest
from django.contrib.auth.models import User

from hitlchat.base.background import Busy, OwnThreads, background
from hitlchat.base.database import in_db
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.project_tools import tool
from tests.conftest import caller
from tests.gate.asking import fresh, status
from tests.project_tools.conftest import Offer
from tests.waiting import SECONDS, soon, stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("server_loop")]


async def begin(user: User, name: str) -> ToolCall:
    return await submit(CallRequest(name, {}, caller(user)))


async def becomes(call: ToolCall, wanted: Status) -> ToolCall:
    await stored(lambda: status(call) == wanted, f"the call is {wanted}")
    return await in_db(fresh)(call)


@pytest.mark.guarantee("gate:truth")
async def test_a_thread_that_goes_on_leaves_the_outcome_unknown_until_it_ends(bob: User, offer: Offer) -> None:
    let_go = threading.Event()

    @tool(risk=0, timeout_seconds=0.1)
    def slow() -> str:
        let_go.wait(SECONDS)
        return "after all"

    await in_db(offer)()
    call = await becomes(await begin(bob, "slow"), Status.UNKNOWN)
    event = await AuditEvent.objects.aget(call=call, name="call.unknown")
    assert event.data["reason"] == "it took longer than 0.1 s, cannot be stopped, and may still be running"
    let_go.set()
    assert (await becomes(call, Status.SUCCEEDED)).result == "after all"


async def test_an_async_function_is_stopped_and_has_failed(bob: User, offer: Offer) -> None:
    reached: list[str] = []

    @tool(risk=0, timeout_seconds=0.1)
    async def slow() -> None:
        reached.append("begun")
        await asyncio.Event().wait()
        reached.append("ended")

    await in_db(offer)()
    call = await becomes(await begin(bob, "slow"), Status.FAILED)
    assert call.error["message"].startswith("It took longer than 0.1 s and was stopped.")
    assert reached == ["begun"]


async def test_an_async_function_that_ends_in_spite_of_the_stop_has_succeeded(bob: User, offer: Offer) -> None:
    @tool(risk=0, timeout_seconds=0.1)
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cleaned up"
        return "never"

    await in_db(offer)()
    assert (await becomes(await begin(bob, "stubborn"), Status.SUCCEEDED)).result == "cleaned up"


async def test_a_function_that_cancels_itself_has_failed(bob: User, offer: Offer) -> None:
    @tool(risk=0)
    async def gives_up() -> None:
        raise asyncio.CancelledError

    await in_db(offer)()
    call = await becomes(await begin(bob, "gives_up"), Status.FAILED)
    assert call.error["message"] == "It was not finished: the function cancelled itself."


async def test_a_slow_function_does_not_hold_up_the_others(bob: User, offer: Offer) -> None:
    let_go = threading.Event()

    @tool(risk=0)
    def slow() -> None:
        let_go.wait(SECONDS)

    @tool(risk=0)
    def quick() -> int:
        return User.objects.count()

    await in_db(offer)()
    waiting = [await begin(bob, "slow") for _ in range(5)]
    assert (await becomes(await begin(bob, "quick"), Status.SUCCEEDED)).result == 1
    assert [await in_db(status)(call) for call in waiting] == [Status.EXECUTING] * 5
    let_go.set()
    for call in waiting:
        await becomes(call, Status.SUCCEEDED)


async def test_a_server_that_stops_does_not_wait_for_a_thread(bob: User, offer: Offer) -> None:
    entered, let_go, gone = threading.Event(), threading.Event(), threading.Event()

    @tool(risk=0)
    def slow() -> None:
        entered.set()
        let_go.wait(SECONDS)
        gone.set()

    await in_db(offer)()
    call = await begin(bob, "slow")
    await soon(entered.is_set)
    await background.drain(0.01)
    event = await AuditEvent.objects.aget(call=call, name="call.unknown")
    assert (event.data["reason"], gone.is_set()) == ("the server stopped while it was executing", False)
    let_go.set()
    await soon(gone.is_set)


def test_more_threads_than_there_may_be_are_refused() -> None:
    let_go, threads = threading.Event(), OwnThreads("project-tool", most=1)
    first: Future[bool] = threads.submit(let_go.wait, SECONDS)
    with pytest.raises(Busy):
        threads.submit(let_go.wait, SECONDS)
    let_go.set()
    assert first.result(SECONDS)
    assert threads.submit(lambda: "free again").result(SECONDS) == "free again"
