"""Branches: what is said in place of something else stays beside it, and the model reads the shown branch alone."""

import asyncio
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hitlchat.agent import branches, conversations, runner, runs, transcript, writing
from hitlchat.agent.answer import Answer
from hitlchat.agent.branches import NoSuchVersion
from hitlchat.agent.models import Conversation, Message, MessageState, Role, Run, RunStatus
from hitlchat.agent.runs import Gone, RunActive
from hitlchat.gate.models import ToolCall
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import DONE, Gate, Reply, ScriptedModel, calls, chunk, error_after, status, text, unfinished
from tests.waiting import soon, stored

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("row locks tell two at a time apart")


@pytest.fixture(autouse=True)
def gated(recorder: Recorder) -> None:
    recorded_tool("send")


def shown(conversation: Conversation) -> list[str]:
    rows = Message.objects.shown().filter(conversation=conversation).exclude(role=Role.TOOL)
    return list(rows.order_by("seq").values_list("content", flat=True))


def version(conversation: Conversation, words: str) -> tuple[int, int]:
    """Which of how many versions the message with these words is."""
    message = Message.objects.get(conversation=conversation, content=words, role=Role.USER)
    found = branches.versions([message])[message.pk]
    return found.place, len(found.runs)


async def turned(talk: Talk, run_id: UUID, content: str | None = None) -> Run:
    await in_database(runner.instead)(talk.conversation, run_id, content)
    return await talk.over()


async def test_an_edited_message_takes_the_place_of_what_came_after_it_and_both_are_kept(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("Two."), text("Other."))
    first = await talk.ask("First")
    await talk.ask("Second")
    await turned(talk, first.pk, "Else")

    assert await in_database(shown)(talk.conversation) == ["Else", "Other."]
    assert [each["content"] for each in scripted_model.requests[-1]["messages"][1:]] == ["Else"]
    assert await in_database(version)(talk.conversation, "First") == (1, 2)
    assert await in_database(version)(talk.conversation, "Else") == (2, 2)
    await in_database(branches.switch)(talk.conversation.pk, first.pk)
    assert await in_database(shown)(talk.conversation) == ["First", "One.", "Second", "Two."]


async def test_an_answer_that_is_asked_for_again_leaves_the_one_before_as_a_version(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("Two."), text("Two, better."), text("On."))
    await talk.ask("First")
    second = await talk.ask("Second")
    again = await turned(talk, second.pk)
    assert await in_database(shown)(talk.conversation) == ["First", "One.", "Second", "Two, better."]
    assert again.parent_id == second.parent_id

    await in_database(branches.switch)(talk.conversation.pk, second.pk)
    await talk.ask("Third")
    sent = [each["content"] for each in scripted_model.requests[-1]["messages"][1:]]
    assert sent == ["First", "One.", "Second", "Two.", "Third"]


@on_servers
async def test_a_switch_goes_to_the_end_that_the_branch_was_last_gone_on_with(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(*(text(f"Answer {n}.") for n in range(4)))
    first = await talk.ask("First")
    deep = await talk.ask("Deep")
    deeper = await turned(talk, deep.pk, "Deeper")
    other = await turned(talk, first.pk, "Other")
    await in_database(branches.switch)(talk.conversation.pk, first.pk)
    assert (await in_database(shown)(talk.conversation))[::2] == ["First", "Deeper"]
    await in_database(branches.switch)(talk.conversation.pk, deep.pk)
    assert (await in_database(shown)(talk.conversation))[::2] == ["First", "Deep"]
    assert {deep.parent_id, deeper.parent_id} == {first.pk}
    assert other.parent_id is None


async def test_a_run_that_tried_again_goes_back_to_what_the_person_had_said(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(status(500), text("At last."), text("Else."))
    await talk.ask("First")
    await in_database(runner.retry)(talk.conversation)
    retried = await talk.over()
    assert retried.parent_id is not None
    await turned(talk, retried.pk, "Second try")
    assert await in_database(shown)(talk.conversation) == ["Second try", "Else."]
    assert await in_database(version)(talk.conversation, "First") == (1, 2)


async def test_while_a_call_waits_nothing_turns_elsewhere(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("One."), calls(("send", {"text": "up"})))
    first = await talk.ask("First")
    second = await talk.say("Send it.")
    await talk.asked()
    for content in (None, "Else"):
        with pytest.raises(RunActive, match="A call waits for an answer"):
            await in_database(runner.instead)(talk.conversation, first.pk, content)
    with pytest.raises(RunActive, match="A call waits for an answer"):
        await in_database(branches.switch)(talk.conversation.pk, first.pk)
    assert (await in_database(shown)(talk.conversation))[:3] == ["First", "One.", "Send it."]
    assert await Run.objects.filter(conversation=talk.conversation).acount() == 2
    await in_database(runner.stop)(second.pk, talk.conversation.pk, signed_in(talk.owner))


async def test_a_call_that_is_asked_for_again_needs_a_yes_of_its_own(talk: Talk, scripted_model: ScriptedModel) -> None:
    asks = calls(("send", {"text": "up"}))
    scripted_model.enqueue(asks, text("Sent."), asks, text("Not sent."))
    run = await talk.say("Send it.")
    await talk.approve(await talk.only())
    await talk.over()
    await in_database(runner.instead)(talk.conversation, run.pk, None)
    await talk.decline(await talk.only())
    await talk.over()
    done = [call.status async for call in ToolCall.objects.order_by("created_at")]
    assert done == [Status.SUCCEEDED, Status.DECLINED]


@on_servers
async def test_of_two_tabs_that_edit_the_same_message_one_is_told_that_the_other_goes_on(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.otherwise = lambda _request: text("Yes.")
    first = await talk.ask("First")
    both = (in_database(runner.instead)(talk.conversation, first.pk, words) for words in ("A", "B"))
    ended = await asyncio.gather(*both, return_exceptions=True)
    await talk.over()
    refused = [each for each in ended if isinstance(each, RunActive)]
    assert len(refused) <= 1
    said = (
        {"First", "A", "B"}
        if not refused
        else {"First", *(w for w, e in zip("AB", ended, strict=True) if e not in refused)}
    )
    rows = Message.objects.filter(conversation=talk.conversation, role=Role.USER)
    assert {row.content async for row in rows} == said
    assert await Run.objects.filter(conversation=talk.conversation, shown=True).acount() == 1


async def test_what_is_not_in_the_conversation_is_no_version_of_it(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("One."))
    run = await talk.ask("First")
    elsewhere = await Conversation.objects.acreate(owner=talk.owner)
    for turn in (branches.switch, lambda pk, run_id: branches.instead(pk, run_id, "Mine")):
        with pytest.raises(NoSuchVersion):
            await in_database(turn)(elsewhere.pk, run.pk)
    assert await elsewhere.messages.acount() == 0
    await in_database(conversations.delete)(talk.conversation, signed_in(talk.owner))
    for turn in (branches.switch, lambda pk, run_id: branches.instead(pk, run_id, "Mine")):
        with pytest.raises(Gone):
            await in_database(turn)(talk.conversation.pk, run.pk)
    await in_database(conversations.purge)()


async def test_a_note_about_a_call_stays_on_the_branch_of_the_call(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(calls(("send", {"text": "up"})), text("Maybe."), text("Fine."))
    run = await talk.say("Send it.")
    approval = await talk.only()
    await talk.approve(approval)
    await talk.over()
    call = await ToolCall.objects.aget(pk=approval.call_id)
    await in_database(transcript.add_note)(
        talk.conversation.pk, "It did happen.", for_model="It happened.", turn_id=call.turn_id
    )
    assert (await in_database(shown)(talk.conversation))[-1] == "It did happen."
    await turned(talk, run.pk, "Hello")
    assert "It did happen." not in await in_database(shown)(talk.conversation)
    assert "It happened." not in str(scripted_model.requests[-1])


@on_servers
async def test_a_run_that_begins_while_another_tab_switches_stays_on_one_branch(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.otherwise = lambda _request: text("Yes.")
    first = await talk.ask("First")
    other = await turned(talk, first.pk, "Other")
    for run in (first, other):
        await asyncio.gather(
            in_database(branches.switch)(talk.conversation.pk, run.pk),
            in_database(runner.say)(talk.conversation, "And?"),
            return_exceptions=True,
        )
        await talk.over()
        tip = await Conversation.objects.select_related("tip").aget(pk=talk.conversation.pk)
        path, at = set(), tip.tip
        while at is not None:
            path.add(at.pk)
            at = await Run.objects.aget(pk=at.parent_id) if at.parent_id else None
        rows = Run.objects.filter(conversation=talk.conversation, shown=True)
        assert {row.pk async for row in rows} == path


async def test_what_the_model_thought_first_is_kept_and_shown_folded(talk: Talk, scripted_model: ScriptedModel) -> None:
    thoughts = [chunk({"reasoning_content": each}) for each in ("The person ", "asks whether.")]
    scripted_model.enqueue(Reply((*thoughts, *text("Yes.").parts)))
    await talk.ask("May I?")
    answer = await Message.objects.aget(conversation=talk.conversation, role=Role.ASSISTANT)
    assert (answer.content, answer.reasoning) == ("Yes.", "The person asks whether.")
    page = await in_database(talk.page)()
    assert "Reasoning" in page
    assert "The person asks whether." in page


def thinking(*parts: Any) -> tuple[Any, ...]:
    """The chunks of thoughts; gates among them stay."""
    return tuple(chunk({"reasoning_content": each}) if isinstance(each, str) else each for each in parts)


async def cut(talk: Talk) -> Message:
    return await Message.objects.aget(conversation=talk.conversation, role=Role.ASSISTANT)


@pytest.mark.parametrize(
    "rest, content",
    [
        (unfinished("Half").parts, "Half"),
        (error_after().parts, ""),
        ((chunk({}, "length"), DONE), ""),
    ],
)
async def test_thoughts_of_an_answer_that_was_cut_off_are_kept_and_shown_folded(
    talk: Talk, scripted_model: ScriptedModel, rest: tuple[Any, ...], content: str
) -> None:
    scripted_model.enqueue(Reply((*thinking("The person ", "asks whether."), *rest)))
    assert (await talk.ask("May I?")).status == RunStatus.FAILED
    answer = await cut(talk)
    assert (answer.content, answer.reasoning, answer.state) == (content, "The person asks whether.", MessageState.CUT)
    page = await in_database(talk.page)()
    assert "The person asks whether." in page
    scripted_model.enqueue(text("Yes."))
    await talk.ask("And now?")
    assert [message["role"] for message in scripted_model.messages] == (
        ["user", "assistant", "user"] if content else ["user"]
    )


async def test_thoughts_of_a_stopped_answer_are_kept(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(Reply(thinking("The person ", gate)))
    run = await talk.say("May I?")
    await soon(lambda: (found := writing.so_far(run.pk)) and found.reasoning, "the thoughts have come")
    await talk.stop()
    assert ((await cut(talk)).content, (await cut(talk)).reasoning) == ("", "The person")


async def test_thoughts_in_the_text_are_folded_while_they_come_however_their_tags_are_cut(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    thinks, answers = Gate(), Gate()
    scripted_model.enqueue(
        text(" <thi", "nk>The per", "son asks.", thinks, "</th", "ink>\n", "\n", "Yes, <think>", answers, " so.")
    )
    run = await talk.say("May I?")

    def so_far() -> tuple[str, str] | None:
        return (found.text, found.reasoning) if (found := writing.so_far(run.pk)) else None

    await soon(lambda: so_far() == ("", "The person asks."), "the thoughts have come, and are no text")
    thinks.open()
    await soon(lambda: so_far() == ("Yes, <think>", "The person asks."), "the answer has begun")
    answers.open()
    await talk.over()
    answer = await cut(talk)
    assert (answer.content, answer.reasoning) == ("Yes, <think> so.", "The person asks.")


@on_servers
async def test_thoughts_are_stored_now_and_then_for_who_stops_the_run_elsewhere(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(Reply(thinking("The person ", gate)))
    run = await talk.say("May I?")
    await stored(lambda: Message.objects.filter(run=run, reasoning="The person").exists(), "the thoughts are stored")
    # As another process does, which has nothing of the answer but what is stored.
    await in_database(runs.stop)(run.pk, signed_in(talk.owner))
    assert (await cut(talk)).reasoning == "The person"


async def test_thoughts_are_read_as_servers_write_them() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"reasoning": ["First ", "this."]}, "First this."),
        ({"reasoning_details": [[{"type": "reasoning.summary", "summary": "In short."}]]}, "In short."),
        ({"reasoning_details": [[{"type": "reasoning.encrypted", "data": "eHl6"}]]}, ""),
        ({"reasoning_details": [["odd", None, {"text": ["odd"]}]]}, ""),
        ({"reasoning_content": [{"odd": 1}]}, ""),
        ({"thinking_blocks": [[{"type": "thinking", "thinking": "Hm."}]], "other": ["x"]}, "Hm."),
        ({}, ""),
    ]
    for extra, thought in rows:
        assert Answer("Yes.", extra=extra).reasoning == thought


@on_servers
def test_switching_in_a_long_conversation_takes_few_queries(bob: User) -> None:
    made = Conversation.objects.create(owner=bob)

    def branch(turns: int, *, shown: bool) -> list[Run]:
        rows = [Run(conversation=made, status=RunStatus.DONE, shown=shown) for _ in range(turns)]
        for before, after in pairwise(rows):
            after.parent = before
        return Run.objects.bulk_create(rows)

    def queries(turns: int) -> int:
        hidden, seen = branch(turns, shown=False), branch(turns, shown=True)
        Conversation.objects.filter(pk=made.pk).update(tip=seen[-1])
        row = Message.objects.create(conversation=made, run=hidden[-1], seq=made.messages.count() + 1, role=Role.USER)
        with CaptureQueriesContext(connection) as captured:
            assert branches.hidden(made.pk, row.pk) is not None
            branches.switch(made.pk, hidden[0].pk)
        made.refresh_from_db()
        assert made.tip_id == hidden[-1].pk
        assert set(made.runs.filter(shown=True)) == set(hidden)
        return len(captured)

    assert queries(1000) <= queries(2)
