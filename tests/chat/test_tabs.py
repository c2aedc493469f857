"""Several pages of one conversation, and pages that miss events."""

import asyncio
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.agent import writing
from hitlchat.agent.models import Conversation, Role, RunStatus
from hitlchat.base.background import background
from hitlchat.gate import perform, queue
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Approval, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.transition import move
from tests.agent.talk import Talk, in_database
from tests.chat.conftest import OpenTab
from tests.chat.tab import Tab, cookie_of
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, text
from tests.waiting import soon, stored

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("Redis announces it after the commit")


@pytest.fixture(autouse=True)
def send(recorder: Recorder) -> None:
    recorded_tool("send")


@on_servers
async def test_every_tab_shows_what_is_said_in_one(tab: Tab, open_tab: OpenTab, scripted_model: ScriptedModel) -> None:
    other = await open_tab()
    scripted_model.enqueue(text("Hello both."))
    await tab.send(type="say", content="Hello from one")
    await other.until("Hello from one")
    await other.until("Hello both.")
    await tab.until("Hello both.")


@pytest.mark.guarantee("gate:one-outcome")
@on_servers
async def test_an_answer_in_one_tab_takes_the_card_away_in_all(
    talk: Talk, tab: Tab, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    other = await open_tab()
    scripted_model.enqueue(calls(("send", {})), text("Sent."))
    await tab.send(type="say", content="Send it")
    for one in (tab, other):
        await one.until("data-approve")
    (approval,) = await talk.asked()
    await tab.send(type="decide", approval=str(approval.pk), verdict="approve", digest=approval.digest)
    for one in (tab, other):
        await one.until_no_card()
        await one.until("Sent.")


@on_servers
async def test_a_burst_that_overruns_the_channel_layer_is_healed_by_the_next_connection(
    talk: Talk, tab: Tab, open_tab: OpenTab, scripted_model: ScriptedModel
) -> None:
    """The in-memory layer holds a hundred events for a page and drops more without a word."""
    scripted_model.enqueue(text("Seen by nobody."))
    for _ in range(300):
        await writing.tell(talk.conversation.pk, "run")
    await talk.ask()
    await tab.close()
    again = await open_tab()
    whole = await again.next()
    assert "Seen by nobody." in whole
    assert whole == await in_database(talk.page)()


async def test_a_resync_makes_an_open_page_equal_to_the_database(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("Whole."))
    await talk.ask()
    await writing.tell(talk.conversation.pk, "resync")
    whole = await tab.until('<ol id="turns" hx-swap-oob="innerHTML">')
    assert whole == await in_database(talk.page)()


@on_servers
async def test_streamed_text_that_was_lost_is_made_good_by_the_next_event(
    talk: Talk, tab: Tab, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text("One, two, ", gate, "three."))
    await tab.send(type="say", content="Count")
    await talk_begun(talk, "One, two, ")
    (message,) = await talk.messages(Role.ASSISTANT)
    # It begins behind text that the page may never have got.
    await writing.tell(talk.conversation.pk, "delta", message=str(message.pk), base=5, text="two, and")
    gate.open()
    await tab.until("One, two, three.")


async def talk_begun(talk: Talk, written: str) -> None:
    await stored(talk.conversation.runs.exists, "the run has begun")
    await talk.text_arrived(written)


# -- Calls with unknown outcome ---------------------------------------------------------------------------------------


async def test_an_unknown_call_that_is_run_again_while_its_turn_waits_is_told_once(
    talk: Talk, tab: Tab, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {"n": 1}), ("send", {"n": 2})), text("Both sent."))
    await talk.say()
    first, second = await talk.asked(2)
    lost = await lost_after_yes(talk, first)
    await tab.send(type="resolve", call=str(lost.pk), outcome="again")
    again, second = sorted(await talk.asked(2), key=lambda one: one.call.position)
    for approval in (again, second):
        await talk.approve(approval)
    assert (await talk.over()).status == RunStatus.DONE
    assert scripted_model.told == ["send did {'n': 1}", "send did {'n': 2}"]


async def test_an_unknown_call_can_be_run_again_later_where_too_many_wait_now(
    talk: Talk, tab: Tab, recorder: Recorder, scripted_model: ScriptedModel, settings: Settings
) -> None:
    scripted_model.enqueue(calls(("send", {"n": 1}), ("send", {"n": 2})), text("Both sent."))
    await talk.say()
    first, _ = await talk.asked(2)
    lost = await lost_after_yes(talk, first)
    settings.HITL_MAX_WAITING_PER_CONVERSATION = 1
    await tab.send(type="resolve", call=str(lost.pk), outcome="again")
    await tab.until(queue.TOO_MANY_HERE)
    assert len(await talk.calls()) == 2
    settings.HITL_MAX_WAITING_PER_CONVERSATION = 2
    await tab.send(type="resolve", call=str(lost.pk), outcome="again")
    for approval in await talk.asked(2):
        await talk.approve(approval)
    assert (await talk.over()).status == RunStatus.DONE


async def lost_after_yes(talk: Talk, approval: Approval) -> ToolCall:
    """The call of `approval`, which was executing in a process that died."""
    background.adopt(None)
    await talk.approve(approval)
    claimed = await in_database(perform.claim)(approval.call_id)
    background.adopt(asyncio.get_running_loop())
    assert claimed is not None
    return await in_database(move)(claimed, Status.UNKNOWN, actor=SYSTEM)


@on_servers
async def test_answers_that_stream_at_once_reach_each_its_own_page_alone(
    served: None, bob: User, bobs_client: Client, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.otherwise = lambda body: text("So it is, ", gate, f"{body['messages'][-1]['content']}.")
    talks = [Talk(await Conversation.objects.acreate(owner=bob), bob) for _ in range(4)]
    tabs = [await Tab(talk.conversation.pk, cookie_of(bobs_client)).open() for talk in talks]
    for number, tab in enumerate(tabs):
        await tab.send(type="say", content=f"N{number}E")
    # All of them are being written before the first one ends.
    await soon(lambda: len(scripted_model.requests) == len(talks), "all are asked")
    gate.open()
    for number, tab in enumerate(tabs):
        await tab.until(f"So it is, N{number}E.")
        assert set(re.findall(r"N\d+E", "".join(tab.seen))) == {f"N{number}E"}
    for talk in talks:
        assert (await talk.over()).status == RunStatus.DONE
    for tab in tabs:
        await tab.close()
