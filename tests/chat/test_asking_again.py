"""A call of a conversation that asks again: in every tab, with the run waiting on, and told as it was in the end."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from hitlchat.agent.models import RunStatus
from hitlchat.chat import call_view
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.sources import Preview
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import OpenTab
from tests.chat.tab import Tab
from tests.gate import sources_for_tests
from tests.gate.asking import recording
from tests.recorder import Recorder
from tests.scripted_model import ScriptedModel, calls, text
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)

AGAIN = "The effect changed after you approved."
LATE = "The waiting call is not the one you were shown."


@pytest.fixture(autouse=True)
def previews(recorder: Recorder, settings: Settings) -> Iterator[list[Any]]:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}
    recording("pay", source="previewing")
    sources_for_tests.previews[:] = [Preview(text="pays 1 EUR"), Preview(text="pays 9 EUR")]
    yield sources_for_tests.previews
    sources_for_tests.previews.clear()
    sources_for_tests.entered.clear()


async def asked_again(talk: Talk, model: ScriptedModel, last_words: str = "Paid.", **more: Any) -> Approval:
    """The approval of a call that was approved once, with `more`, and waits for the second time."""
    model.enqueue(calls(("pay", {"text": "hi"})), text(last_words))
    await talk.say()
    await talk.approve(await talk.only(), **more)
    await stored(lambda: ToolCall.objects.get().round == 2, "it is asked about again")
    return await talk.only()


async def test_a_new_card_comes_up_in_every_tab_and_the_run_goes_on_after_the_second_yes(
    talk: Talk, tab: Tab, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    other = await open_tab()
    approval = await asked_again(talk, scripted_model)
    assert sources_for_tests.entered == []
    for one in (tab, other):
        fragment = await one.until(f'id="ask-{approval.pk}-2"')
        assert AGAIN in fragment.replace("&#x27;", "'")
        assert approval.digest in fragment
    await tab.send(type="decide", approval=str(approval.pk), verdict="approve", digest=approval.digest)
    for one in (tab, other):
        await one.until_no_card()
        await one.until("Paid.")
    assert (await talk.over()).status == RunStatus.DONE
    assert scripted_model.told == ["done"]
    assert len(sources_for_tests.entered) == 1


@pytest.mark.guarantee("gate:truth")
async def test_the_model_is_told_of_arguments_that_were_edited_the_first_time(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    approval = await asked_again(talk, scripted_model, edited={"text": "bye"})
    await talk.approve(approval, digest=approval.digest)
    await talk.over()
    (told,) = map(json.loads, scripted_model.told)
    assert told["arguments"] == {"text": "bye", "amount": 1}
    assert "changed the arguments" in told["message"]


async def test_an_answer_to_the_first_card_brings_the_second_and_stopping_withdraws_it(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("pay", {"text": "hi"})))
    await talk.say()
    first = await talk.only()
    await talk.approve(first)
    await stored(lambda: ToolCall.objects.get().round == 2, "it is asked about again")
    await tab.send(type="decide", approval=str(first.pk), verdict="approve", digest=first.digest)
    assert f'id="ask-{first.pk}-2"' in await tab.until(LATE)
    assert (await talk.outcomes(), sources_for_tests.entered) == (["waiting"], [])
    await talk.only()
    assert await talk.stop()
    assert (await talk.run()).status == RunStatus.STOPPED
    assert await talk.outcomes() == [Status.WITHDRAWN]


@pytest.mark.guarantee("gate:truth")
async def test_a_second_answer_of_no_is_what_the_model_and_the_record_say(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    await talk.decline(await asked_again(talk, scripted_model, "Not paid.", reason="once only"), "not that much")
    await talk.over()
    (told,) = map(json.loads, scripted_model.told)
    assert (told["status"], told["reason_given_by_the_user"]) == ("declined", "not that much")
    fate = await fate_of_the_call(talk)
    assert fate.startswith("Approved by bob, signed in, after ")
    assert "Note: “once only” This call was asked" in fate
    assert "This call was asked about again because its preview had changed. Declined by bob, signed in, after" in fate
    assert fate.endswith("Reason: “not that much” It was not executed.")


@pytest.mark.guarantee("gate:truth")
async def test_nobody_answering_the_second_time_is_told_as_that(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    await asked_again(talk, scripted_model, "Nobody was there.")
    await in_database(ToolCall.objects.update)(deadline=timezone.now() - timedelta(seconds=1))
    await in_database(decide.expire_overdue)()
    await talk.over()
    (told,) = map(json.loads, scripted_model.told)
    assert told["status"] == "expired"
    assert (await fate_of_the_call(talk)).endswith("Nobody answered in time, and the call did not run.")


async def fate_of_the_call(talk: Talk) -> str:
    (call,) = await talk.calls()
    view = await in_database(call_view.of_id)(talk.conversation.pk, call.pk)
    assert view is not None
    return view.fate
