"""What the loop does with the model's answers, in order."""

import json
import re
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from hitlchat.agent import transcript
from hitlchat.agent.model_client import ModelTrouble
from hitlchat.agent.models import RunStatus
from hitlchat.base import canonical
from tests.agent.conftest import Read
from tests.agent.talk import Talk, in_database
from tests.agent.test_dialects import wanted_by
from tests.conftest import MakeTool
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import DIALECTS, DONE, KEY, MODEL, Gate, Reply, ScriptedModel, calls, chunk, sse, text, wrong
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("Redis announces it after the commit")


@pytest.fixture
def free(recorder: Recorder) -> None:
    """Tools that need nobody's yes."""
    for name in ("look", "count"):
        recorded_tool(name, "DISABLED")


async def test_an_answer_without_calls_ends_the_run(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("Hello ", "Bob", "."))
    run = await talk.ask("Hi")
    assert (run.status, run.error, run.turns, await talk.answers()) == (RunStatus.DONE, "", 1, ["Hello Bob."])
    assert scripted_model.messages == [{"role": "user", "content": "Hi"}]
    assert scripted_model.keys == [f"Bearer {KEY}"]


@pytest.mark.slow("fifty answers")
async def test_of_fifty_answers_that_stream_at_once_each_is_whole_and_in_its_own_conversation(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.otherwise = lambda body: text(f"{body['messages'][-1]['content']}: half, ", gate, "and the rest.")
    talks = [await talk.another() for _ in range(50)]
    for number, each in enumerate(talks):
        await each.say(f"Story {number}")
    await soon(lambda: len(scripted_model.requests) == len(talks), "all of them stream")
    gate.open()
    for number, each in enumerate(talks):
        assert (await each.over()).status == RunStatus.DONE
        assert await each.answers() == [f"Story {number}: half, and the rest."]


async def test_the_model_is_told_of_the_published_tools(talk: Talk, free: None, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("None needed."))
    await talk.ask()
    body = scripted_model.requests[0]
    assert (body["model"], body["stream"]) == (MODEL, True)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["count", "look"]


PING = b'event: ping\ndata: {"type": "ping"}\n\n'
NOTHING = (
    PING,
    sse({"object": "chat.completion.chunk"}),
    sse({"choices": None, "prompt_filter_results": []}),
    sse({"choices": [{"index": 0, "content_filter_offsets": {}, "finish_reason": None}]}),
    sse({"choices": [{"index": 0, "delta": None, "finish_reason": None}]}),
)


async def test_a_chunk_that_carries_nothing_is_passed_over(read: Read) -> None:
    hello = text("Hello ", "Bob.").parts
    said = Reply(tuple(part for each in hello[:-1] for part in (*NOTHING, each)) + hello[-1:])
    assert (await read(said)).text == "Hello Bob."


async def test_text_in_parts_and_arguments_as_an_object_are_understood(read: Read) -> None:
    parts = [{"type": "text", "text": "Let me "}, {"type": "text", "text": "look."}]
    function = {"name": "look", "arguments": {"text": "up"}}
    wanted = [chunk({"content": parts}), chunk({"tool_calls": [{"index": 0, "function": function}]})]
    answer = await read(Reply((*wanted, chunk({}, "tool_calls"), DONE)))
    assert (answer.text, wanted_by(answer)) == ("Let me look.", [("look", {"text": "up"})])
    assert re.fullmatch("[A-Za-z0-9]{9}", answer.calls[0].id)


async def test_a_refusal_is_the_answer(read: Read) -> None:
    refusal = Reply((chunk({"role": "assistant", "refusal": "I will not."}), chunk({}, "stop"), DONE))
    assert (await read(refusal)).text == "I will not."


async def test_an_empty_answer_fails_the_run_and_the_next_message_is_answered(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text(" \n"), text("Here I am."))
    run = await talk.ask("One")
    assert (run.status, run.error) == (RunStatus.FAILED, "The model's answer was empty (stop). Try again.")
    assert (await talk.ask("Two")).status == RunStatus.DONE
    assert scripted_model.messages == [{"role": "user", "content": "One\n\nTwo"}]


@pytest.mark.guarantee("gate:fail-closed")
async def test_calls_of_an_answer_that_was_cut_short_are_rejected(
    talk: Talk, free: None, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    whole = calls(("look", {"text": "up"})).parts
    scripted_model.enqueue(Reply((*whole[:-3], chunk({}, "length"), DONE)), text("I see."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert recorder.entered == []
    (told,) = scripted_model.told
    assert "(length)" in told


async def test_fragments_without_ids_never_make_one_call_of_two(read: Read) -> None:
    wanted = [("look", {"text": "left"}), ("count", {"n": 1}), ("count", {"n": 2})]
    fragments = [
        chunk({"tool_calls": [{"index": 0, "function": {"name": name, "arguments": json.dumps(arguments)}}]})
        for name, arguments in wanted
    ]
    assert wanted_by(await read(Reply((*fragments, chunk({}, "tool_calls"), DONE)))) == wanted


async def test_an_index_counts_for_more_than_an_id(read: Read) -> None:
    pieces = [("look", '{"te'), (None, 'xt": '), (None, '"up"}')]
    fragments = [
        chunk({"tool_calls": [{"index": 0, "id": f"id{n}", "function": {"name": name, "arguments": piece}}]})
        for n, (name, piece) in enumerate(pieces)
    ]
    found = wanted_by(await read(Reply((*fragments, chunk({}, "tool_calls"), DONE))))
    assert found == [("look", {"text": "up"})]


GEMINI = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}
THOUGHTS = [
    {"type": "reasoning.text", "index": 0, "format": "v1", "text": "The user "},
    {"type": "reasoning.text", "index": 0, "format": "v1", "text": "wants it."},
    {"type": "reasoning.text", "index": 0, "signature": "c2ln"},
    {"type": "reasoning.encrypted", "index": 1, "data": "eHl6"},
]


def _thinking(*wanted: tuple[str, Any]) -> Reply:
    """Return an answer with what DeepSeek, Kimi, OpenRouter and Gemini add to messages and calls."""
    thoughts = [chunk({"content": None, "reasoning_content": each}) for each in ("I should ", "look.")]
    details = [chunk({"reasoning_details": [each]}) for each in THOUGHTS]
    fragments = [
        chunk({"tool_calls": [{"index": n, "id": f"id{n}", "type": "function", "function": function} | GEMINI]})
        for n, function in enumerate({"name": name, "arguments": json.dumps(value)} for name, value in wanted)
    ]
    return Reply((*thoughts, *details, *fragments, chunk({}, "tool_calls" if wanted else "stop"), DONE))


async def test_what_a_provider_adds_comes_back_to_it_and_goes_to_no_other(
    talk: Talk, free: None, scripted_model: ScriptedModel, settings: Settings
) -> None:
    scripted_model.enqueue(_thinking(("look", {"text": "up"})), text("Done."), text("I am another."))
    await talk.ask()
    (answer,) = [each for each in scripted_model.messages if each.get("tool_calls")]
    assert answer["reasoning_content"] == "I should look."
    assert answer["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "format": "v1", "text": "The user wants it.", "signature": "c2ln"},
        THOUGHTS[-1],
    ]
    assert answer["tool_calls"][0]["extra_content"] == GEMINI["extra_content"]
    settings.OPENAI_MODEL = "another"
    await talk.ask("And now?")
    (answer,) = [each for each in scripted_model.messages if each.get("tool_calls")]
    assert answer.keys() == {"role", "content", "tool_calls"}
    assert answer["tool_calls"][0].keys() == {"id", "type", "function"}


@on_servers
async def test_what_a_provider_adds_outlasts_the_wait_for_a_person(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("wipe", risk_level=3)
    scripted_model.enqueue(_thinking(("wipe", {"text": "all"})), text("Done."))
    await talk.say()
    await talk.approve(await talk.only())
    await talk.over()
    (answer,) = [each for each in scripted_model.messages if each.get("tool_calls")]
    assert answer["tool_calls"][0]["extra_content"] == GEMINI["extra_content"]
    assert recorder.entered == [("wipe", {"text": "all"})]


async def test_a_server_that_does_not_stream_is_understood(read: Read) -> None:
    wanted = [{"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"text": "up\\n"}'}}]
    message = {"role": "assistant", "content": "I look.", "tool_calls": wanted}
    whole = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    for indent in [None, 2]:
        body = json.dumps(whole, indent=indent).encode()
        answer = await read(Reply((body,), headers={"Content-Type": "application/json"}))
        assert (answer.text, wanted_by(answer)) == ("I look.", [("look", {"text": "up\n"})])


async def test_a_call_in_the_text_is_not_executed_and_the_person_is_told_what_to_do(
    talk: Talk, free: None, recorder: Recorder, scripted_model: ScriptedModel, read: Read
) -> None:
    for written in [
        "<function=look><parameter=text>up</parameter></function>",
        '[TOOL_CALLS][{"name": "look", "arguments": {"text": "up"}}]',
        '{"name": "look", "arguments": {"text": "up"}}',
        '{"name": "look", "parameters": {}}',
        '<think>I look.</think>{"name": "look", "parameters": {}}',
    ]:
        with pytest.raises(ModelTrouble, match="tool-call parsing"):
            await read(text(written))
    in_thoughts = {"reasoning_content": 'So: <tool_call>{"name": "look", "arguments": {}}</tool_call>'}
    with pytest.raises(ModelTrouble, match="tool-call parsing"):
        await read(Reply((chunk(in_thoughts), chunk({}, "stop"), DONE)))
    written = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"text": "up"}}\n</tool_call>'
    scripted_model.enqueue(text(written))
    run = await talk.ask()
    assert (run.status, recorder.entered) == (RunStatus.FAILED, [])
    assert "tool-call parsing" in run.error
    assert await talk.answers() == [written]


def _turn(count: int, said: str | None) -> list[tuple[str, str]]:
    ids = [f"id{number}" for number in range(count)]
    wanted = [{"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}} for id in ids]
    answer = {"role": "assistant", "content": said} | ({"tool_calls": wanted} if wanted else {})
    told = [("tool", {"role": "tool", "tool_call_id": id, "content": "seen"}) for id in ids]
    return [(role, canonical.pretty(wire)) for role, wire in [("assistant", answer), *told]]


_SAID = st.builds(
    lambda role, words: [(role, canonical.pretty({"role": "user", "content": words}))],
    st.sampled_from(["user", "notice"]),
    st.sampled_from(["Hi", "Again"]),
)
_CALLS = st.builds(_turn, st.integers(1, 3), st.sampled_from([None, "I look."]))
_END = st.builds(_turn, st.just(0), st.just("Done."))
# A person may say more while a run works; a run may end after any turn, with an answer or without one.
_RUN = st.tuples(st.lists(_SAID, min_size=1, max_size=3), st.lists(_CALLS, max_size=3), st.lists(_END, max_size=1))
_HISTORY = st.lists(_RUN, min_size=1).map(
    lambda runs: [message for run in runs for parts in run for part in parts for message in part]
)


@hypothesis.settings(max_examples=40)
@given(_HISTORY)
def test_whatever_happened_the_strictest_server_takes_the_history(history: list[tuple[str, str]]) -> None:
    assert wrong([json.loads(wire) for wire in transcript.acceptable(history)]) == ""


async def test_an_ungated_call_runs_and_the_model_reads_its_result(
    talk: Talk, free: None, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("look", {"text": "up"}), say="Let me look."), text("I looked."))
    run = await talk.ask()
    assert run.status == RunStatus.DONE
    assert recorder.entered == [("look", {"text": "up"})]
    assert scripted_model.told == ["look did {'text': 'up'}"]
    assert await talk.answers() == ["Let me look.", "I looked."]


async def test_an_authored_tool_runs_in_the_sandbox(
    talk: Talk, make_tool: MakeTool, scripted_model: ScriptedModel
) -> None:
    await in_database(make_tool)("echo", hitl_mode="DISABLED")
    scripted_model.enqueue(calls(("echo", {"text": "Grüße 🎈"})), text("Done."))
    await talk.ask()
    assert scripted_model.told == ["Grüße 🎈"]


async def test_every_dialect_of_tool_calls_is_understood(read: Read) -> None:
    wanted: list[tuple[str, Any]] = [("look", {"text": "left"}), ("count", {"text": "all of them", "n": 12})]
    assert wanted_by(await read(calls(wanted[0]))) == wanted[:1]
    for dialect in DIALECTS:
        assert wanted_by(await read(calls(*wanted, dialect=dialect))) == wanted, dialect
