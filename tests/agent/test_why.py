"""Asking why: the model answers on the card, from its conversation, and nothing else changes by it."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from hitlchat.agent import usage, why
from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Conversation, ModelUse
from hitlchat.agent.request import own_body
from hitlchat.gate import asking_why
from hitlchat.gate.asking_why import CannotAsk
from hitlchat.gate.decide import AlreadySettled
from hitlchat.gate.models import Approval, AuditEvent, ToolCall
from hitlchat.gate.status import Status
from hitlchat.gate.why import IMITATION, LONGEST_ANSWER, UNANSWERED, Exchange, of, slow
from tests.agent.demo_tools import reply_to
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, Reply, ScriptedModel, calls, chunk, hang, sse, status, text
from tests.waiting import stored

pytestmark = pytest.mark.django_db(transaction=True)

BECAUSE = "You asked me to send it to Ann."


async def waiting(talk: Talk, model: ScriptedModel) -> Approval:
    """The approval of a call that waits, in a conversation of one message."""
    await in_database(recorded_tool)("send", risk_level=2)
    model.enqueue(calls(("send", {"text": "hi"}), say="I send it."))
    await talk.say("Send hi to Ann.")
    return await talk.only()


async def ask(approval: Approval, person: User, question: str = "") -> None:
    await in_database(why.ask)(approval.pk, signed_in(person), question)


def exchanges(approval: Approval) -> tuple[Exchange, ...]:
    found = of(Approval.objects.select_related("call").get(pk=approval.pk))
    return found.exchanges if found else ()


async def answered_by_now(approval: Approval, count: int = 1) -> Exchange:
    """The last of so many questions, once none waits for its answer any more."""
    await stored(lambda: [each.waits for each in exchanges(approval)] == [False] * count, "the model has answered")
    return (await in_database(exchanges)(approval))[-1]


def rows(talk: Talk) -> list[Any]:
    """All that the conversation and its call are, but for what was asked about it."""
    found: list[Any] = [*talk.conversation.messages.order_by("pk").values()]
    found += [*ToolCall.objects.filter(conversation_id=talk.conversation.pk).values()]
    return [*found, *Approval.objects.values("prompt", "disclosure", "digest")]


async def test_the_model_answers_from_its_conversation_and_nothing_else_changes(
    talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    approval = await waiting(talk, scripted_model)
    before = await in_database(rows)(talk)
    scripted_model.enqueue(text(BECAUSE))
    await ask(approval, talk.owner, "Why to Ann?")
    answered = await answered_by_now(approval)
    assert (answered.person, answered.question, answered.answer) == ("bob", "Why to Ann?", BECAUSE)
    assert await in_database(rows)(talk) == before
    request = scripted_model.requests[-1]
    assert "tools" not in request
    system, data = request["messages"]
    assert system["content"] == why.INSTRUCTIONS
    read = json.loads(data["content"])
    assert [each["text"] for each in read["conversation"]] == ["Send hi to Ann.", "I send it."]
    assert (read["call"], read["question"]) == ({"tool": "send", "arguments": {"text": "hi"}}, "Why to Ann?")

    scripted_model.enqueue(text("Sent."))
    await talk.approve(approval)
    await talk.over()
    assert [name for name, _ in recorder.entered] == ["send"]
    assert not [part for part in ("Why to Ann?", BECAUSE) if part in json.dumps(scripted_model.requests[-1])]


async def test_who_asked_what_and_what_was_claimed_is_on_record(talk: Talk, scripted_model: ScriptedModel) -> None:
    approval = await waiting(talk, scripted_model)
    scripted_model.enqueue(text(BECAUSE))
    await ask(approval, talk.owner)
    await answered_by_now(approval)
    events = AuditEvent.objects.filter(name__in=["call.asked_why", "call.why_answered"])
    put, claimed = await in_database(list)(events)
    assert (put.data["by"]["name"], put.data["question"], put.data["number"]) == ("bob", "", 1)
    assert (claimed.data["answer"], claimed.data["number"], claimed.data["trouble"]) == (BECAUSE, 1, "")
    assert json.loads(scripted_model.requests[-1]["messages"][1]["content"])["question"] == why.DEFAULT


def _long() -> Reply:
    return text("a" * (LONGEST_ANSWER + 1))


BAD: dict[str, tuple[Reply, str]] = {
    "unreachable": (status(503), "503"),
    "nothing": (text(""), "empty"),
    "blank after its thoughts": (text("<think>Hm.</think>  "), "empty"),
    "a call": (calls(("send", {"text": "hi"})), why.CALLED),
    "a call and words": (calls(("send", {"text": "hi"}), say=BECAUSE), why.CALLED),
    "the words of a button": (text("It is safe.\n\n  APPR\u041eVE:  run send"), IMITATION),
    "the level of a card": (text("L1 · Safe"), IMITATION),
    "an approval": (text("Approved by alice."), IMITATION),
    "the label of an answer": (text("What the model says. It may be wrong."), IMITATION),
    "broken off": (hang(), "server"),
}


@pytest.mark.parametrize("name", BAD)
async def test_whatever_else_the_server_answers_ends_in_a_sentence_and_can_be_asked_again(
    talk: Talk, scripted_model: ScriptedModel, recorder: Recorder, name: str
) -> None:
    approval = await waiting(talk, scripted_model)
    reply, words = BAD[name]
    scripted_model.enqueue(reply)
    await ask(approval, talk.owner)
    for part in reply.parts:
        if isinstance(part, Gate):
            part.open()
    failed = await answered_by_now(approval)
    assert words in failed.trouble
    assert failed.answer == ""
    scripted_model.enqueue(text(BECAUSE))
    await ask(approval, talk.owner)
    assert (await answered_by_now(approval, 2)).answer == BECAUSE
    assert await talk.outcomes() == [Status.WAITING]
    assert recorder.entered == []


@pytest.mark.parametrize("reply", [_long(), Reply((chunk({"content": "You"}), chunk({}, "length"), sse({})))])
async def test_too_much_is_cut_and_says_so(talk: Talk, scripted_model: ScriptedModel, reply: Reply) -> None:
    approval = await waiting(talk, scripted_model)
    scripted_model.enqueue(reply)
    await ask(approval, talk.owner)
    answered = await answered_by_now(approval)
    assert answered.cut
    assert 0 < len(answered.answer) <= LONGEST_ANSWER


async def test_a_server_that_says_nothing_is_not_waited_for_longer(talk: Talk, scripted_model: ScriptedModel) -> None:
    approval = await waiting(talk, scripted_model)
    scripted_model.enqueue(hang())
    number = await in_database(asking_why.ask)(approval.pk, signed_in(talk.owner), "", lasts=timedelta(minutes=1))
    await why.answer(approval.pk, number, "", within=0.1)
    assert (await answered_by_now(approval)).trouble == slow(why.SECONDS)
    assert await talk.outcomes() == [Status.WAITING]


async def test_nobody_asks_while_the_model_is_being_asked_nor_a_fourth_time(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    approval = await waiting(talk, scripted_model)
    gate = Gate()
    scripted_model.enqueue(text(gate, BECAUSE), text("Two."), text("Three."))
    await ask(approval, talk.owner)
    with pytest.raises(CannotAsk, match="being asked already"):
        await ask(approval, talk.owner)
    gate.open()
    await answered_by_now(approval)
    for count in (2, 3):
        await ask(approval, talk.owner)
        await answered_by_now(approval, count)
    with pytest.raises(CannotAsk, match="3 times"):
        await ask(approval, talk.owner)
    assert len(scripted_model.requests) == 4


async def test_an_answer_that_comes_once_the_call_is_decided_is_on_record_and_changes_nothing(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    approval = await waiting(talk, scripted_model)
    gate = Gate()
    scripted_model.enqueue(text(gate, BECAUSE), text("Then not."))
    await ask(approval, talk.owner)
    await stored(lambda: len(scripted_model.requests) == 2, "the model is being asked")
    await talk.decline(approval)
    await talk.over()
    before = await in_database(rows)(talk)
    gate.open()
    assert (await answered_by_now(approval)).answer == BECAUSE
    assert await in_database(rows)(talk) == before
    assert await talk.outcomes() == [Status.DECLINED]
    with pytest.raises(AlreadySettled):
        await ask(approval, talk.owner)


async def test_what_a_server_that_died_was_asked_counts_as_unanswered_after_a_while(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    approval = await waiting(talk, scripted_model)
    await in_database(asking_why.ask)(approval.pk, signed_in(talk.owner), "", lasts=timedelta(0))
    assert [each.trouble for each in await in_database(exchanges)(approval)] == [UNANSWERED]
    scripted_model.enqueue(text(BECAUSE))
    await ask(approval, talk.owner)
    assert (await answered_by_now(approval, 2)).answer == BECAUSE
    assert await talk.outcomes() == [Status.WAITING]


async def test_its_tokens_count_for_the_conversation_and_a_spent_budget_says_so(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    approval = await waiting(talk, scripted_model)
    counts = sse({"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 30}})
    scripted_model.enqueue(Reply((chunk({"content": BECAUSE}), chunk({}, "stop"), counts, b"data: [DONE]\n\n")))
    await ask(approval, talk.owner)
    await answered_by_now(approval)
    assert (await in_database(usage.of_conversation)(talk.conversation.pk)).tokens == 100
    assert await ModelUse.objects.filter(message_id=None, run_id=None, person=talk.owner).acount() == 1
    settings.MODEL_CONVERSATION_TOKENS = 100
    with pytest.raises(CannotAsk, match="limit for a conversation is 100"):
        await ask(approval, talk.owner)
    assert len(await in_database(exchanges)(approval)) == 1


async def test_of_a_conversation_that_is_gone_nobody_is_asked(talk: Talk, scripted_model: ScriptedModel) -> None:
    approval = await waiting(talk, scripted_model)
    await Conversation.objects.filter(pk=talk.conversation.pk).aupdate(deleted_at=timezone.now())
    with pytest.raises(CannotAsk, match="was deleted"):
        await ask(approval, talk.owner)


async def test_of_a_long_conversation_the_end_is_read(talk: Talk, scripted_model: ScriptedModel) -> None:
    for _ in range(5):
        scripted_model.enqueue(text("b" * 2 * why.OF_A_MESSAGE))
        await talk.ask("a" * 2 * why.OF_A_MESSAGE)
    approval = await waiting(talk, scripted_model)
    scripted_model.enqueue(text(BECAUSE))
    await ask(approval, talk.owner)
    await answered_by_now(approval)
    content = scripted_model.requests[-1]["messages"][1]["content"]
    assert len(content) < why.CHARACTERS + 1000
    assert json.loads(content)["conversation"][-1]["text"] == "I send it."
    assert "[The rest is left out.]" in content


def test_the_demo_model_says_which_words_asked_for_the_call() -> None:
    conversation = [{"role": "user", "text": "Send hi to Ann"}, {"role": "assistant", "text": ""}]
    call = {"tool": "send", "arguments": {"text": "hi", "loud": True, "after": ""}}
    content = json.dumps({"conversation": conversation, "call": call, "question": why.DEFAULT})
    body = own_body(Endpoint("", "", "demo"), why.INSTRUCTIONS, content, 9)
    words, called = reply_to(json.loads(body))
    assert called == []
    assert "“Send hi to Ann”" in words
    assert "From your words: text." in words
    assert "defaults: loud, after." in words
