"""Messages said while a run goes on: each is said once the run before is done, and none is lost."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from hitlchat.agent import conversations, runner, runs, transcript
from hitlchat.agent.answer import Answer
from hitlchat.agent.models import Conversation, Message, QueuedMessage, Role, Run, RunStatus
from hitlchat.agent.runner import QueueFull, TakenBack
from hitlchat.agent.runs import Gone
from hitlchat.gate.models import new_id
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.gate.racing import Work, somebody_waits, together
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, status, text
from tests.waiting import stored, until

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("row locks tell two at a time apart")


@pytest.fixture(autouse=True)
def gated(recorder: Recorder) -> None:
    recorded_tool("send")


def said(talk: Talk) -> list[str]:
    rows = Message.objects.filter(conversation=talk.conversation, role=Role.USER).order_by("seq")
    return list(rows.values_list("content", flat=True))


async def all_said(talk: Talk, *expected: str) -> None:
    done = Run.objects.filter(conversation=talk.conversation, status=RunStatus.DONE)
    await stored(lambda: done.count() == len(expected) and said(talk) == list(expected), "all is said and answered")
    assert not await QueuedMessage.objects.aexists()


async def test_what_is_said_while_a_call_waits_is_said_in_its_order_once_it_is_answered(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {"text": "up"})), text("Sent."), text("Two."), text("Three."))
    await talk.say("One")
    waiting = await talk.only()
    for content in ("Two?", "Three?"):
        await in_database(runner.queue)(talk.conversation, content)
    assert await in_database(said)(talk) == ["One"]
    await talk.approve(waiting)
    await all_said(talk, "One", "Two?", "Three?")
    assert [each["content"] for each in scripted_model.messages][-1] == "Three?"


@on_servers
async def test_what_is_queued_just_after_the_run_ended_is_said_at_once(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("Two."))
    await talk.ask("One")
    await in_database(runner.queue)(talk.conversation, "Two?")
    await all_said(talk, "One", "Two?")


@pytest.mark.parametrize("ending", ["failed", "stopped"])
async def test_after_a_run_that_came_to_no_end_it_waits_for_the_person(
    talk: Talk, scripted_model: ScriptedModel, ending: str
) -> None:
    scripted_model.enqueue(calls(("send", {"text": "up"})))
    run = await talk.say("One")
    waiting = await talk.only()
    await in_database(runner.queue)(talk.conversation, "Two?")
    if ending == "stopped":
        await in_database(runner.stop)(run.pk, talk.conversation.pk, signed_in(talk.owner))
    else:
        scripted_model.enqueue(status(500))
        await talk.approve(waiting)
    assert (await talk.over()).status == ending
    await in_database(runner.go_on)(talk.conversation.pk)
    assert await QueuedMessage.objects.acount() == 1
    scripted_model.enqueue(text("Two."))
    assert await in_database(runner.go_on)(talk.conversation.pk, whatever=True)
    await talk.over()
    assert await in_database(said)(talk) == ["One", "Two?"]


async def test_what_is_taken_back_is_not_said(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(calls(("send", {"text": "up"})), text("No."))
    await talk.say("One")
    waiting = await talk.only()
    row = await in_database(runner.enqueue)(talk.conversation.pk, "Two?")
    assert await in_database(runner.take_back)(talk.conversation.pk, row.pk) == TakenBack("Two?", [])
    assert await in_database(runner.take_back)(talk.conversation.pk, row.pk) is None
    await talk.decline(waiting)
    await talk.over()
    assert await in_database(said)(talk) == ["One"]


@on_servers
async def test_a_message_is_either_sent_or_taken_back(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.otherwise = lambda _request: text("Yes.")
    await talk.ask("One")
    for _ in range(4):
        # Counted first: the end of the run before may send the message as soon as the row exists.
        before = await in_database(said)(talk)
        row = await QueuedMessage.objects.acreate(conversation=talk.conversation, content="Two?")
        _, back = await asyncio.gather(
            in_database(runner.go_on)(talk.conversation.pk),
            in_database(runner.take_back)(talk.conversation.pk, row.pk),
        )
        await talk.over()
        was_said = len(await in_database(said)(talk)) - len(before)
        assert (was_said, back) in ((1, None), (0, TakenBack("Two?", [])))


@on_servers
async def test_what_a_process_that_died_did_not_come_to_the_sweeper_sends(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("Two."))
    await talk.ask("One")
    await QueuedMessage.objects.acreate(conversation=talk.conversation, content="Two?")
    await runner.sweeper().turn()
    await all_said(talk, "One", "Two?")


async def test_nothing_is_said_for_someone_who_was_deactivated(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("One."))
    await talk.ask("One")
    talk.owner.is_active = False
    await talk.owner.asave()
    # Only now: the end of the run may still be about to look for what waits.
    await QueuedMessage.objects.acreate(conversation=talk.conversation, content="Two?")
    await runner.sweeper().turn()
    assert await in_database(said)(talk) == ["One"]


async def test_no_more_wait_than_somebody_could_mean(talk: Talk) -> None:
    for number in range(runner.MOST):
        await in_database(runner.enqueue)(talk.conversation.pk, f"{number}")
    with pytest.raises(QueueFull):
        await in_database(runner.enqueue)(talk.conversation.pk, "One more")
    assert await QueuedMessage.objects.acount() == runner.MOST


@on_servers
async def test_a_deleted_conversation_takes_what_waits_with_it(talk: Talk) -> None:
    await in_database(runner.enqueue)(talk.conversation.pk, "Two?")
    await in_database(conversations.delete)(talk.conversation, signed_in(talk.owner))
    with pytest.raises(Gone):
        await in_database(runner.enqueue)(talk.conversation.pk, "Three?")
    assert not await in_database(runner.go_on)(talk.conversation.pk, whatever=True)
    gone = timezone.now() - conversations.KEPT - timedelta(minutes=1)
    await type(talk.conversation).objects.filter(pk=talk.conversation.pk).aupdate(deleted_at=gone)
    await in_database(conversations.purge)()
    assert not await QueuedMessage.objects.aexists()


@pytest.mark.postgres
@on_servers
def test_what_is_said_in_the_moment_in_which_the_run_ends_stops_neither(bob: User) -> None:
    talk = Conversation.objects.create(owner=bob)
    _, claim = runs.start(talk, "One")
    turn = transcript.open_answer(talk.pk, claim.run_id, new_id())
    ends: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            runs.hold(claim)
            saying = pool.submit(lambda: ends.extend(together(partial(runs.start, talk, "Two"))))
            until(somebody_waits, "the second message waits for the end of the run", seconds=20)
            transcript.close_answer(turn.pk, Answer("One."))
            runs.finish(claim, RunStatus.DONE)
        saying.result(20)
    assert [type(end) for end in ends] == [tuple]
    assert list(Run.objects.order_by("created_at").values_list("status", flat=True)) == ["done", "running"]


@pytest.mark.postgres
@on_servers
@pytest.mark.parametrize("first", ["note", "said"])
def test_what_is_said_in_the_moment_in_which_a_note_is_made_finds_a_place_of_its_own_as_the_note_does(
    bob: User, first: str
) -> None:
    talk = Conversation.objects.create(owner=bob)
    works: dict[str, Work] = {
        "note": partial(transcript.add_note, talk.pk, "It ended.", for_model="It ended.", turn_id=None),
        "said": partial(runs.start, talk, "So?"),
    }
    ends: list[Any] = []
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            works.pop(first)()
            (second,) = works.values()
            other = pool.submit(lambda: ends.extend(together(second)))
            until(somebody_waits, "the other one waits", seconds=20)
        other.result(20)
    assert not isinstance(ends[0], Exception)
    texts = ["It ended.", "So?"] if first == "note" else ["So?", "It ended."]
    assert list(Message.objects.order_by("seq").values_list("content", flat=True)) == texts
