"""Over a conversation's socket: changed arguments, several answers at once, an approval taken back."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from hitlchat.agent.models import Conversation
from hitlchat.chat import fragments
from hitlchat.gate import decide, editing
from hitlchat.gate.models import Approval, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.submit import CallRequest, submit
from tests.agent.talk import Talk, in_database
from tests.chat.tab import Tab
from tests.conftest import caller, signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def waiting(talk: Talk, tab: Tab, scripted_model: ScriptedModel) -> list[Approval]:
    """Two calls of one tool that wait on bob's open page."""
    await in_database(recorded_tool)("send", risk_level=2)
    scripted_model.enqueue(calls(("send", {"text": "hi"}), ("send", {"text": "ho"})))
    await tab.send(type="say", content="Send them")
    approvals = await talk.asked(2)
    await tab.until("data-batch")
    return approvals


async def edit(approval: Approval, arguments: dict[str, Any]) -> dict[str, Any]:
    """The frame of a yes to changed arguments."""
    found = await Approval.objects.select_related("call__tool").aget(pk=approval.pk)
    seen = await in_database(editing.review)(found, arguments)
    answer = {"type": "decide", "approval": str(approval.pk), "verdict": "approve", "digest": approval.digest}
    return answer | {"edited": seen.arguments, "shown": seen.digest}


def together(*approvals: Approval, **changed: Any) -> dict[str, Any]:
    items = [f"{each.pk}:{each.digest}" for each in approvals]
    return {"type": "decide-all", "verdict": "approve", "items": items} | changed


@pytest.mark.guarantee("gate:same-call")
async def test_what_was_changed_runs_and_the_model_is_told(
    tab: Tab, talk: Talk, waiting: list[Approval], recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("Sent."))
    await talk.decline(waiting[1])
    await tab.send(**await edit(waiting[0], {"text": "hello", "n": 3}), reason="Only this once")
    await tab.until("Sent.")
    assert "Only this once" in scripted_model.told[0]
    assert recorder.entered == [("send", {"text": "hello", "n": 3})]
    assert json.loads(scripted_model.told[0])["arguments"] == {"text": "hello", "n": 3}
    assert any("The arguments were changed first." in fragment for fragment in tab.seen)
    assert any("Arguments as requested" in fragment for fragment in tab.seen)


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_yes_to_other_changes_than_were_shown_decides_nothing(
    tab: Tab, waiting: list[Approval], recorder: Recorder
) -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"edited": '{"text": "other"}'}, "not the one you were shown"),
        ({"edited": '{"text": 5}'}, "is not a text"),
        ({"edited": '{"text": "a", "tool": "b"}'}, "tool"),
        ({"edited": "{"}, "not valid JSON"),
        ({"edited": {"text": "hello"}}, "no valid “edited”"),
        ({"shown": 5}, "no valid “shown”"),
        ({"digest": "0" * 64}, "not the one you were shown"),
    ]
    for changed, told in rows:
        await tab.send(**await edit(waiting[0], {"text": "hello"}) | changed)
        await tab.until(told)
        assert not await Decision.objects.aexists()
        assert recorder.entered == []


@pytest.mark.guarantee("gate:one-outcome")
async def test_several_are_answered_together_and_each_outcome_is_told(
    tab: Tab, talk: Talk, waiting: list[Approval], recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One of two."))
    await talk.decline(waiting[0])
    await tab.send(**together(*waiting))
    told = await tab.until("already answered (declined)")
    assert "Approved." in told
    await tab.until("One of two.")
    assert recorder.entered == [("send", {"text": "ho"})]


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth")
async def test_the_model_reads_what_to_do_instead_and_what_was_answered_in_a_tools_place(
    tab: Tab, waiting: list[Approval], recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("I see."))
    first, second = ({"type": "decide", "approval": str(each.pk), "digest": each.digest} for each in waiting)
    await tab.send(**first, verdict="suggest", reason="Use <b>mail</b>")
    await tab.until("to do instead: “Use &lt;b&gt;mail&lt;/b&gt;”")
    await tab.send(**second, verdict="answer", answer="It is <b>sent</b>")
    told = await tab.until("Answered in the tool&#x27;s place by bob")
    assert "It is &lt;b&gt;sent&lt;/b&gt;" in told
    await tab.until("I see.")
    read = [json.loads(each["content"]) for each in scripted_model.requests[-1]["messages"] if each["role"] == "tool"]
    assert [each["status"] for each in read] == ["declined", "answered"]
    assert read[0]["instruction_given_by_the_user"] == "Use <b>mail</b>"
    assert read[1]["answer_given_by_a_person"] == "It is <b>sent</b>"
    assert recorder.entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_each_call_after_a_suggestion_in_the_same_run_is_another_attempt_and_the_fourth_is_not_asked(
    tab: Tab, talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    await in_database(recorded_tool)("other")

    async def asked(count: int) -> Approval:
        """The latest of so many questions."""
        found: list[Approval] = await stored(
            lambda: list(Approval.objects.order_by("pk")[count - 1 : count]), "it is asked"
        )
        return found[0]

    scripted_model.enqueue(calls(("send", {"text": "1"})))
    await tab.send(type="say", content="Send it")
    for number in (1, 2, 3):
        approval = await asked(number)
        told = await tab.until(f"ask-{approval.pk}")
        assert approval.disclosure.get("attempt", {}).get("number", 1) == number
        assert (f"Attempt {number}." in told) == (number > 1)
        more = [("other", {"text": "hi"})] if number == 3 else []
        scripted_model.enqueue(calls(("send", {"text": f"{number + 1}"}), *more))
        frame = {"type": "decide", "verdict": "suggest", "approval": str(approval.pk), "digest": approval.digest}
        await tab.send(**frame, reason="Another one")
    # Another tool is none of it.
    other = await asked(4)
    assert "attempt" not in other.disclosure
    last = await ToolCall.objects.aget(tool_name="send", status=Status.REJECTED)
    assert "said each time what to do instead" in last.reason
    # A run of its own begins anew.
    scripted_model.enqueue(text("I stop."), calls(("send", {"text": "5"})))
    await talk.decline(other)
    await tab.until("I stop.")
    await tab.send(type="say", content="Once more")
    assert "attempt" not in (await asked(5)).disclosure
    assert recorder.entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_what_is_no_clear_answer_decides_nothing(tab: Tab, waiting: list[Approval]) -> None:
    one = {"type": "decide", "approval": str(waiting[0].pk), "verdict": "decline", "digest": ""}
    rows: list[tuple[dict[str, Any], str]] = [
        (together(*waiting, items=[]), 'id="flash"'),
        (together(*waiting, items="x"), 'id="flash"'),
        (together(*waiting, items=["x", "y"]), 'id="flash"'),
        (together(*waiting, items=[["a", "b"], ["a", "b"]]), 'id="flash"'),
        (together(*waiting, verdict="yes"), 'id="flash"'),
        (together(*waiting, verdict=["approve"]), 'id="flash"'),
        (one | {"reason": "x" * 501}, "has 501 characters; at most 500"),
        (one | {"verdict": "suggest"}, "Say what the model should do instead."),
        (one | {"verdict": "answer"}, "Write the answer that the model should read."),
        (together(*waiting, verdict="answer"), 'id="flash"'),
        ({"type": "take-back", "call": str(waiting[0].call_id)}, "no approval with this id for you"),
    ]
    for frame, told in rows:
        await tab.send(**frame)
        await tab.until(told)
        assert not await Decision.objects.aexists()
    # Several of a tool that has become risky meanwhile.
    await Tool.objects.aupdate(risk_level=4)
    await tab.send(**together(*waiting))
    await tab.until("answered one by one")
    assert not await Decision.objects.aexists()
    assert {each.call.status async for each in Approval.objects.select_related("call")} == {Status.WAITING}


@pytest.mark.guarantee("gate:truth")
async def test_a_call_that_started_is_not_taken_back_and_the_page_says_so(
    tab: Tab, talk: Talk, waiting: list[Approval], recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    recorder.hold("send")
    await talk.approve(waiting[0])
    await recorder.entry("send")
    await tab.send(type="take-back", call=str(waiting[0].call_id))
    await tab.until("Too late to withdraw: the call has started.")
    scripted_model.enqueue(text("Done."))
    await talk.decline(waiting[1])
    recorder.let_go("send")
    await tab.until("Done.")


async def test_while_an_approved_call_has_not_started_its_line_offers_to_take_it_back(bob: User) -> None:
    # No loop of a server runs here, so nothing starts by itself.
    conversation = await Conversation.objects.acreate(owner=bob)
    await in_database(recorded_tool)("send")
    call = await submit(CallRequest("send", {}, caller(bob), conversation_id=conversation.pk))
    approval = await Approval.objects.aget(call=call)
    await in_database(decide.approve)(approval.pk, signed_in(bob))
    line = await in_database(fragments.call)(conversation.pk, call.pk)
    assert "Starting soon." in line
    assert 'value="take-back"' in line
    await in_database(decide.take_back)(call.pk, signed_in(bob))
    line = await in_database(fragments.call)(conversation.pk, call.pk)
    assert "Not run: the approval was taken back" in line
    assert 'value="take-back"' not in line
