"""The AI SDK as its packages are, at a real server: `Chat`, `readUIMessageStream`, and `useChat` on a page."""

import json
from typing import Any, Final

import pytest

from tests.api.ai_sdk.conftest import FrontOf, House
from tests.api.ai_sdk.front import ChatOf
from tests.scripted_model import Gate, calls, status, text
from tests.waiting import until

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(240), pytest.mark.slow("the SDK comes from npm")]

ORDER: Final = ("order", {"what": "a lamp"})


def refused(chat: ChatOf) -> dict[str, Any]:
    """The problem with which the last request of the chat was refused."""
    found: dict[str, Any] = json.loads(chat.until("error")["error"])
    return found


def without_descriptors(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what an approval was like when it was told, which is not what it is like now."""
    for part in message["parts"]:
        part.get("approval", {}).pop("descriptor", None)
    return message


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel")
def test_what_is_approved_runs_once_and_what_is_declined_does_not(house: House, chat: ChatOf) -> None:
    house.model.enqueue(calls(ORDER, say="Let me order it."), text("It is ordered."))
    chat.do("send", text="Order a lamp")
    part = chat.asked()
    assert (part["toolName"], part["input"]) == ("order", {"what": "a lamp"})
    assert house.outside.orders == []
    chat.answer(part, approved=True)
    state = chat.until(states=["output-available"])
    assert house.outside.orders == ['"a lamp"']
    assert chat.texts == ["Let me order it.", "It is ordered."]
    assert [message["role"] for message in state["messages"]] == ["user", "assistant"]
    assert state["finished"] == ["tool-calls", "stop"]
    house.model.enqueue(calls(("order", {"what": "a chair"})), text("As you like."))
    chat.do("send", text="Order a chair")
    chat.answer(chat.asked(), approved=False, reason="Too expensive")
    chat.until(states=["output-available", "output-denied"])
    assert chat.texts[-1] == "As you like."
    assert "Too expensive" in house.model.requests[-1]["messages"][-1]["content"]
    assert [call["status"] for call in house.bob.calls(chat.id)] == ["succeeded", "declined"]
    assert house.outside.orders == ['"a lamp"']


def test_a_stream_that_is_read_makes_the_message_that_is_stored(house: House, chat: ChatOf) -> None:
    gate = Gate()
    house.model.enqueue(calls(ORDER), text("It is ", gate, "ordered."))
    chat.do("send", text="Order a lamp")
    part = chat.asked()
    stored = house.bob.get(f"/api/chat/{chat.id}").json()["messages"]
    assert stored[-1] == chat.do("read") == chat.messages[-1]
    assert stored[-1]["parts"][1]["approval"]["signature"] == part["approval"]["signature"]
    chat.answer(part, approved=True)
    until(lambda: "It is " in chat.texts, "the answer begins")
    gate.open()
    chat.until(states=["output-available"])
    stored = house.bob.get(f"/api/chat/{chat.id}").json()["messages"]
    assert without_descriptors(stored[-1]) == without_descriptors(chat.messages[-1])
    assert chat.do("read") is None


@pytest.mark.guarantee("gate:truth")
def test_what_is_stored_of_every_outcome_is_what_the_sdk_takes_for_its_messages(house: House, chat: ChatOf) -> None:
    chair = ("order", {"what": "a chair"})
    wrong = ("order", {"which": "a table"})
    house.model.enqueue(
        calls(ORDER, chair, wrong, say="Let me order it."), text("Done."), status(401, {"message": "x"})
    )
    chat.do("send", text="Order them")
    chat.until(states=["approval-requested", "approval-requested", "output-error"])
    stored = house.bob.get(f"/api/chat/{chat.id}").json()["messages"]
    assert chat.do("validate", messages=stored) == 2
    yes, no, _ = chat.tools
    chat.answer(yes, approved=True)
    chat.answer(no, approved=False, reason="One is enough")
    chat.until(states=["output-available", "output-denied", "output-error"])
    # A run that fails leaves a notice.
    chat.do("send", text="And now?")
    chat.until("error")
    stored = house.bob.get(f"/api/chat/{chat.id}").json()["messages"]
    assert chat.do("validate", messages=stored) == 4
    assert [part["type"] for part in stored[-1]["parts"]] == ["data-notice"]
    assert house.outside.orders == ['"a lamp"']


def test_a_front_end_that_was_loaded_anew_goes_on_where_it_was(house: House, chat: ChatOf, front_of: FrontOf) -> None:
    gate = Gate()
    house.model.enqueue(calls(ORDER), text("It is ", gate, "ordered."))
    chat.do("send", text="Order a lamp")
    chat.asked()
    stored = house.bob.get(f"/api/chat/{chat.id}").json()["messages"]
    again = ChatOf(front_of(house.bob), chat.id, stored)
    again.do("resumed")
    part = again.asked()
    again.answer(part, approved=True)
    until(lambda: "It is " in again.texts, "the answer begins")
    # Once more, while the answer is being written.
    third = ChatOf(front_of(house.bob), chat.id, stored)
    third.do("resume")
    until(lambda: "It is " in third.texts, "the answer so far")
    gate.open()
    for each in (again, third):
        each.until(states=["output-available"])
        assert each.texts == ["It is ordered."]
    assert house.outside.orders == ['"a lamp"']


@pytest.mark.guarantee("gate:one-outcome", "gate:at-most-once")
def test_an_answer_that_comes_twice_or_too_late_is_refused_and_nothing_runs(
    house: House, chat: ChatOf, front_of: FrontOf
) -> None:
    house.model.enqueue(calls(ORDER), text("As you like."))
    chat.do("send", text="Order a lamp")
    part = chat.asked()
    other = ChatOf(front_of(house.bob), chat.id, chat.messages)
    other.answer(part, approved=False)
    other.until(states=["output-denied"])
    chat.answer(part, approved=True)
    problem = refused(chat)
    assert (problem["status"], problem["code"]) == (409, "already_completed")
    assert problem["approval"]["status"] == "declined"
    # It may be sent again as often as one likes.
    chat.do("resend")
    assert refused(chat)["code"] == "already_completed"
    assert house.outside.orders == []
    assert [call["status"] for call in house.bob.calls(chat.id)] == ["declined"]


def test_an_answer_for_another_conversation_is_refused_and_nothing_runs(house: House, front_of: FrontOf) -> None:
    house.model.enqueue(calls(ORDER), calls(("order", {"what": "a chair"})))
    first, second = (ChatOf(front_of(house.bob), house.conversation()) for _ in range(2))
    for each in (first, second):
        each.do("send", text="Order it")
        each.asked()
    stolen = ChatOf(second.front, second.id, first.messages)
    stolen.answer(first.asked(), approved=True)
    problem = refused(stolen)
    assert (problem["status"], "another conversation" in problem["detail"]) == (409, True)
    assert house.outside.orders == []
    assert len(house.bob.pending()) == 2


def test_a_question_is_answered_as_a_tool_of_the_client(house: House, chat: ChatOf) -> None:
    fields = [{"name": "size", "label": "Size", "kind": "choice", "choices": ["S", "L"]}]
    house.model.enqueue(calls(("ask_user", {"question": "Which size?", "fields": fields})), text("L it is."))
    chat.do("send", text="Order a shirt")
    chat.until(states=["input-available"])
    (part,) = chat.tools
    assert (part["type"], part["input"]["question"]) == ("tool-ask_user", "Which size?")
    chat.do("output", tool="ask_user", toolCallId=part["toolCallId"], output={"size": "L"})
    chat.until(states=["output-available"])
    until(lambda: chat.texts == ["L it is."], "the model goes on")
    assert '"size": "L"' in house.model.requests[-1]["messages"][-1]["content"]


@pytest.mark.guarantee("gate:only-people")
def test_a_front_end_with_a_token_approves_as_its_person(house: House, front_of: FrontOf) -> None:
    house.model.enqueue(calls(ORDER), text("It is ordered."))
    token = house.server.home.manage("create_token", "bob", "--kind", "approver").strip()
    chat = ChatOf(front_of(token=token), house.conversation())
    chat.do("send", text="Order a lamp")
    chat.answer(chat.asked(), approved=True)
    chat.until(states=["output-available"])
    assert house.outside.orders == ['"a lamp"']
    (call,) = house.bob.calls(chat.id)
    (decision,) = house.bob.get(f"/api/calls/{call['id']}").json()["decisions"]
    assert (decision["person"], decision["means"]) == ("bob", "token")


def test_the_documented_example_says_approves_and_declines_also_after_a_reload(house: House, front_of: FrontOf) -> None:
    house.model.enqueue(calls(ORDER), text("It is ordered."), calls(("order", {"what": "a chair"})), text("No chair."))
    conversation = house.conversation()
    front = front_of(house.bob)
    front.do("render", chat=conversation)
    front.do("say", text="Order a lamp")
    until(lambda: "Approve" in front.do("page")["buttons"], "it is asked")
    assert "a lamp" in front.do("page")["text"]
    until(lambda: front.do("press", label="Approve"), "it is answered")
    until(lambda: "It is ordered." in front.do("page")["text"], "the answer")
    front.do("say", text="Order a chair")
    until(lambda: "Decline" in front.do("page")["buttons"], "it is asked")
    again = front_of(house.bob)
    again.do("render", chat=conversation)
    until(lambda: "Decline" in again.do("page")["buttons"], "it is asked still")
    assert "Order a lamp" in again.do("page")["text"]
    until(lambda: again.do("press", label="Decline"), "it is answered")
    until(lambda: "No chair." in again.do("page")["text"], "the answer")
    assert "order: output-denied" in again.do("page")["text"]
    assert house.outside.orders == ['"a lamp"']
