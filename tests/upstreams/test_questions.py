"""A server asks back in the middle of a call: the right person is asked, and only what they say goes back."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.base.database import in_db
from hitlchat.base.forms import BadAnswer
from hitlchat.base.problems import Forbidden, NotFound
from hitlchat.gate import stopping
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.upstreams.client.link import Question
from hitlchat.upstreams.elicitation import questions
from hitlchat.upstreams.elicitation.questions import Asker
from hitlchat.upstreams.models import QuestionState, UpstreamQuestion
from tests.conftest import signed_in
from tests.gate.asking import events
from tests.upstreams.asking import (
    WAYS,
    Counter,
    StartCounter,
    answer,
    asked,
    decline,
    executing_elsewhere,
    open_question,
)
from tests.upstreams.client.upstreams import written
from tests.upstreams.gated import asked as submitted
from tests.upstreams.gated import called, exposed, program, settled
from tests.waiting import soon, stored

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("allow_stdio", "serving"),
]
locks = pytest.mark.servers("row locks tell two at a time apart")

FORM = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
SECRET = {"type": "object", "properties": {"apiKey": {"type": "string"}}}


async def tools_of(alice: User, counter: Counter, *names: str, **fields: object) -> dict[str, Tool]:
    server = await in_db(counter.add)(alice, **fields)
    return await exposed(alice, server, *names)


@pytest.fixture
async def executing(alice: User, bob: User, counter: StartCounter) -> AsyncIterator[ToolCall]:
    """A call of bob's whose server waits for his answer."""
    call = await submitted(bob, (await tools_of(alice, counter("http-2026"), "paint"))["paint"])
    question = await open_question(bob)
    yield call
    if not (await in_db(ToolCall.objects.get)(pk=call.pk)).settled:
        await in_db(questions.give_up)(question, QuestionState.GONE)
        await settled(call)


@pytest.mark.parametrize("how", WAYS)
async def test_the_person_is_asked_and_what_they_say_goes_back_to_the_server(
    how: str, alice: User, bob: User, counter: StartCounter
) -> None:
    there = await asyncio.to_thread(counter, how)
    tools = await tools_of(alice, there, "paint", "enter", "think", "roots")
    call = await submitted(bob, tools["paint"])
    question = await open_question(bob)
    assert (question.call_id, question.server_name, question.url) == (call.pk, "counter", "")
    assert question.message == "Approve: which paint shall it be?"
    await answer(bob, question, colour="blue", litres=3, gift=True)
    ended = await settled(call)
    said = "accept {'colour': 'blue', 'litres': 3, 'gift': True}"
    assert (ended.status, ended.result["result"]) == (Status.SUCCEEDED, said)

    call = await submitted(bob, tools["paint"])
    closed = await decline(bob, await open_question(bob))
    assert (closed.state, closed.answered_by_id, closed.means) == (QuestionState.DECLINED, bob.pk, "session")
    assert (await settled(call)).result["result"] == "decline"

    # A password is asked of nobody, and nobody is said to have declined.
    call = await called(bob, tools["enter"])
    (question,) = await in_db(asked)(call)
    assert (question.state, question.answered_by_id, question.schema) == (QuestionState.DECLINED, None, {})
    assert question.note.startswith("The server asked for a secret (“password”).")
    assert call.result["result"] == "cancel"
    assert "call.question_declined" in await in_db(events)(call)
    assert there.log == [f"answered {said}", "answered decline", "answered cancel"]

    # The model and the folders of this installation are not for servers.
    for name in ("think", "roots"):
        call = await called(bob, tools[name])
        assert (call.status, await in_db(asked)(call)) == (Status.FAILED, [])


@locks
async def test_of_two_answers_the_first_counts_and_only_the_names_of_its_fields_are_kept(
    bob: User, executing: ToolCall
) -> None:
    question = await open_question(bob)
    await answer(bob, question, colour="blue", litres=3)
    with pytest.raises(questions.NotOpen, match="no longer open: answered"):
        await decline(bob, question)
    assert "'colour': 'blue'" in (await settled(executing)).result["result"]
    (found,) = await in_db(asked)(executing)
    assert (found.state, found.sealed, found.fields) == (QuestionState.ANSWERED, "", ["colour", "litres"])
    record = await in_db(lambda: [event.data for event in AuditEvent.objects.filter(call=executing)])()
    assert "blue" not in str(record)
    assert (await in_db(events)(executing))[2:] == ["call.question_asked", "call.question_answered", "call.succeeded"]


@pytest.mark.guarantee("gate:only-people")
async def test_nobody_else_no_program_and_nothing_that_does_not_fit_answers_it(
    alice: User, bob: User, charlie: User, executing: ToolCall
) -> None:
    question = await open_question(bob)
    for person in (alice, charlie):
        with pytest.raises(NotFound):
            await answer(person, question, colour="blue")
    with pytest.raises(Forbidden):
        await in_db(questions.answer)(question.pk, Actor(bob.pk, "system"), {"colour": "blue"})
    with pytest.raises(BadAnswer) as refused:
        await answer(bob, question, colour="green", litres=12, gift="yes", more=1)
    assert refused.value.errors == {
        "more": "There is no such field.",
        "colour": "Choose one from the list.",
        "litres": "Give a number of at most 9.",
        "gift": "Choose yes or no.",
    }
    assert (await open_question(bob)).pk == question.pk
    assert not await in_db(questions.open_for(alice.pk).exists)()


async def test_nobody_answers_in_time_and_the_server_is_told(
    alice: User, bob: User, counter: StartCounter, settings: Settings
) -> None:
    settings.MCP_QUESTION_SECONDS = 1
    there = await asyncio.to_thread(counter, "http-2026")
    call = await called(bob, (await tools_of(alice, there, "paint"))["paint"])
    (question,) = await in_db(asked)(call)
    assert (question.state, there.log) == (QuestionState.EXPIRED, ["answered cancel"])
    with pytest.raises(questions.NotOpen, match="nobody answered in time"):
        await answer(bob, question, colour="red")


@pytest.mark.slow("bets on time")
async def test_the_time_of_the_call_does_not_go_on_while_it_waits_for_the_person(
    alice: User, bob: User, counter: StartCounter
) -> None:
    there = await asyncio.to_thread(counter, "http-2026")
    call = await submitted(bob, (await tools_of(alice, there, "paint", call_seconds=4))["paint"])
    question = await open_question(bob)
    await stored(lambda: timezone.now() - question.asked_at > timedelta(seconds=4.5), "longer than the call may take")
    await answer(bob, question, colour="red")
    assert (await settled(call)).status == Status.SUCCEEDED


async def test_a_server_that_dies_takes_its_question_along(alice: User, bob: User, counter: StartCounter) -> None:
    there = await asyncio.to_thread(counter, "http-2025")
    call = await submitted(bob, (await tools_of(alice, there, "paint"))["paint"])
    question = await open_question(bob)
    await asyncio.to_thread(there.kill)
    assert (await settled(call)).status == Status.UNKNOWN
    (found,) = await in_db(asked)(call)
    assert (found.pk, found.state) == (question.pk, QuestionState.GONE)


async def test_a_call_that_is_lost_takes_back_what_was_asked_and_erases_what_never_arrived(bob: User) -> None:
    call = await in_db(executing_elsewhere)(bob)
    asking = [asyncio.create_task(Asker(call, "counter").ask(Question("counter", "Which?", FORM))) for _ in range(2)]
    await stored(lambda: len(asked(call)) == 2, "both are asked")
    one, _ = await in_db(asked)(call)
    await in_db(UpstreamQuestion.objects.filter(pk=one.pk).update)(state=QuestionState.ANSWERED, sealed="sealed")
    await in_db(questions.end_with)(call.pk)
    found = await in_db(asked)(call)
    assert [(each.state, each.sealed) for each in found] == [(QuestionState.GONE, "")] * 2
    await asyncio.wait(asking, timeout=10)


@locks
async def test_no_call_asks_more_than_three_at_a_time_or_ten_in_all(bob: User) -> None:
    call = await in_db(executing_elsewhere)(bob)
    asker = Asker(call, "counter")
    waiting = [asyncio.create_task(asker.ask(Question("counter", f"{number}?", FORM))) for number in range(3)]
    await open_question(bob, 3)
    assert (await asker.ask(Question("counter", "4?", FORM))).action == "cancel"
    for _ in range(3):
        await decline(bob, await in_db(lambda: questions.open_for(bob.pk)[0])())
    assert {(await one).action for one in waiting} == {"decline"}
    for number in range(5, 11):
        assert (await asker.ask(Question("counter", f"{number}?", SECRET))).action == "cancel"
    assert (await asker.ask(Question("counter", "11?", FORM))).action == "cancel"
    notes = [question.note for question in await in_db(asked)(call)]
    assert (notes[3], notes[10]) == (
        "3 of its questions were open already.",
        "It is more than the 10 that a call may ask.",
    )


async def test_what_belongs_to_no_single_call_is_asked_of_nobody_and_each_call_says_so(
    alice: User, bob: User, charlie: User, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    tools = await exposed(alice, await in_db(program)(alice, env={"LOG": log}), "silent", "many_questions")
    other = await submitted(charlie, tools["silent"])
    await soon(lambda: written(log).split() == ["silent"], "its server has it")
    one = await called(bob, tools["many_questions"])
    await in_db(stopping.request)(other.pk, signed_in(charlie))
    for call in (one, await settled(other)):
        (question,) = await in_db(asked)(call)
        assert (question.state, question.message) == (QuestionState.DECLINED, "")
        assert "nothing shows which one it belongs to" in question.note


async def test_an_address_is_no_form_and_an_answer_to_it_says_only_that_the_person_agrees(
    alice: User, bob: User, counter: StartCounter
) -> None:
    there = await asyncio.to_thread(counter, "http-2025")
    call = await submitted(bob, (await tools_of(alice, there, "visit"))["visit"])
    question = await open_question(bob)
    assert question.url == "https://xn--pple-43d.example/sign-in?next=/"
    with pytest.raises(BadAnswer):
        await answer(bob, question, more="words")
    await answer(bob, question)
    assert (await settled(call)).result["result"] == "accept"


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:one-funnel", "SR-36")
async def test_answering_a_question_decides_nothing_at_the_gate(alice: User, bob: User, counter: StartCounter) -> None:
    there = await asyncio.to_thread(counter, "http-2026")
    tools = await tools_of(alice, there, "paint", "steps")
    await in_db(Tool.objects.filter(pk=tools["steps"].pk).update)(hitl_mode="REQUIRED")
    waiting = await submitted(bob, tools["steps"], seconds=0)
    call = await submitted(bob, tools["paint"])
    question = await open_question(bob)
    before = await in_db(list)(Approval.objects.values_list("pk", "digest"))
    with pytest.raises(NotFound):
        await in_db(questions.answer)(before[0][0], signed_in(bob), {"colour": "blue"})
    await answer(bob, question, colour="blue")
    await settled(call)
    assert await in_db(list)(Approval.objects.values_list("pk", "digest")) == before
    assert await in_db(Decision.objects.count)() == 0
    assert (await in_db(ToolCall.objects.get)(pk=waiting.pk)).status == Status.WAITING
    assert "began" not in there.log
