"""What the loop does with the model's answers, in order."""

from typing import Any

import pytest

from hitlchat.agent.models import RunStatus
from tests.agent.talk import Talk, in_database
from tests.conftest import MakeTool
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import DIALECTS, KEY, MODEL, ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)


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


async def test_the_model_is_told_of_the_published_tools(talk: Talk, free: None, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("None needed."))
    await talk.ask()
    body = scripted_model.requests[0]
    assert (body["model"], body["stream"]) == (MODEL, True)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["count", "look"]


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


@pytest.mark.parametrize(
    "dialect, count", [("in sequence", 1), *((name, 2) for name in DIALECTS)], ids=["one call", *DIALECTS]
)
async def test_every_dialect_of_tool_calls_is_understood(
    talk: Talk, free: None, recorder: Recorder, scripted_model: ScriptedModel, dialect: str, count: int
) -> None:
    wanted: list[tuple[str, Any]] = [("look", {"text": "left"}), ("count", {"text": "all of them", "n": 12})]
    wanted = wanted[:count]
    scripted_model.enqueue(calls(*wanted, dialect=dialect), text("Done."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert sorted(recorder.entered) == sorted(wanted)
    assert scripted_model.told == [f"{name} did {arguments}" for name, arguments in wanted]
