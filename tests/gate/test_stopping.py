"""A call that executes is told to stop: what ends for certain has failed, and what cannot stop goes on."""

import pytest
from django.contrib.auth.models import User

from hitlchat.base.database import in_db
from hitlchat.gate import stopping
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from hitlchat.gate.transition import note
from tests.conftest import MakeTool, caller, signed_in
from tests.gate.asking import events, fresh
from tests.waiting import stored

pytestmark = pytest.mark.django_db

SLOW = 'import time\n\n\ndef run() -> str:\n    """Take its time."""\n    time.sleep(9)\n    return "slept"\n'


@pytest.fixture
async def executing(server_loop: None, make_tool: MakeTool, bob: User) -> ToolCall:
    """An authored tool of bob's call that takes nine seconds."""
    await in_db(make_tool)("slow", code=SLOW, hitl_mode="DISABLED", capabilities={"sleep": True})
    call = await submit(CallRequest("slow", {}, caller(bob)))
    await stored(lambda: stopping.executing() == (call.pk,), "it executes")
    return call


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("gate:truth")
async def test_an_authored_tool_is_ended_and_has_failed(bob: User, executing: ToolCall) -> None:
    assert await in_db(stopping.request)(executing.pk, signed_in(bob))
    await stored(lambda: fresh(executing).settled, "it has ended")
    ended = await in_db(fresh)(executing)
    assert (ended.status, ended.error["kind"]) == (Status.FAILED, "stopped")
    assert ended.error["message"] == "It was stopped by bob. Anything it did before that is not undone."
    assert ended.duration_ms is not None
    assert ended.duration_ms < 8000


@pytest.mark.django_db(transaction=True)
@pytest.mark.guarantee("audit:complete")
async def test_who_told_it_to_stop_is_on_record_once(bob: User, executing: ToolCall) -> None:
    for _ in range(2):
        await in_db(stopping.request)(executing.pk, signed_in(bob))
    await stored(lambda: fresh(executing).settled, "it has ended")
    assert (await in_db(events)(executing)).count(stopping.REQUESTED) == 1
    assert await in_db(stopping.requested_by)(executing) == "bob"


@pytest.mark.django_db(transaction=True)
async def test_what_another_process_was_told_is_heard_with_the_next_look(bob: User, executing: ToolCall) -> None:
    await in_db(note)(executing.pk, stopping.REQUESTED, actor=signed_in(bob))
    await in_db(stopping.look)()
    await stored(lambda: fresh(executing).settled, "it has ended")
    assert (await in_db(fresh)(executing)).status == Status.FAILED


@pytest.mark.django_db(transaction=True)
async def test_the_wish_is_forgotten_with_the_call(bob: User, executing: ToolCall) -> None:
    await in_db(stopping.request)(executing.pk, signed_in(bob))
    await stored(lambda: fresh(executing).settled, "it has ended")
    await stored(lambda: stopping.executing() == (), "nothing executes")
    assert not stopping.wish(executing).is_set()


@pytest.mark.parametrize("source", ["project", "no longer here"])
def test_what_cannot_stop_says_so(bob: User, source: str) -> None:
    call = ToolCall(tool_name="x", source=source, status=Status.EXECUTING, caller=bob)
    assert not stopping.can_stop(call)
