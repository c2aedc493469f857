"""The model server fails in every way it can: the person reads what to do, and the next message works."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from hitlchat.agent import runner, runs
from hitlchat.agent.export import as_markdown
from hitlchat.agent.model_client import ModelTrouble
from hitlchat.agent.models import Message, MessageState, Role, Run, RunStatus
from tests.agent.conftest import Read
from tests.agent.talk import Talk, in_database
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import (
    Gate,
    Reply,
    ScriptedModel,
    calls,
    chunk,
    cut_off_after,
    error_after,
    hang,
    raw,
    sse,
    status,
    text,
    unfinished,
)
from tests.tables import each_row

pytestmark = pytest.mark.django_db(transaction=True)

TOO_LONG = {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"}
NO_STREAM = "did not send a Chat Completions stream"


def shaped(choice: Any) -> Reply:
    return raw(sse({"id": "1", "object": "chat.completion.chunk", "choices": choice}))


ERRORS: dict[str, tuple[Reply, str]] = {
    "wrong key": (status(401, {"message": "Incorrect API key"}), "did not accept the key (401). Check OPENAI_API_KEY."),
    "unknown model": (status(404, {"message": "no such model"}), "does not know “scripted” or this address"),
    "quota": (status(429, {"message": "slow down"}), "a limit or quota is used up (429). Wait"),
    "failure": (status(500, {"message": "oops"}), "The model server failed (500). Try again in a moment."),
    "refused": (status(400, {"message": "bad tool"}), "refused the request (400). It says: “bad tool”."),
    "too long": (status(400, TOO_LONG), "longer than the model can read. Start a new conversation."),
    "too large": (status(413, {"message": "no"}), "longer than the model can read. Start a new conversation."),
    "error in the stream": (error_after("Half", message="overloaded"), "broke off its answer: It says: “overloaded”."),
    "connection lost": (cut_off_after("Half"), "cannot be reached"),
    "ended early": (unfinished("Half"), "ended its answer before it was complete"),
    "no events": (raw(b"<html>Welcome to nginx</html>"), "ended its answer before it was complete"),
    "no JSON": (raw(b"data: {oops\n\n"), NO_STREAM),
    "no text": (raw(b"data: \xff\xfe\n\n"), NO_STREAM),
    "no object": (raw(b"data: [1]\n\n"), NO_STREAM),
    "choice of another shape": (shaped(["x"]), NO_STREAM),
    "content of another type": (raw(chunk({"content": [1, 2]})), NO_STREAM),
    "call of another shape": (raw(chunk({"tool_calls": ["x"]})), NO_STREAM),
    "arguments as a list": (
        raw(chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": [1]}}]})),
        NO_STREAM,
    ),
}


@each_row("reply, expected", ERRORS.values(), ids=ERRORS)
async def test_an_error_of_the_model_server_says_what_to_do(read: Read, reply: Reply, expected: str) -> None:
    with pytest.raises(ModelTrouble) as trouble:
        await read(reply)
    assert expected in str(trouble.value)


async def test_an_error_is_a_notice_and_the_next_message_is_answered(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(ERRORS["refused"][0], text("Here again."))
    run = await talk.ask("First")
    assert (run.status, await talk.notices()) == (RunStatus.FAILED, [run.error])
    assert ERRORS["refused"][1] in run.error
    assert (await talk.ask("Second")).status == RunStatus.DONE
    assert (await talk.answers())[-1] == "Here again."


async def test_a_model_server_that_is_not_there_is_named(talk: Talk, settings: Settings, loop: None) -> None:
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    run = await talk.ask()
    assert "The model server at http://127.0.0.1:9/v1 cannot be reached. Check that it runs" in run.error


async def test_a_model_server_that_takes_too_long_is_named(
    talk: Talk, settings: Settings, scripted_model: ScriptedModel
) -> None:
    settings.MODEL_TIMEOUT_SECONDS = 0.1
    scripted_model.enqueue(hang())
    assert "took too long" in (await talk.ask()).error


async def test_a_model_server_that_is_busy_for_a_moment_is_asked_again(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(status(429, retry=True, retry_after_ms="1"), status(503, retry=True, retry_after_ms="1"))
    scripted_model.enqueue(text("Now."))
    assert (await talk.ask()).status == RunStatus.DONE


async def test_what_was_written_before_a_failure_stays_marked_as_cut(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(cut_off_after("Half of"), text("The rest."))
    await talk.ask("First")
    (message,) = await talk.messages(Role.ASSISTANT)
    assert (message.content, message.state) == ("Half of", MessageState.CUT)
    await talk.ask("Go on")
    assert [said["content"] for said in scripted_model.messages] == ["First", "Half of", "Go on"]


async def test_a_process_that_dies_right_after_an_answer_was_cut_off_leaves_a_history_that_can_be_asked_again(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(cut_off_after("Half of"), text("All of it."), text("More."))
    run = await talk.ask("First")
    # As it stands between the two steps: the answer is kept, and the run goes on for whoever takes it over.
    await Message.objects.filter(run=run, role=Role.NOTICE).adelete()
    lapsed = timezone.now() - timedelta(seconds=1)
    await Run.objects.filter(pk=run.pk).aupdate(status=RunStatus.RUNNING, error="", lease_until=lapsed)
    (claim,) = await in_database(runs.claim_lapsed)()
    runner.start(claim, begins=False)
    assert (await talk.over()).status == RunStatus.DONE
    assert await talk.answers() == ["Half of", "All of it."]
    await talk.ask("Go on")
    assert [said["content"] for said in scripted_model.messages] == ["First", "All of it.", "Go on"]


async def test_a_call_that_was_not_written_to_its_end_is_not_made(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await recorded_tool_in_database("look")
    whole = calls(("look", {"text": "up"}))
    scripted_model.enqueue(Reply(whole.parts[:-3]))
    assert (await talk.ask()).status == RunStatus.FAILED
    assert (recorder.entered, await talk.calls()) == ([], [])


async def test_a_failure_in_a_later_turn_keeps_what_the_calls_did(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await recorded_tool_in_database("look")
    scripted_model.enqueue(calls(("look", {})), status(500), text("Again here."))
    assert (await talk.ask("First")).status == RunStatus.FAILED
    assert recorder.entered == [("look", {})]
    await talk.ask("Go on")
    assert scripted_model.told == ["look did {}"]


async def test_nothing_in_a_failure_leaks_the_key(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(status(401, {"message": "x" * 5000}))
    run = await talk.ask()
    assert "a key for" not in run.error
    assert len(run.error) < 500
    assert await Run.objects.filter(error__contains="x" * 301).acount() == 0


@pytest.mark.guarantee("run:survives")
async def test_a_channel_layer_that_is_down_costs_no_run(
    talk: Talk, settings: Settings, recorder: Recorder, scripted_model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = {"hosts": [{"address": "redis://127.0.0.1:9", "socket_timeout": None}]}
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": nowhere}
    }
    await recorded_tool_in_database("look")
    scripted_model.enqueue(calls(("look", {})), text("Seen."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert recorder.entered == [("look", {})]
    assert "The channel layer could not be reached" in caplog.text


async def recorded_tool_in_database(name: str) -> None:
    await in_database(recorded_tool)(name, "DISABLED")


# -- Trying again ----------------------------------------------------------------------------------------------------


async def test_a_run_that_failed_is_tried_again_without_saying_anything_anew(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(ERRORS["connection lost"][0])
    assert (await talk.ask("Where is my parcel?")).status == RunStatus.FAILED
    scripted_model.enqueue(text("In Rotterdam."))
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.DONE
    assert (await talk.answers())[-1] == "In Rotterdam."
    # What was cut off is not taken for an answer, and nobody has said anything twice.
    assert [each["role"] for each in scripted_model.requests[-1]["messages"]] == ["system", "user"]
    assert [each.content for each in await talk.messages(Role.USER)] == ["Where is my parcel?"]


async def test_the_error_of_a_run_goes_once_it_was_tried_again_and_another_one_tells_its_own(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    def errors() -> list[str]:
        rows = Message.objects.shown().filter(conversation=talk.conversation, role=Role.NOTICE)
        return list(rows.values_list("run__children__status", flat=True))

    scripted_model.enqueue(status(500, {"message": "oops"}))
    await talk.ask("Where is my parcel?")
    scripted_model.enqueue(status(500, {"message": "oops"}))
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.FAILED
    assert await in_database(errors)() == [None]
    scripted_model.enqueue(text("In Rotterdam."))
    await in_database(runner.retry)(talk.conversation)
    await talk.over()
    assert await in_database(errors)() == []
    assert "failed (500)" not in await in_database(lambda: "".join(as_markdown(talk.conversation)))()


async def test_an_error_stays_where_something_else_was_said_after_it(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(status(500, {"message": "oops"}))
    await talk.ask("Where is my parcel?")
    scripted_model.enqueue(text("Hello."))
    await talk.ask("Never mind. Hello.")
    assert "failed (500)" in await in_database(lambda: "".join(as_markdown(talk.conversation)))()


async def test_what_a_call_gave_before_the_failure_is_not_asked_for_again(
    talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    await in_database(recorded_tool)("record", hitl_mode="DISABLED")
    scripted_model.enqueue(calls(("record", {"text": "once"})), status(500, {"message": "oops"}))
    assert (await talk.ask()).status == RunStatus.FAILED
    scripted_model.enqueue(text("Done."))
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.DONE
    assert len(await talk.calls()) == 1
    assert [each["role"] for each in scripted_model.requests[-1]["messages"]][-2:] == ["assistant", "tool"]


async def test_a_call_of_a_run_that_was_tried_again_shows_what_the_person_said(
    talk: Talk, scripted_model: ScriptedModel, recorder: Recorder
) -> None:
    await in_database(recorded_tool)("record", hitl_mode="REQUIRED")
    scripted_model.enqueue(status(500, {"message": "oops"}))
    await talk.ask("Record it, please.")
    scripted_model.enqueue(calls(("record", {"text": "once"})))
    await in_database(runner.retry)(talk.conversation)
    approval = await talk.only()
    assert approval.disclosure["userPrompt"] == "Record it, please."
    scripted_model.enqueue(text("Done."))
    await talk.approve(approval)
    assert (await talk.over()).status == RunStatus.DONE


async def test_what_is_complete_or_goes_on_is_not_tried_again(talk: Talk, scripted_model: ScriptedModel) -> None:
    with pytest.raises(runs.NothingToRetry):
        await in_database(runner.retry)(talk.conversation)
    scripted_model.enqueue(text("Hello."))
    await talk.ask()
    with pytest.raises(runs.NothingToRetry):
        await in_database(runner.retry)(talk.conversation)
    gate = Gate()
    scripted_model.enqueue(text("Once", gate))
    await talk.say()
    await gate.arrival()
    with pytest.raises(runs.RunActive):
        await in_database(runner.retry)(talk.conversation)
    gate.open()
    await talk.over()
