"""Streams of real servers: which of them is asked makes no difference, and an end is one for clients too."""

from pathlib import Path

import pytest
from django.conf import settings

from tests.agent.test_two_processes import needs_redis
from tests.api.ai_sdk.conftest import House
from tests.api.ai_sdk.front import ChatOf, front_for
from tests.processes import STEADY, Servers
from tests.scripted_model import Gate, calls, text
from tests.waiting import until

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.servers("what a killed process leaves is what was committed"),
    pytest.mark.slow("stops servers, or starts two of them"),
]

ORDER = ("order", {"what": "a lamp"})


@pytest.mark.postgres
@needs_redis
@pytest.mark.guarantee("run:survives")
def test_what_one_process_does_is_heard_at_the_other(
    house: House, chat: ChatOf, servers: Servers, tmp_path: Path
) -> None:
    assert settings.REDIS_URL
    gate = Gate()
    house.model.enqueue(calls(ORDER), text("It is ", gate, "ordered."))
    other = servers.start(**house.model.environment | STEADY | {"HITL_ASK_USER": "1"})
    chat.do("send", text="Order a lamp")
    part = chat.asked()
    cookie = "; ".join(f"{name}={value}" for name, value in house.bob.cookies.items())
    with front_for(tmp_path / "front", other.url, cookie=cookie) as front:
        there = ChatOf(front, chat.id, chat.messages)
        there.answer(part, approved=True)
        until(lambda: "It is " in there.texts, "the answer begins")
        chat.do("resume")
        until(lambda: "It is " in chat.texts, "the answer so far")
        gate.open()
        for each in (there, chat):
            each.until(states=["output-available"])
            assert each.texts == ["It is ordered."]
    assert house.outside.orders == ['"a lamp"']


@pytest.mark.embedded
@pytest.mark.guarantee("run:survives")
def test_a_client_that_leaves_ends_no_run_and_one_that_listens_holds_up_no_end(house: House, chat: ChatOf) -> None:
    gate, again = Gate(), Gate()
    house.model.enqueue(text("One", gate, " two."), text("Three", Gate()), text("Three, ", again, "after all."))
    chat.do("send", text="Count")
    until(lambda: chat.texts == ["One"], "the answer begins")
    chat.do("leave")
    gate.open()
    house.bob.wait_for_answer(chat.id, "One two.")
    chat.do("send", text="Go on")
    until(lambda: "Three" in chat.texts, "the answer begins")
    assert house.server.stop() == 0
    chat.until("error")
    house.server.start()
    chat.do("resume")
    # What is over cannot be resumed.
    until(lambda: chat.texts[-1] == "Three, ", "it is answered by the next one")
    again.open()
    until(lambda: chat.texts[-1] == "Three, after all.", "it goes on")
    chat.until()
