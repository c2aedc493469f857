"""More questions than may be open at once: the run pauses, and asks the rest in the model's order."""

import json
from typing import Any

import pytest
from pytest_django import Settings

from hitlchat.agent import runner
from hitlchat.agent.calls import held_back
from hitlchat.agent.models import Role, RunStatus
from hitlchat.base.background import background
from hitlchat.chat import fragments
from hitlchat.gate import stopping
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Tool, ToolCall
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("what a killed process leaves is what was committed")

WORDS = ["a", "b", "c", "d", "e"]


@pytest.fixture(autouse=True)
def two_at_once(settings: Settings, recorder: Recorder) -> None:
    settings.HITL_MAX_WAITING_PER_CONVERSATION = 2
    recorded_tool("look", "DISABLED")
    recorded_tool("send")


async def begin(talk: Talk, model: ScriptedModel, *more: tuple[str, Any]) -> None:
    """The model asks for five calls that wait."""
    model.enqueue(calls(*(("send", {"text": word}) for word in WORDS), *more))
    await talk.say()
    await talk.asked(2)


async def open_words(talk: Talk) -> list[str]:
    return [approval.call.arguments["text"] for approval in await talk.asked(2)]


async def left(talk: Talk) -> int:
    return int(await in_database(held_back)((await talk.run()).turn_id))


@pytest.mark.guarantee("SR-41")
@on_servers
async def test_the_run_pauses_and_asks_the_rest_in_the_models_order(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await begin(talk, scripted_model)
    assert ((await talk.run()).status, await left(talk)) == (RunStatus.WAITING, 3)
    scripted_model.enqueue(text("All done."))
    for place in range(3):
        first, second = await talk.asked(2)
        assert [each.call.arguments["text"] for each in (first, second)] == WORDS[place : place + 2]
        await (talk.decline if place == 1 else talk.approve)(first)
        await talk.settled(Status.DECLINED if place >= 1 else Status.SUCCEEDED, 1)
    for approval in await talk.asked(2):
        await talk.approve(approval)
    assert (await talk.over()).status == RunStatus.DONE
    told = [message for message in scripted_model.requests[1]["messages"] if message["role"] == "tool"]
    assert [json.loads(each.wire)["tool_call_id"] for each in await talk.messages(Role.TOOL)] == [
        each["tool_call_id"] for each in told
    ]
    assert len(told) == 5
    assert "declined" in told[1]["content"]


@pytest.mark.guarantee("run:survives")
@on_servers
async def test_another_process_asks_the_rest_after_a_restart(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await begin(talk, scripted_model)
    first, _ = await talk.asked(2)
    # Answered while no server runs.
    background.leaving = True
    await talk.decline(first)
    assert (await left(talk), len(await talk.calls())) == (3, 2)
    background.leaving = False
    await in_database(runner._sweep)(None)
    assert await open_words(talk) == ["b", "c"]
    await talk.stop()


@on_servers
async def test_answers_in_the_moment_of_parking_are_not_missed(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await begin(talk, scripted_model)
    for approval in await talk.asked(2):
        await talk.decline(approval)
    assert await open_words(talk) == ["c", "d"]
    await talk.stop()


async def test_what_needs_no_question_runs_meanwhile_and_what_is_withdrawn_makes_room_too(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await begin(talk, scripted_model, ("look", {"text": "x"}))
    await talk.settled(Status.SUCCEEDED)
    assert await left(talk) == 3
    first, _ = await talk.asked(2)
    await in_database(stopping.withdraw_call)(first.call_id, actor=SYSTEM, why="of a test")
    assert await open_words(talk) == ["b", "c"]
    turn = (await talk.run()).turn_id
    assert turn is not None
    third = await ToolCall.objects.aget(turn_id=turn, position=2)
    assert f'id="call-{third.pk}"' in await in_database(talk.page)()
    await talk.stop()


@pytest.mark.guarantee("gate:truth", "SR-41")
async def test_the_page_says_that_more_is_to_come_and_a_stop_puts_the_rest_on_record_as_never_asked(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await begin(talk, scripted_model)
    shown = await in_database(fragments.asks)(talk.conversation.pk, signed_in(talk.owner))
    assert "2 questions are open; 3 more calls appear as you answer." in shown
    await talk.stop()
    assert "more calls appear" not in await in_database(fragments.asks)(talk.conversation.pk, signed_in(talk.owner))
    assert sorted(await talk.outcomes()) == ["withdrawn"] * 5
    assert recorder.entered == []
    scripted_model.enqueue(text("Well."))
    assert (await talk.ask("Go on")).status == RunStatus.DONE
    told = [message["content"] for message in scripted_model.requests[1]["messages"] if message["role"] == "tool"]
    assert ["before anyone was asked" in each for each in told] == [False, False, True, True, True]
    assert all("It was not executed" in each for each in told)


@pytest.mark.guarantee("gate:truth", "gate:fail-closed")
async def test_a_run_that_fails_leaves_no_question_open_and_the_conversation_of_use(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, settings: Settings
) -> None:
    await begin(talk, scripted_model)
    first, _ = await talk.asked(2)
    # Nothing can be compared with it.
    settings.HITL_MAX_WAITING_PER_CALLER = None
    await talk.decline(first)
    assert (await talk.over()).status == RunStatus.FAILED
    assert sorted(await talk.outcomes()) == ["declined"] + ["withdrawn"] * 4
    assert recorder.entered == []
    settings.HITL_MAX_WAITING_PER_CALLER = 200
    scripted_model.enqueue(text("Well."))
    assert (await talk.ask("Go on")).status == RunStatus.DONE
    told = [message["tool_call_id"] for message in scripted_model.requests[1]["messages"] if message["role"] == "tool"]
    assert len(told) == len(WORDS)


async def test_a_held_back_call_is_judged_when_its_turn_comes(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await begin(talk, scripted_model)
    for approval in await talk.asked(2):
        await in_database(Tool.objects.filter(name="send").update)(published=False)
        await talk.decline(approval)
    scripted_model.enqueue(text("It is gone."))
    await talk.over()
    assert sorted(await talk.outcomes()) == ["declined"] * 2 + ["rejected"] * 3
