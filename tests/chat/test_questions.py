"""What upstream servers ask and tell while a call executes, on the pages of its conversation."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.elicitation import questions
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import OpenTab
from tests.chat.tab import Tab
from tests.scripted_model import ScriptedModel, calls, text
from tests.upstreams.asking import Counter, answer, open_question
from tests.upstreams.gated import exposed
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Counter]:
    started = Counter(tmp_path, "http-2026").start()
    yield started
    started.kill()


@pytest.fixture
async def there(alice: User, counter: Counter, tab: Tab, settings: Settings) -> Counter:
    """Its tools are offered, and need no yes."""
    settings.TOOL_SOURCES = {"upstream": "hitlchat.upstreams.source.UpstreamSource"}
    await exposed(alice, await in_database(counter.add)(alice))
    return counter


async def begin(tab: Tab, model: ScriptedModel, tool: str, **arguments: object) -> None:
    model.enqueue(calls((f"counter_{tool}", dict(arguments))), text("Done."))
    await tab.send(type="say", content="Do it")


async def test_a_question_comes_to_every_open_page_and_to_those_that_come_later(
    bob: User, tab: Tab, open_tab: OpenTab, there: Counter, scripted_model: ScriptedModel
) -> None:
    await begin(tab, scripted_model, "paint")
    shown = await tab.until("Send answer")
    assert "Written by the server counter" in shown
    assert "Approve: which paint shall it be?" in shown
    assert "data-ask" not in shown
    late = await open_tab()
    await late.until("Send answer")
    question = await open_question(bob)
    assert f'href="#question-{question.pk}">A server asks you' in "".join(late.seen)
    await answer(bob, question, colour="red")
    for page in (tab, late):
        await page.until("Answered by bob: colour")
        await page.until("Done.")


async def test_how_far_a_call_is_comes_to_the_page_as_text_and_only_a_few_times_a_second(
    tab: Tab, there: Counter, scripted_model: ScriptedModel
) -> None:
    await begin(tab, scripted_model, "steps", seconds=0.5)
    shown = await tab.until("<progress")
    assert re.search(r'value="\d+\.0+" max="10\.0+"', shown)
    assert re.search(r"\d+ of 10: step \d+ &lt;b&gt;", shown)
    await tab.until("Done.")
    assert len([frame for frame in tab.seen if "<progress" in frame]) <= 11


@pytest.mark.guarantee("gate:truth")
async def test_a_call_that_is_told_to_stop_may_have_run_and_the_page_says_so(
    tab: Tab, talk: Talk, there: Counter, scripted_model: ScriptedModel
) -> None:
    await begin(tab, scripted_model, "steps", seconds=60)
    await tab.until("Stop this call")
    await soon(lambda: there.log == ["began"], "it has begun")
    (call,) = await talk.calls()
    await tab.send(type="stop-call", call=str(call.pk))
    await tab.until("It was stopped by bob: the server counter was told to stop, and may have run it.")
    await tab.until("Done.")
    assert "may or may not have happened" in scripted_model.told[0]
    await soon(lambda: there.log == ["began", "cancelled"], "the server has heard of it")


async def test_stopping_the_run_stops_what_executes_and_nobody_stops_the_call_of_someone_else(
    alice: User, tab: Tab, talk: Talk, there: Counter, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("counter_steps", {"seconds": 60})))
    await tab.send(type="say", content="Do it")
    await tab.until("Stop this call")
    await soon(lambda: there.log == ["began"], "it has begun")
    other = await in_database(_call_of)(alice)
    await tab.send(type="stop-call", call=str(other.pk))
    await tab.until("There is no call with this id that you can stop.")
    await tab.send(type="stop")
    await talk.settled(Status.UNKNOWN)
    await soon(lambda: there.log == ["began", "cancelled"], "the server has heard of it")


def _call_of(person: User) -> ToolCall:
    return ToolCall.objects.create(tool_name="x", status=Status.EXECUTING, caller=person, caller_kind="chat")


async def test_the_person_finds_a_question_of_another_conversation_beside_the_page(
    bob: User, tab: Tab, talk: Talk, there: Counter, scripted_model: ScriptedModel, bobs_client: Client
) -> None:
    await begin(tab, scripted_model, "paint")
    await tab.until("Send answer")
    elsewhere = await in_database(bobs_client.get)("/chat/threads?seen=")
    here = await in_database(bobs_client.get)(f"/chat/threads?current={talk.conversation.pk}&seen=")
    assert b"asks-you" in elsewhere.content
    assert b"asks-you" not in here.content
    assert re.search(r"<h3>Waiting for you</h3>.*server questions: </span>1", here.content.decode(), re.DOTALL)
    await answer(bob, await open_question(bob), colour="red")
    await tab.until("Done.")
    assert not await in_database(questions.open_for(bob.pk).exists)()
    over = await in_database(bobs_client.get)("/chat/threads?seen=")
    assert b"Waiting for you" not in over.content
