"""What one answer of a model may hold."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import AsyncGeneratorType
from typing import Any

import pytest

from hitlchat.agent.answer import MOST_CALLS, MOST_REQUESTED
from hitlchat.agent.models import Role, RunStatus
from tests.agent.talk import Talk, in_database
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.servers("SQLite enforces no limits of columns and numbers"),
]

Begun = list[AsyncGeneratorType[Any, Any]]


async def test_an_answer_with_too_many_calls_makes_none_of_them(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(*(("send", {"n": n}) for n in range(MOST_REQUESTED + 1))))
    run = await talk.ask()
    assert run.status == RunStatus.FAILED
    assert "more than 128 calls" in run.error
    assert await talk.calls() == []
    assert recorder.entered == []


async def test_of_more_calls_than_count_the_first_run_and_the_model_reads_why_the_others_did_not(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("send", "DISABLED")
    wanted = [("send", {"n": n}) for n in range(MOST_CALLS + 2)]
    scripted_model.enqueue(calls(*wanted), text("Sent most."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert sorted(arguments["n"] for _name, arguments in recorder.entered) == list(range(MOST_CALLS))
    results = [each["content"] for each in scripted_model.messages if each["role"] == "tool"]
    assert len(results) == MOST_CALLS + 2
    assert ["only the first 32 count" in each for each in results] == [False] * MOST_CALLS + [True] * 2


async def test_an_endless_answer_is_cut_off_and_the_conversation_goes_on(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text(*("x" * 100_000 for _ in range(11))), text("Better."))
    assert "1,000,000 characters" in (await talk.ask()).error
    await talk.ask("Shorter.")
    assert (await talk.messages(Role.ASSISTANT))[-1].content == "Better."


@contextmanager
def noted() -> Iterator[Begun]:
    """Our own asynchronous generators, from their first step on."""
    found, hooks = Begun(), sys.get_asyncgen_hooks()

    def note(generator: Any) -> None:
        if "/hitlchat/agent/" in generator.ag_code.co_filename:
            found.append(generator)
        assert hooks.firstiter is not None
        hooks.firstiter(generator)

    sys.set_asyncgen_hooks(firstiter=note)
    yield found
    sys.set_asyncgen_hooks(*hooks)


async def test_what_reads_an_answer_that_is_cut_off_is_ended_with_it_and_not_by_the_garbage_collector(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text(*("x" * 100_000 for _ in range(11))))
    with noted() as begun:
        assert "1,000,000 characters" in (await talk.ask()).error
    assert begun
    assert [generator for generator in begun if generator.ag_frame is not None] == []
