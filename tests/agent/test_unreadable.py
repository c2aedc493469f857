"""Half a character, and records that cannot be read: no conversation dies of them, and each run can be ended."""

from typing import Any, Final

import pytest
from django.db import connection
from django.test import Client

from hitlchat.agent import conversations, export, transcript
from hitlchat.agent.models import MessageState, Role, RunStatus
from hitlchat.gate import decide, results
from hitlchat.gate.models import Approval, Outcome, ToolCall
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, ScriptedModel, calls, chunk, raw, status, text

pytestmark = pytest.mark.django_db(transaction=True)

HALF: Final = "caf\udce9.txt"
WHOLE: Final = "caf\N{REPLACEMENT CHARACTER}.txt"
RESULTS: Final[dict[str, Any]] = {
    "a text": ToolResult(HALF),
    "in a list": ToolResult(["a.txt", HALF]),
    "a key": ToolResult({HALF: 1}),
    "an error": ToolResult.failure("tool", f"cannot open {HALF}"),
    "what it printed": ToolResult("done", output=HALF),
}


@pytest.mark.guarantee("run:survives")
async def test_half_a_character_in_what_a_call_gave_is_no_end_of_its_conversation(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    for what, case in RESULTS.items():
        talk = await talk.another()
        recorder.results["look"] = case
        scripted_model.enqueue(calls(("look", {})), text("Seen."))
        assert (await talk.ask()).status == RunStatus.DONE, what
        (told,) = scripted_model.told
        assert (WHOLE in told) == (what != "what it printed"), what
        await in_database(_shown_everywhere)(talk)


def _shown_everywhere(talk: Talk) -> None:
    assert "".join(export.as_markdown(talk.conversation)).encode()
    assert talk.page().encode()
    browser = Client()
    browser.force_login(talk.owner)
    for path in ("", "/messages", "/export?format=json"):
        answer = browser.get(f"/api/conversations/{talk.conversation.pk}{path}")
        assert answer.status_code == 200, path
        assert answer.getvalue(), path
    for kind in ("csv", "jsonl"):
        assert browser.post("/history/export", {"format": kind}).getvalue(), kind


async def test_arguments_with_half_a_character_are_refused_before_anybody_is_asked(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send")
    scripted_model.enqueue(calls(("send", '{"text": "half \\ud83d done"}'), ("send", {"\udfff": 1})), text("I see."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert await talk.outcomes() == [Status.REJECTED, Status.REJECTED]
    first, second = scripted_model.told
    assert "text: expected whole characters" in first
    assert "\N{REPLACEMENT CHARACTER}: expected whole characters" in second
    assert recorder.entered == []
    # As strict readers of JSON want what it wrote itself.
    assert "half \N{REPLACEMENT CHARACTER} done" in str(scripted_model.messages[1]["tool_calls"][0])
    await in_database(_shown_everywhere)(talk)


async def test_a_template_of_the_operator_is_filled_with_what_can_be_kept(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    """As calls have them that were asked about before half a character was refused."""
    await in_database(recorded_tool)("send")
    await in_database(results.save)(None, {Outcome.DECLINED: "No, not {args}"}, signed_in(talk.owner), confirmed=True)
    scripted_model.enqueue(calls(("send", {"text": "half"})), text("I see."))
    await talk.say()
    approval = await talk.only()
    await in_database(_stored)("gate_toolcall", "arguments", '{"text":"half \\ud83d"}', approval.call_id)
    await talk.decline(approval)
    assert (await talk.over()).status == RunStatus.DONE
    assert "half \N{REPLACEMENT CHARACTER}" in scripted_model.told[0]


async def test_half_a_character_in_the_words_of_a_server_is_no_end_either(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(raw(b'data: {"error": {"message": "no \\ud83d"}}\n\n'), text("Again."))
    assert "no \N{REPLACEMENT CHARACTER}" in (await talk.ask()).error
    assert (await talk.ask()).status == RunStatus.DONE


async def test_halves_that_come_apart_are_one_character(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("look", "DISABLED")
    function = {"name": "look", "arguments": '{"text": "\ud83c'}
    begun = chunk({"reasoning_content": "\ud83c", "tool_calls": [{"index": 0, "id": "a", "function": function}]})
    ended = chunk({"reasoning_content": "\udf78", "tool_calls": [{"index": 0, "function": {"arguments": '\udf78"}'}}]})
    scripted_model.enqueue(raw(begun + ended + chunk({}, "tool_calls")))
    pieces = chunk({"content": "\ud83c"}) + chunk({"content": ""}) + chunk({"content": "\udf78 and \ud83c"})
    scripted_model.enqueue(raw(pieces + chunk({"content": "!"}) + chunk({"content": "\ud83d"}) + chunk({}, "stop")))
    assert (await talk.ask()).status == RunStatus.DONE
    glass, no = "\N{COCKTAIL GLASS}", "\N{REPLACEMENT CHARACTER}"
    assert recorder.entered == [("look", {"text": glass})]
    assert (await talk.answers())[-1] == f"{glass} and {no}!{no}"
    assert (await talk.messages(Role.ASSISTANT))[0].reasoning == glass


# -- Records that cannot be read ---------------------------------------------------------------------------------------


def _stored(table: str, column: str, value: str, pk: Any) -> None:
    """Write a text past all that checks it."""
    with connection.cursor() as cursor:
        # Names of this file.
        statement = f"UPDATE {table} SET {column} = %s WHERE id = %s"
        cursor.execute(statement, [value, pk if connection.vendor == "postgresql" else pk.hex])


BROKEN: Final = {
    "arguments that are no JSON": ("arguments", "{oops"),
    "a result that is no JSON": ("result", "{oops"),
    "an error of another shape": ("error", '"oops"'),
}
WIRES: Final = {
    "no JSON": "{oops",
    "no object": "[1]",
    "calls of another shape": '{"tool_calls": [1]}',
    "calls that are no list": '{"tool_calls": 1}',
    "calls without a function": '{"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]}',
    "blank": " ",
}


def _tools() -> None:
    recorded_tool("look", "DISABLED")
    recorded_tool("send")


async def _waits(talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, done: ToolResult) -> list[Any]:
    """Return a call that is over with what it gave, and two that wait."""
    recorder.results["look"] = done
    scripted_model.enqueue(calls(("look", {}), ("send", {}), ("send", {"n": 1})))
    await talk.say()
    await talk.asked(2)
    await talk.settled(Status.SUCCEEDED if done.error is None else Status.FAILED)
    return [call.pk for call in await talk.calls()]


async def _ended(talk: Talk, end: str) -> None:
    if end == "stop":
        assert await talk.stop()
    else:
        await in_database(conversations.delete)(talk.conversation, signed_in(talk.owner))
    assert (await talk.run()).status == RunStatus.STOPPED


@pytest.mark.guarantee("run:survives")
@pytest.mark.parametrize("end", ["stop", pytest.param("delete", marks=pytest.mark.slow("another end of the same"))])
async def test_a_run_whose_call_cannot_be_read_is_stopped_deleted_and_gone_on_with(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, end: str
) -> None:
    await in_database(_tools)()
    for what, (column, value) in BROKEN.items():
        talk = await talk.another()
        done = ToolResult("seen") if column != "error" else ToolResult.failure("tool", "no")
        broken, _, other = await _waits(talk, recorder, scripted_model, done)
        await in_database(_stored)("gate_toolcall", column, value, broken)
        await _ended(talk, end)
        assert (await in_database(_status)(other)) == Status.WITHDRAWN, what
        if end == "stop":
            scripted_model.enqueue(text("Here again."))
            assert (await talk.ask("What happened?")).status == RunStatus.DONE, what
            assert scripted_model.told[0] == transcript.UNREADABLE, what


@pytest.mark.guarantee("run:survives")
@pytest.mark.parametrize("end", ["stop", "delete"])
async def test_a_call_that_waits_and_cannot_be_read_keeps_no_other_from_being_withdrawn(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, end: str
) -> None:
    await in_database(_tools)()
    _, broken, other = await _waits(talk, recorder, scripted_model, ToolResult("seen"))
    await in_database(_stored)("gate_toolcall", "arguments", "{oops", broken)
    await _ended(talk, end)
    assert (await in_database(_status)(other)) == Status.WITHDRAWN


@pytest.mark.guarantee("run:survives")
@pytest.mark.parametrize(
    "end, wires",
    [
        ("stop", ["no JSON", "calls of another shape"]),
        ("delete", ["no JSON"]),
        pytest.param("stop", [*WIRES], marks=pytest.mark.slow("more of a kind")),
        pytest.param("delete", [*WIRES], marks=pytest.mark.slow("more of a kind")),
    ],
)
async def test_a_run_whose_answer_cannot_be_read_is_stopped_deleted_and_gone_on_with(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, end: str, wires: list[str]
) -> None:
    await in_database(_tools)()
    for what in wires:
        talk = await talk.another()
        await _waits(talk, recorder, scripted_model, ToolResult("seen"))
        (answer,) = await talk.messages(Role.ASSISTANT)
        await in_database(_stored)("agent_message", "wire", WIRES[what], answer.pk)
        await _ended(talk, end)
        if end == "stop":
            scripted_model.enqueue(text("Here again."))
            assert (await talk.ask("What happened?")).status == RunStatus.DONE, what
            assert scripted_model.told == [], what


@pytest.mark.guarantee("run:survives")
async def test_a_run_that_fails_while_its_calls_cannot_be_read_has_failed(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(_tools)()
    broken, *_ = await _waits(talk, recorder, scripted_model, ToolResult("seen"))
    await in_database(_stored)("gate_toolcall", "result", "{oops", broken)
    for approval_id in await in_database(_waiting)():
        await in_database(decide.decline)(approval_id, signed_in(talk.owner))
    scripted_model.enqueue(status(400), text("Here again."))
    assert (await talk.over()).status == RunStatus.FAILED
    assert (await talk.ask()).status == RunStatus.DONE


def _status(pk: Any) -> str:
    return ToolCall.objects.filter(pk=pk).values_list("status", flat=True).get()


def _waiting() -> list[Any]:
    return list(Approval.objects.filter(call__status=Status.WAITING).values_list("pk", flat=True))


async def test_what_was_written_of_an_answer_stays_when_it_is_stopped(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Once \ud83c", "upon", gate))
    await talk.say()
    await gate.arrival()
    no = "\N{REPLACEMENT CHARACTER}"
    await talk.text_arrived(f"Once {no}upon")
    assert await talk.stop()
    (answer,) = await talk.messages(Role.ASSISTANT)
    assert (answer.content, answer.state) == (f"Once {no}upon", MessageState.CUT)
