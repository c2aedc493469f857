"""Calls that wait for a person, inside a conversation."""

import asyncio
import json
from datetime import timedelta

import pytest
from django.utils import timezone

from hitlchat.agent.models import RunStatus
from hitlchat.agent.runs import RunActive
from hitlchat.gate import decide, results
from hitlchat.gate.models import AuditEvent, Tool, ToolCall
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("what a killed process leaves is what was committed")


@pytest.fixture(autouse=True)
def gated(recorder: Recorder) -> None:
    for name in ("send", "pay", "delete"):
        recorded_tool(name)
    recorded_tool("look", "DISABLED")


@pytest.mark.guarantee("run:survives")
@on_servers
async def test_a_run_that_waits_is_nothing_but_rows(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(calls(("send", {"text": "hi"})))
    await talk.say()
    await talk.asked()
    await soon(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "nothing is left in memory")
    run = await talk.run()
    assert (run.status, run.parked, run.owner, run.lease_until) == (RunStatus.WAITING, True, "", None)


@pytest.mark.guarantee("gate:no-yes-no-run")
@on_servers
async def test_a_gated_call_runs_after_the_yes_and_the_model_gets_its_result(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Sent."))
    await talk.say()
    (approval,) = await talk.asked()
    assert recorder.entered == []
    await talk.approve(approval)
    assert (await talk.over()).status == RunStatus.DONE
    assert recorder.entered == [("send", {"text": "hi"})]
    assert scripted_model.told == ["send did {'text': 'hi'}"]
    assert await talk.answers() == ["", "Sent."]


@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.guarantee("gate:truth")
async def test_a_declined_call_is_never_entered_and_the_model_is_told_why(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Not sent."))
    await talk.say()
    await talk.decline(await talk.only(), reason="It is too early.")
    await talk.over()
    assert recorder.entered == []
    (told,) = scripted_model.told
    assert '"status": "declined"' in told
    assert "It was not executed" in told
    assert "It is too early." in told


@on_servers
async def test_calls_of_one_turn_are_answered_in_any_order_and_read_in_the_models(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {"n": 1}), ("pay", {"n": 2}), ("delete", {"n": 3})), text("Mixed."))
    await talk.say()
    send, pay, delete = await talk.asked(3)
    await talk.approve(delete)
    await talk.decline(pay)
    await talk.approve(send)
    await talk.over()
    first, second, third = (told[:20] for told in scripted_model.told)
    assert (first, second, third) == ("send did {'n': 1}", '{"status": "declined', "delete did {'n': 3}")
    assert sorted(recorder.entered) == [("delete", {"n": 3}), ("send", {"n": 1})]


async def test_an_approved_call_starts_while_others_still_wait(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {}), ("pay", {})), text("Done."))
    await talk.say()
    send, pay = await talk.asked(2)
    await talk.approve(pay)
    await talk.settled(Status.SUCCEEDED)
    assert recorder.entered == [("pay", {})]
    assert await talk.outcomes() == [Status.WAITING, Status.SUCCEEDED]
    await talk.approve(send)
    assert (await talk.over()).status == RunStatus.DONE


async def test_calls_that_nobody_needs_to_allow_run_beside_each_other_and_beside_a_waiting_one(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("count", "DISABLED")
    recorder.hold("look")
    scripted_model.enqueue(calls(("look", {}), ("send", {}), ("count", {})), text("Done."))
    await talk.say()
    await recorder.entry("look")
    await recorder.entry("count")
    await talk.decline(await talk.only())
    recorder.let_go("look")
    assert (await talk.over()).status == RunStatus.DONE
    assert [told[:10] for told in scripted_model.told] == ["look did {", '{"status":', "count did "]


async def test_a_run_counts_as_waiting_only_while_a_person_is_asked(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    recorder.hold("send")
    scripted_model.enqueue(calls(("send", {})), text("Done."))
    await talk.say()
    await talk.approve(*await talk.asked())
    await recorder.entry("send")
    assert (await talk.run()).status == RunStatus.RUNNING
    recorder.let_go("send")
    assert (await talk.over()).status == RunStatus.DONE


@pytest.mark.guarantee("gate:truth")
async def test_calls_that_cannot_be_are_explained_to_the_model_and_nobody_is_asked(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    rows = [
        ("sned", "{}", "There is no tool named 'sned' here."),
        ("functions.send it!", "{}", "There is no tool named 'functions.send it!' here."),
        ("", "{}", "There is no tool named '' here."),
        ("send", '{"text": "hi"', "not valid JSON: Expecting ',' delimiter at line 1, column 14"),
        ("send", '{"text": "a", "text": "b"}', "the key 'text' occurs twice"),
        ("send", '{"n": NaN}', "NaN is not JSON"),
        ("send", "[1]", "must be a JSON object, not a list"),
        ("send", '{"n": "many"}', r"n: \"many\" is not a whole number."),
        ("send", '{"color": "red"}', r"\"color\" was unexpected"),
    ]
    scripted_model.enqueue(calls(*[(name, arguments) for name, arguments, _ in rows]), text("I see."))
    assert (await talk.ask()).status == RunStatus.DONE
    for (_, _, expected), told in zip(rows, scripted_model.told, strict=True):
        assert expected in told
        assert "nobody was asked" in told
    assert recorder.entered == []


async def test_a_tool_outside_the_conversations_own_list_does_not_exist_there(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    talk.conversation.tools = ["send"]
    await talk.conversation.asave(update_fields=["tools"])
    scripted_model.enqueue(calls(("look", {})), text("I cannot."))
    await talk.ask()
    assert [tool["function"]["name"] for tool in scripted_model.requests[0]["tools"]] == ["send"]
    assert "There is no tool named 'look' here." in scripted_model.told[0]
    assert recorder.entered == []


@pytest.mark.guarantee("gate:truth")
@pytest.mark.guarantee("gate:no-yes-no-run")
@on_servers
async def test_a_call_that_nobody_answers_expires_and_the_model_goes_on(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {})), text("Nobody was there."))
    await talk.say()
    (approval,) = await talk.asked()
    await let_time_pass(approval.call)
    assert await in_database(decide.expire_overdue)() == 1
    assert (await talk.over()).status == RunStatus.DONE
    assert "Nobody answered the approval in time" in scripted_model.told[0]
    assert recorder.entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_yes_after_the_deadline_counts_as_expired_though_no_sweeper_ran(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {})), text("Too late."))
    await talk.say()
    (approval,) = await talk.asked()
    await let_time_pass(approval.call)
    with pytest.raises(decide.AlreadySettled, match="expired"):
        await talk.approve(approval)
    await talk.over()
    assert recorder.entered == []


async def test_edited_arguments_are_what_runs_and_what_the_model_is_told(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("pay", {"n": 1000})), text("Paid less."))
    await talk.say()
    await talk.approve(*await talk.asked(), edited={"n": 10})
    await talk.over()
    assert recorder.entered == [("pay", {"n": 10})]
    assert "The user changed the arguments before approving." in scripted_model.told[0]


async def test_a_tool_that_fails_or_breaks_is_told_as_failed(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.results["look"] = RuntimeError("a bug with a secret in its text")
    scripted_model.enqueue(calls(("look", {})), text("It failed."))
    await talk.ask()
    assert '"status": "failed"' in scripted_model.told[0]
    assert "secret" not in scripted_model.told[0]
    assert "failed outside the tool itself" in caplog.text


@pytest.mark.guarantee("audit:complete")
@on_servers
async def test_the_record_has_every_step_with_who_took_it(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(calls(("send", {})), text("Sent."))
    await talk.say()
    await talk.approve(*await talk.asked())
    await talk.over()
    events = [event async for event in AuditEvent.objects.values_list("name", "actor_id", "means")]
    assert events == [
        ("call.waiting", talk.owner.pk, "system"),
        ("call.approved", talk.owner.pk, "session"),
        ("call.executing", None, "system"),
        ("call.succeeded", None, "system"),
    ]


async def test_the_user_prompt_is_on_the_disclosure(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(calls(("send", {})))
    await talk.say("Tell Ann about it.")
    (approval,) = await talk.asked()
    assert approval.disclosure["userPrompt"] == "Tell Ann about it."
    assert approval.disclosure["conversation"] == str(talk.conversation.pk)


async def test_a_second_message_has_to_wait_while_a_call_waits(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(calls(("send", {})))
    await talk.say()
    await talk.asked()
    with pytest.raises(RunActive, match="A call waits for an answer"):
        await talk.say("And another thing")


async def let_time_pass(call: ToolCall) -> None:
    """The deadline of a waiting call is over."""
    await ToolCall.objects.filter(pk=call.pk).aupdate(deadline=timezone.now() - timedelta(seconds=1))


async def test_what_is_said_with_a_yes_reaches_the_model(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("Only once, then."))
    await talk.say()
    await talk.approve(await talk.only(), reason="only this once")
    await talk.over()
    told = json.loads(scripted_model.told[0])
    assert (told["status"], told["said_by_the_user"]) == ("succeeded", "only this once")
    assert told["result"] == "send did {'text': 'hi'}"


@pytest.mark.guarantee("gate:truth")
async def test_an_operators_words_are_what_the_model_reads_and_the_facts_beside_them(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    tool = await Tool.objects.aget(name="send")
    words = {"declined": "Not {toolName}, please.", "feedback": "They said: {feedback}"}
    await in_database(results.save)(tool, words, signed_in(talk.owner), confirmed=True)
    scripted_model.enqueue(calls(("send", {"text": "hi"})), text("As you wish."))
    await talk.say()
    await talk.decline(await talk.only(), reason="too early")
    await talk.over()
    told = json.loads(scripted_model.told[0])
    assert told["message"] == "Not send, please. They said: too early"
    assert (told["status"], told["executed"], told["reason_given_by_the_user"]) == ("declined", False, "too early")
    assert "Do not call it again for this request" in told["fact"]
