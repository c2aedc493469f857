"""Runs that would never end by themselves, and what a turn costs."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from hitlchat.agent.loop import REPEATED, WRAP_UP, too_many
from hitlchat.agent.models import RunStatus
from hitlchat.gate import results
from hitlchat.gate.sources import ToolResult
from hitlchat.gate.status import Status
from tests.agent.talk import Talk, in_database
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Reply, ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)


SOFT_TURNS, HARD_TURNS = 16, 18
TOO_MANY_TURNS = too_many(HARD_TURNS)


@pytest.fixture(autouse=True)
def tools(recorder: Recorder) -> None:
    recorded_tool("look", "DISABLED")
    recorded_tool("send")


def looks(count: int, start: int = 0) -> list[Reply]:
    """Turns that each ask for another call."""
    return [calls(("look", {"n": number})) for number in range(start, start + count)]


async def test_after_sixteen_turns_the_model_is_told_to_wrap_up_and_after_eighteen_the_run_is_stopped(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(*looks(HARD_TURNS), text("Here again."))
    run = await talk.ask()
    assert (run.status, run.error, await talk.notices()) == (RunStatus.FAILED, TOO_MANY_TURNS, [TOO_MANY_TURNS])
    told = [body["messages"][-1]["content"] == WRAP_UP for body in scripted_model.requests]
    assert (len(told), told[: SOFT_TURNS + 1]) == (HARD_TURNS, [False] * SOFT_TURNS + [True])
    assert (await talk.ask("Go on")).status == RunStatus.DONE


async def test_the_same_call_is_not_made_a_third_time(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    again = ("look", {"n": 1, "text": "here"}), ("look", {"text": "here", "n": 1}), ("look", {"n": 1, "text": "here"})
    scripted_model.enqueue(*(calls(wanted) for wanted in again), text("Here again."))
    run = await talk.ask()
    assert (run.status, run.error) == (RunStatus.FAILED, REPEATED)
    assert len(recorder.entered) == 2
    assert (await talk.ask("Go on")).status == RunStatus.DONE
    assert REPEATED in scripted_model.told[2]


ANYTHING = {"type": "object", "properties": {"n": {}}}


async def test_numbers_that_are_alike_make_no_other_call(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("any", "DISABLED", input_schema=ANYTHING)
    scripted_model.enqueue(*(calls(("any", {"n": n})) for n in (3, 3.0, 3)))
    assert (await talk.ask()).error == REPEATED
    assert len(recorder.entered) == 2


async def test_one_and_true_are_other_calls(talk: Talk, recorder: Recorder, scripted_model: ScriptedModel) -> None:
    await in_database(recorded_tool)("any", "DISABLED", input_schema=ANYTHING)
    scripted_model.enqueue(*(calls(("any", {"n": n})) for n in (1, True, 1)), text("Done."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert len(recorder.entered) == 3


@pytest.mark.guarantee("SR-41")
async def test_nobody_is_asked_a_third_time_about_the_same_call(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(*(calls(("send", {"n": 1})) for _ in range(3)))
    await talk.say()
    for _ in range(2):
        await talk.decline(await talk.only())
    assert (await talk.over()).error == REPEATED
    assert await talk.outcomes() == [Status.DECLINED, Status.DECLINED, Status.REJECTED]


async def test_the_same_call_thrice_in_one_turn_is_made_twice(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(*[("look", {"n": 1})] * 3))
    assert (await talk.ask()).error == REPEATED
    assert len(recorder.entered) == 2


async def test_a_long_result_is_cut_for_the_model_and_kept_whole_in_the_record(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    recorder.results["look"] = ToolResult("x" * (results.IN_CHAT.characters + 1234))
    scripted_model.enqueue(calls(("look", {})), text("Long."))
    await talk.ask()
    (told,) = scripted_model.told
    assert told.endswith("x\n[cut here: 1,234 more characters are kept in the record]")
    (call,) = await talk.calls()
    assert len(call.result) == results.IN_CHAT.characters + 1234


async def test_what_a_turn_writes_does_not_grow_with_the_history(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("Hello."))
    # The first message makes the title besides.
    await talk.ask("Hello")
    first = await written_by(talk, scripted_model, "One")
    for number in range(2):
        scripted_model.enqueue(calls(("look", {"n": number, "text": "x" * 2000})), text("y" * 2000))
        await talk.ask("z" * 2000)
    later = await written_by(talk, scripted_model, "Two")
    assert later["statements"] == first["statements"]
    assert later["bytes"] < first["bytes"] * 1.05


async def test_a_history_is_read_by_as_many_queries_however_long_it_is_and_calls_may_come_again(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    counts = []
    for _ in range(3):
        scripted_model.enqueue(calls(("look", {})), text("Seen."))
        reads = [sql for sql in await statements_of(talk) if sql.startswith("SELECT") and '"agent_message"' in sql]
        counts.append(len(reads))
        assert (await talk.run()).status == RunStatus.DONE
    assert counts == [counts[0]] * 3


async def written_by(talk: Talk, scripted_model: ScriptedModel, content: str) -> dict[str, int]:
    scripted_model.enqueue(calls(("look", {"n": 1})), text("Done."))
    writes = [sql for sql in await statements_of(talk, content) if sql.startswith(("INSERT", "UPDATE"))]
    assert len(writes) > 5
    return {"statements": len(writes), "bytes": sum(map(len, writes))}


async def test_a_turn_reads_the_run_it_works_on_once(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("All right."))
    reads = [sql for sql in await statements_of(talk) if sql.startswith("SELECT") and 'JOIN "agent_toolset"' in sql]
    assert len(reads) == 1


async def statements_of(talk: Talk, content: str = "Do it.") -> list[str]:
    """What one run asks of the database: all of it in the one thread that async code shares."""

    def begin() -> Any:
        capture = CaptureQueriesContext(connection)
        capture.__enter__()
        return capture

    capture = await in_database(begin)()
    await talk.ask(content)
    await in_database(capture.__exit__)(None, None, None)
    return [query["sql"] for query in await in_database(lambda: capture.captured_queries)()]
