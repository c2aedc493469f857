"""A run is stopped, and what that leaves behind."""

import asyncio

import pytest

from hitlchat.agent.models import MessageState, Role, RunStatus
from hitlchat.gate import decide
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, hang, text
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("row locks tell two at a time apart")


async def gone() -> None:
    """Nothing works on any run any more."""
    await soon(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "the stopped run is let go")


@on_servers
async def test_stopping_a_streaming_answer_keeps_what_was_written(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Once upon", gate, " a time"))
    await talk.say()
    await gate.arrival()
    await talk.text_arrived("Once upon")
    assert await talk.stop()
    await gone()
    (message,) = await talk.messages(Role.ASSISTANT)
    assert (message.content, message.state) == ("Once upon", MessageState.CUT)
    assert (await talk.run()).status == RunStatus.STOPPED


async def test_stopping_before_the_first_word_leaves_no_empty_answer(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(hang(gate), text("Here again."))
    await talk.say("First")
    await gate.arrival()
    await talk.stop()
    await gone()
    assert await talk.answers() == []
    assert (await talk.ask("Second")).status == RunStatus.DONE


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.guarantee("gate:truth")
@on_servers
async def test_stopping_withdraws_what_waits_and_a_later_yes_does_nothing(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", {})), text("I know."))
    await talk.say("First")
    (approval,) = await talk.asked()
    await talk.stop()
    with pytest.raises(decide.AlreadySettled, match="withdrawn"):
        await talk.approve(approval)
    await talk.ask("What happened?")
    assert '"status": "withdrawn"' in scripted_model.told[0]
    assert "Not run: the run was stopped." in scripted_model.told[0]
    assert recorder.entered == []


@pytest.mark.guarantee("gate:truth")
async def test_stopping_while_a_call_executes_lets_it_end_and_says_so(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("work", "DISABLED")
    recorder.hold("work")
    scripted_model.enqueue(calls(("work", {})), text("I do not know."))
    await talk.say("First")
    await recorder.entry("work")
    await talk.stop()
    await talk.ask("What happened?")
    assert "It was still executing when the run ended" in scripted_model.told[0]
    recorder.let_go("work")
    await talk.settled(Status.SUCCEEDED)
    scripted_model.enqueue(text("Now I do."))
    await talk.ask("And now?")
    assert await talk.notices() == ["work has ended since: succeeded."]
    assert "has ended since: succeeded. work did {}" in scripted_model.messages[-1]["content"]


async def test_stopping_between_a_settled_and_an_open_call_answers_both(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("look", {}), ("send", {})), text("Half."))
    await talk.say("First")
    await talk.asked()
    await talk.settled(Status.SUCCEEDED)
    await talk.stop()
    await talk.ask("What happened?")
    assert [told[:10] for told in scripted_model.told] == ["look did {", '{"status":']


@on_servers
async def test_a_run_is_stopped_once(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("Done."))
    await talk.ask()
    assert not await talk.stop()
    assert (await talk.run()).status == RunStatus.DONE


async def test_what_a_stopped_answer_had_said_is_in_the_history(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Once upon", gate), text("Go on."))
    await talk.say("First")
    await gate.arrival()
    await talk.text_arrived("Once upon")
    await talk.stop()
    await talk.ask("Second")
    assert [said["content"] for said in scripted_model.messages] == ["First", "Once upon", "Second"]
