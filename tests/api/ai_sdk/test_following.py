"""Streams while they last: each goes on, ends, and is nobody's but its person's."""

from typing import Any

import pytest
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from hitlchat import handler
from hitlchat.accounts.models import Token, TokenKind
from hitlchat.agent import conversations, writing
from hitlchat.agent.models import Message, MessageState, Role, RunStatus
from hitlchat.gate.actor import Actor
from tests.agent.talk import Talk, in_database
from tests.api.ai_sdk.conftest import ListeningAs
from tests.api.ai_sdk.listening import SEND, Listening, Request, asked, kinds
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, cut_off_after, status, text
from tests.waiting import soon

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers("Redis announces it after the commit")]

DELTAS = 150


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def heard(bobs: Listening, gate: Gate, scripted_model: ScriptedModel) -> Request:
    """A stream that has told the first words of an answer, which then halts."""
    scripted_model.enqueue(text("One", gate, " two."))
    request = await bobs.say("Count")
    await request.until("text-delta")
    return request


def said(request: Request) -> str:
    return "".join(chunk["delta"] for chunk in request.chunks if chunk["type"] == "text-delta")


async def test_a_stream_says_that_it_goes_on_while_there_is_nothing_to_tell(
    settings: Settings, heard: Request, gate: Gate
) -> None:
    settings.STREAM_KEEP_ALIVE_SECONDS = 0.05
    # The wait that has begun is a long one.
    await writing.tell(await _conversation(), "run")
    await heard.until_comment(4)
    assert heard.comments[1:] == [": keep-alive"] * 3
    gate.open()
    await heard.rest()
    assert said(heard) == "One two."


async def test_streams_keep_no_thread_and_leave_nothing_behind(
    bobs: Listening, heard: Request, gate: Gate, talk: Talk
) -> None:
    others = [await bobs.resume() for _ in range(3)]
    for each in others:
        await each.until("text-delta")
    await soon(lambda: not handler.threads.busy, "all threads are back")
    for each in (heard, *others):
        await each.leave()
    layer = get_channel_layer()
    if isinstance(layer, InMemoryChannelLayer):
        assert not layer.groups.get(writing.group(talk.conversation.pk))
    # It is the stream that ended, and not the run.
    gate.open()
    assert (await talk.over()).status == RunStatus.DONE
    assert await talk.answers() == ["One two."]


def _wrap(note: Any) -> None:
    """Have the thread in which streams ask the database note what they ask."""
    connection.execute_wrappers.append(note)


def _unwrap(note: Any) -> None:
    connection.execute_wrappers.remove(note)


async def test_text_costs_what_it_is_long_and_asks_the_database_nothing(heard: Request, gate: Gate, talk: Talk) -> None:
    message = heard.chunks[-1]["id"]
    # What a stream asks, which nobody else does; others work beside it.
    asked_for: list[str] = []

    def note(execute: Any, sql: str, *more: Any) -> Any:
        if '"agent_message"."seq" >=' in sql:
            asked_for.append(sql)
        return execute(sql, *more)

    await in_database(_wrap)(note)
    before = len(heard.chunks)
    for number in range(1, DELTAS + 1):
        # Each has all text since what is stored.
        await writing.tell(talk.conversation.pk, "delta", message=message, base=0, text="One" + "!" * number)
        await heard.until("text-delta")
    await in_database(_unwrap)(note)
    assert [chunk["delta"] for chunk in heard.chunks[before:]] == ["!"] * DELTAS
    # Once in a long while it looks whether it has missed something.
    assert len(asked_for) < DELTAS / 3
    await in_database(_wrap)(note)
    await writing.tell(talk.conversation.pk, "run")
    await soon(lambda: asked_for, "another event is one to look for")
    await in_database(_unwrap)(note)
    gate.open()
    await heard.rest()


async def test_text_whose_event_was_lost_is_made_up_for(heard: Request, gate: Gate, talk: Talk) -> None:
    rows = Message.objects.filter(role=Role.ASSISTANT, state=MessageState.STREAMING)
    await rows.aupdate(content="One, and more")
    message = heard.chunks[-1]["id"]
    await writing.tell(talk.conversation.pk, "delta", message=message, base=len("One, and more"), text=" than that")
    await heard.until("text-delta", lambda chunk: "than" in chunk["delta"])
    assert said(heard) == "One, and more than that"
    gate.open()
    await heard.rest()


async def test_who_comes_while_it_is_written_is_told_all_of_it(
    bobs: Listening, heard: Request, gate: Gate, talk: Talk
) -> None:
    late = await bobs.resume()
    assert late.status == 200
    await late.until("text-delta")
    gate.open()
    for each in (heard, late):
        await each.rest()
        assert said(each) == "One two."
    assert (await bobs.resume()).status == 204
    assert [part["text"] for part in (await bobs.stored())[-1]["parts"] if part["type"] == "text"] == ["One two."]


async def test_a_turn_that_is_asked_for_again_takes_its_words_back(heard: Request, gate: Gate, talk: Talk) -> None:
    run = await talk.run()
    await Message.objects.filter(run=run, state=MessageState.STREAMING).adelete()
    await writing.tell(talk.conversation.pk, "run")
    await heard.until("reset-step")
    gate.open()


async def test_a_run_that_is_stopped_ends_its_stream_so_that_no_client_goes_on(heard: Request, talk: Talk) -> None:
    await talk.stop()
    chunks = await heard.rest()
    assert chunks[-2:] == [
        {"type": "abort", "reason": "The run was stopped."},
        {"type": "finish", "finishReason": "interrupted"},
    ]


async def test_a_run_that_fails_ends_its_stream_with_the_reason(bobs: Listening, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(status(401, {"message": "no such key"}))
    chunks = await (await bobs.say("Hello")).rest()
    assert kinds(chunks)[-1] == "error"
    assert "no such key" in chunks[-1]["errorText"]
    (notice,) = [chunk for chunk in chunks if chunk["type"] == "data-notice"]
    assert "no such key" in notice["data"]["text"]
    assert (await bobs.stored())[-1]["parts"][0]["type"] == "data-notice"


async def test_an_answer_that_breaks_off_keeps_its_words(bobs: Listening, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(cut_off_after("Half of it"))
    chunks = await (await bobs.say("Hello")).rest()
    assert kinds(chunks)[-1] == "error"
    assert ("text-end" in kinds(chunks), said(bobs.requests[0])) == (True, "Half of it")


@pytest.mark.slow("waits until the session is looked at again")
async def test_a_stream_ends_when_its_person_signs_out(
    bobs: Listening, heard: Request, talk: Talk, settings: Settings
) -> None:
    settings.STREAM_KEEP_ALIVE_SECONDS = 0.05
    client = Client()
    client.cookies["sessionid"] = bobs.headers["cookie"].partition("sessionid=")[2].partition(";")[0]
    await in_database(client.post)("/sign-out")
    await writing.tell(talk.conversation.pk, "run")
    chunks = await heard.rest()
    assert (chunks[-1]["type"], "signed out" in chunks[-1]["errorText"]) == ("error", True)


@pytest.mark.slow("waits until the token is looked at again")
async def test_a_stream_ends_with_its_token(
    listening_as: ListeningAs, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.STREAM_KEEP_ALIVE_SECONDS = 0.05
    programs: list[Listening] = [await listening_as(TokenKind.API) for _ in range(2)]
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(SEND))
    heard = [await programs[0].say("Send it"), await programs[1].resume()]
    for each in heard:
        await each.until("tool-approval-request")
    revoked, expired = await in_database(list)(Token.objects.all())
    await revoked.adelete()
    await Token.objects.filter(pk=expired.pk).aupdate(expires_at=timezone.now())
    for each in heard:
        chunks = await each.rest()
        assert (chunks[-1]["type"], "no longer valid" in chunks[-1]["errorText"]) == ("error", True)


async def test_a_stream_ends_with_its_conversation(heard: Request, talk: Talk, bob: User) -> None:
    await in_database(conversations.delete)(talk.conversation, Actor(bob.pk, "session"))
    chunks = await heard.rest()
    assert chunks[-1] == {"type": "error", "errorText": "This conversation was deleted."}


async def test_one_person_has_so_many_streams_open_and_then_says_nothing_more(
    bobs: Listening, heard: Request, gate: Gate, settings: Settings
) -> None:
    settings.STREAMS_PER_PERSON = 2
    second = await bobs.resume()
    await second.until("text-delta")
    refused = await bobs.resume()
    assert (refused.status, "2 open streams" in (await refused.json())["detail"]) == (429, True)
    assert (await bobs.say("And now?", "m2")).status == 429
    await second.leave()
    assert (await bobs.resume()).status == 200
    gate.open()
    await heard.rest()
    assert [message["role"] for message in await bobs.stored()] == ["user", "assistant"]


async def test_the_same_message_sent_twice_is_said_once(bobs: Listening, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("Hello."))
    first = await bobs.say("Hi", "m1")
    await first.rest()
    second = await bobs.say("Hi", "m1")
    await second.rest()
    assert first.chunks[0] == second.chunks[0]
    assert said(first) == said(second) == "Hello."
    assert [message["role"] for message in await bobs.stored()] == ["user", "assistant"]


async def test_nothing_is_said_while_the_assistant_works_or_waits(bobs: Listening, heard: Request, gate: Gate) -> None:
    busy = await bobs.say("And now?", "m2")
    assert (busy.status, "still working" in (await busy.json())["detail"]) == (409, True)
    gate.open()
    await heard.rest()


async def test_what_was_said_is_said_otherwise_and_answered_again(
    bobs: Listening, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("Two."), text("Three."))
    await (await bobs.say("First", "m1")).rest()
    # By the id that the client gave it, then by that which it has here.
    otherwise = await bobs.say("Second", "m1", messageId="m1")
    assert said(otherwise) == ""
    assert otherwise.status == 200
    await otherwise.rest()
    person, assistant = await bobs.stored()
    assert (person["parts"][0]["text"], assistant["parts"][1]["text"]) == ("Second", "Two.")
    again = await bobs.post(
        {"id": bobs.id, "messages": [person], "trigger": "regenerate-message", "messageId": assistant["id"]}
    )
    await again.rest()
    assert said(again) == "Three."
    person, assistant = await bobs.stored()
    assert (person["parts"][0]["text"], assistant["parts"][1]["text"]) == ("Second", "Three.")


async def test_an_assistants_message_without_anything_new_is_refused_and_starts_nothing(
    bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model)
    refused = await bobs.post({"id": bobs.id, "messages": [message], "messageId": message["id"]})
    problem = await refused.json()
    assert (refused.status, problem["code"]) == (409, "already_completed")
    assert recorder.entered == []


async def test_a_file_comes_along_as_data_or_by_its_address(bobs: Listening, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("Read."))
    file = {
        "type": "file",
        "mediaType": "text/plain",
        "filename": "notes.txt",
        "url": "data:text/plain;base64,SGVsbG8=",
    }
    message = {"id": "m1", "role": "user", "parts": [file, {"type": "text", "text": "Read it"}]}
    request = await bobs.post({"id": bobs.id, "messages": [message]})
    await request.rest()
    assert "Hello" in str(scripted_model.messages[-1])
    (first, second) = (await bobs.stored())[0]["parts"]
    assert (first["filename"], second["text"]) == ("notes.txt", "Read it")
    assert first["url"].startswith("/api/attachments/")


async def test_a_body_that_does_not_fit_names_the_field(bobs: Listening) -> None:
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    rows: list[tuple[dict[str, Any], str]] = [
        ({"id": "x"}, "id"),
        ({"messages": []}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": [{"id": "m", "role": "system", "parts": []}]}, "messages.0.role"),
        ({"messages": [{"id": "m", "role": "user"}]}, "messages.0.parts"),
        ({"messages": [{"id": "m", "role": "user", "parts": []}]}, "text"),
        ({"messages": [{"id": "", "role": "user", "parts": [{"type": "text", "text": "x"}]}]}, "messages.0.id"),
        ({"messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "x" * 100_001}]}]}, "text"),
        ({"messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "\0"}]}]}, "text"),
        ({"messages": [{"id": "m", "role": "user", "parts": [{"type": "file", "url": "http://x/y"}]}]}, "files.0"),
        ({"messages": [{"id": "m", "role": "user", "parts": [{"type": "file", "url": "data:,x"}]}]}, "files.0"),
        ({"trigger": "resume-stream"}, "trigger"),
        ({"messageId": 7}, "messageId"),
    ]
    for changed, field in rows:
        refused = await bobs.post({"id": bobs.id, "messages": [message]} | changed)
        problem = await refused.json()
        assert (refused.status, [*problem["errors"]]) == (422, [field])
        assert await bobs.stored() == []


async def test_a_conversation_of_somebody_else_is_not_there(
    listening_as: ListeningAs, charlie: User, bobs: Listening, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    message = await asked(bobs, scripted_model)
    other: Listening = await listening_as(user=charlie)
    name = message["parts"][1]["approval"]["id"]
    answers = [
        await other.say("Hi"),
        await other.resume(),
        await other.answer(message, approved=True),
        await other.submit(kind="approval-response", approvalId=name, approved=True),
    ]
    assert [each.status for each in answers] == [404] * 4
    assert recorder.entered == []


async def _conversation() -> Any:
    return (await Message.objects.afirst()).conversation_id  # type: ignore[union-attr]
