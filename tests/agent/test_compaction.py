"""A conversation that does not fit into the model's context: a summary stands for its older part, and can be undone."""

import json
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from hitlchat.agent import branches, compaction, conversations, endpoints, runner, usage
from hitlchat.agent.compaction import NoSuchSummary
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.models import Message, Role, RunStatus
from hitlchat.agent.runs import RunActive
from hitlchat.gate.models import AuditEvent
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, Json, Reply, ScriptedModel, calls, sse, status, text

pytestmark = pytest.mark.django_db(transaction=True)

TOO_LONG: Final = status(400, {"message": "maximum context length is 8192 tokens", "code": "context_length_exceeded"})
SUMMARY: Final = "The user likes tea, and order 4711 was refunded."
LONG: Final = "long " * 2000


def is_for_summary(body: Json) -> bool:
    return bool(body["messages"][0]["content"] == compaction.INSTRUCTIONS)


def read(body: Json) -> str:
    return json.dumps(body["messages"][1:], ensure_ascii=False)


async def summaries(talk: Talk) -> list[Message]:
    return await talk.messages(Role.SUMMARY)


async def with_context(talk: Talk, model: ScriptedModel, alice: User, tokens: int) -> None:
    draft = Draft("here", model.base_url, "scripted", context_length=tokens)
    await in_database(endpoints.create)(draft, signed_in(alice))
    await in_database(conversations.change)(talk.conversation, endpoint="here")


async def filled(talk: Talk, model: ScriptedModel) -> None:
    """Two long exchanges."""
    model.enqueue(text(f"First. {LONG}"), text(f"Second. {LONG}"))
    await talk.ask("I like tea.")
    await talk.ask("And order 4711?")


async def summed_up(talk: Talk, model: ScriptedModel) -> Message:
    """The summary, after one that was made since the server refused what was too long."""
    await filled(talk, model)
    model.enqueue(TOO_LONG, text(SUMMARY), text("Tea it is."))
    assert (await talk.ask("What do I like?")).status == RunStatus.DONE
    (found,) = await summaries(talk)
    return found


async def test_what_the_server_refuses_as_too_long_is_sent_again_with_a_summary_of_its_older_part(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    found = await summed_up(talk, scripted_model)
    refused, asked, sent = scripted_model.requests[2:]
    assert is_for_summary(asked)
    assert "tools" not in asked
    assert [part in read(asked) for part in ("I like tea.", "First. long", "Second. long", "What do I like?")] == [
        True,
        True,
        True,
        False,
    ]
    (only,) = sent["messages"][1:]
    assert "[Note from hitlchat] There is no room for the earlier messages" in read(sent)
    assert SUMMARY in read(sent)
    assert "What do I like?" in str(only["content"])
    assert "long long" not in read(sent)
    assert sent["messages"][0] == refused["messages"][0]
    earlier = [each.pk for each in await in_database(list)(talk.conversation.messages.filter(seq__lte=4))]
    assert (found.content, found.stands_for) == (SUMMARY, [str(pk) for pk in earlier])
    # They are all still there.
    assert len(await talk.messages(Role.ASSISTANT)) == 3


async def test_before_the_context_is_full_nothing_is_refused_first(
    talk: Talk, scripted_model: ScriptedModel, alice: User
) -> None:
    await with_context(talk, scripted_model, alice, 6500)
    await filled(talk, scripted_model)
    scripted_model.enqueue(text(SUMMARY), text("Tea it is."), text("Yes."))
    assert (await talk.ask("What do I like?")).status == RunStatus.DONE
    assert [is_for_summary(each) for each in scripted_model.requests] == [False, False, True, False]
    await talk.ask("Sure?")
    assert len(await summaries(talk)) == 1
    assert [each["content"] for each in scripted_model.messages[1:]] == ["Tea it is.", "Sure?"]


async def test_a_conversation_that_fits_is_sent_whole(talk: Talk, scripted_model: ScriptedModel, alice: User) -> None:
    await with_context(talk, scripted_model, alice, 100_000)
    await filled(talk, scripted_model)
    assert [is_for_summary(each) for each in scripted_model.requests] == [False, False]


async def test_what_the_summary_takes_is_counted_and_limited(talk: Talk, scripted_model: ScriptedModel) -> None:
    await filled(talk, scripted_model)
    told = sse({"id": "x", "choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100}})
    parts = text(SUMMARY).parts
    scripted_model.enqueue(TOO_LONG, Reply((*parts[:-1], told, *parts[-1:])), text("Tea."))
    await talk.ask("What do I like?")
    assert (await in_database(usage.of_conversation)(talk.conversation.pk)).tokens == 1000
    assert 0 < scripted_model.requests[3]["max_tokens"] <= compaction.MOST_TOKENS


async def test_undone_the_messages_are_sent_whole_again_and_nothing_is_summed_up_by_itself(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    found = await summed_up(talk, scripted_model)
    await in_database(compaction.undo)(talk.conversation.pk, found.pk)
    scripted_model.enqueue(TOO_LONG)
    run = await talk.ask("And now?")
    assert run.status == RunStatus.FAILED
    assert "longer than the model can read" in run.error
    assert SUMMARY not in read(scripted_model.requests[-1])
    assert "I like tea." in read(scripted_model.requests[-1])
    await in_database(compaction.undo)(talk.conversation.pk, found.pk, undone=False)
    scripted_model.enqueue(text("Tea."))
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.DONE
    assert SUMMARY in read(scripted_model.requests[-1])
    assert "I like tea." not in read(scripted_model.requests[-1])


async def test_a_summary_is_not_undone_while_the_assistant_works(talk: Talk, scripted_model: ScriptedModel) -> None:
    found = await summed_up(talk, scripted_model)
    gate = Gate()
    scripted_model.enqueue(text("Well", gate))
    await talk.say("More")
    await gate.arrival()
    with pytest.raises(RunActive):
        await in_database(compaction.undo)(talk.conversation.pk, found.pk)
    gate.open()
    await talk.over()
    with pytest.raises(NoSuchSummary):
        await in_database(compaction.undo)(talk.conversation.pk, (await talk.messages(Role.USER))[0].pk)


FAILURES: Final[dict[str, tuple[Reply, str]]] = {
    "an error": (status(500, {"message": "oops"}), "The model server failed (500)."),
    "too long itself": (TOO_LONG, "longer than the model can read"),
    "nothing": (text(" "), "The model's answer was empty"),
    "half": (Reply((sse({"choices": [{"delta": {"content": "Half"}, "finish_reason": "length"}]}),)), "not complete"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_without_a_summary_the_person_is_told_and_nothing_is_left_out(
    talk: Talk, scripted_model: ScriptedModel, name: str
) -> None:
    await filled(talk, scripted_model)
    reply, why = FAILURES[name]
    scripted_model.enqueue(TOO_LONG, reply)
    run = await talk.ask("What do I like?")
    assert run.status == RunStatus.FAILED
    told, failed = await talk.notices()
    assert told.startswith("The model's context is full, and the older messages could not be summarized.")
    assert why in told
    assert "longer than the model can read" in failed
    assert await summaries(talk) == []


async def test_where_it_only_seems_full_it_is_sent_whole_without_a_summary(
    talk: Talk, scripted_model: ScriptedModel, alice: User
) -> None:
    await with_context(talk, scripted_model, alice, 6500)
    await filled(talk, scripted_model)
    scripted_model.enqueue(status(500, {"message": "oops"}), text("Tea."))
    assert (await talk.ask("What do I like?")).status == RunStatus.DONE
    assert "I like tea." in read(scripted_model.requests[-1])
    assert "could not be summarized" in (await talk.notices())[0]


async def test_what_is_too_long_by_itself_is_refused_honestly(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(TOO_LONG)
    run = await talk.ask(LONG)
    assert "longer than the model can read" in run.error
    assert len(scripted_model.requests) == 1


async def test_a_second_summary_stands_also_for_the_first_which_comes_back_when_it_is_undone(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    first = await summed_up(talk, scripted_model)
    scripted_model.enqueue(text(f"Third. {LONG}"), TOO_LONG, text("All of it."), text("Yes."), text("No."))
    await talk.ask("Go on")
    await talk.ask("And?")
    assert SUMMARY in read(scripted_model.requests[-2])
    second = (await summaries(talk))[1]
    assert second.stands_for[: len(first.stands_for) + 1] == [*first.stands_for, str(first.pk)]
    assert SUMMARY not in read(scripted_model.requests[-1])
    await in_database(compaction.undo)(talk.conversation.pk, second.pk)
    await talk.ask("Really?")
    assert SUMMARY in read(scripted_model.requests[-1])
    assert "Third. long" in read(scripted_model.requests[-1])
    assert "I like tea." not in read(scripted_model.requests[-1])


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_in_a_long_run_whole_turns_are_summed_up_and_its_calls_stay_what_they_are(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    await in_database(recorded_tool)("send", "REQUIRED")
    scripted_model.enqueue(calls(("look", {"text": LONG})), calls(("look", {"n": 2}), ("send", {"n": 3})))
    await talk.say("Look, then send.")
    approval = await talk.only()
    scripted_model.enqueue(TOO_LONG, text("It looked."), text("Sent."))
    before = [(call.arguments, call.result) for call in await talk.calls()]
    await talk.approve(approval)
    assert (await talk.over()).status == RunStatus.DONE
    assert [name for name, _ in recorder.entered] == ["look", "look", "send"]
    # What was asked, and the last turn with the results of both its calls, are as they were.
    said, turn, looked, sent = scripted_model.messages
    assert "It looked." in said["content"]
    assert said["content"].endswith("Look, then send.")
    assert [each["id"] for each in turn["tool_calls"]] == [looked["tool_call_id"], sent["tool_call_id"]]
    assert LONG not in read(scripted_model.requests[-1])
    assert "Look, then send." not in read(scripted_model.requests[3])
    after = await talk.calls()
    assert [(call.arguments, call.result) for call in after][:2] == before[:2]
    assert [call.status for call in after] == [Status.SUCCEEDED] * 3
    assert await AuditEvent.objects.filter(name="call.approved").acount() == 1


async def test_a_summary_is_of_the_branch_that_it_was_made_in(talk: Talk, scripted_model: ScriptedModel) -> None:
    await summed_up(talk, scripted_model)
    second = (await talk.messages(Role.USER))[1]
    assert second.run_id is not None
    scripted_model.enqueue(text("Another way."))
    await in_database(runner.instead)(talk.conversation, second.run_id, "And order 4712?")
    await talk.over()
    assert SUMMARY not in read(scripted_model.requests[-1])
    assert "I like tea." in read(scripted_model.requests[-1])
    await in_database(branches.switch)(talk.conversation.pk, second.run_id)
    scripted_model.enqueue(text("Tea."))
    await talk.ask("And now?")
    assert SUMMARY in read(scripted_model.requests[-1])


async def test_a_run_that_is_stopped_while_it_is_summed_up_has_no_summary(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    await filled(talk, scripted_model)
    gate = Gate()
    scripted_model.enqueue(TOO_LONG, text("Half of", gate))
    await talk.say("What do I like?")
    await gate.arrival()
    await talk.stop()
    gate.open()
    assert (await talk.over()).status == RunStatus.STOPPED
    assert await summaries(talk) == []


async def test_images_and_instructions_in_what_was_said_are_data_for_the_summary(
    talk: Talk, scripted_model: ScriptedModel, tmp_path: Any, settings: Any
) -> None:
    found = compaction.as_data({"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image_url"}]})
    assert found == {"role": "user", "text": "Look\n\n[An image.]"}
    await summed_up(talk, scripted_model)
    asked = scripted_model.requests[3]["messages"]
    assert [each["role"] for each in asked] == ["system", "user"]
    assert json.loads(asked[1]["content"])[0] == {"role": "user", "text": "I like tea."}
