"""The limits of one conversation, its temperature among them, as its model server is told of them."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from pytest_django import Settings

from hitlchat.agent import conversations, limits
from hitlchat.agent.limits import BadLimits
from hitlchat.agent.loop import NO_TEMPERATURE, WRAP_UP, too_many
from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Conversation, OwnDefaults, RunStatus
from hitlchat.agent.request import has_temperature, request_body
from hitlchat.base.database import in_db
from tests.agent.talk import Talk
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Reply, ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)

THINKS = Endpoint("https://models.example/v1", "", "large", thinks=True)
PLAIN = Endpoint("https://models.example/v1", "", "large")


async def have(talk: Talk, **wanted: Any) -> None:
    await in_db(conversations.change)(talk.conversation, **wanted)


def refusal(said: str, code: int = 400) -> Reply:
    return Reply((json.dumps({"error": {"message": said}}).encode(),), code, {"Content-Type": "application/json"})


def sent(scripted_model: ScriptedModel) -> list[Any]:
    return [body.get("temperature") for body in scripted_model.requests]


async def test_each_request_says_them_and_none_where_none_are_set(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("One."), text("Two."))
    await talk.ask()
    await have(talk, temperature=0.5, max_tokens=300)
    await talk.ask()
    first, second = scripted_model.requests
    assert not {"temperature", "max_tokens", "max_completion_tokens"} & first.keys()
    assert (second["temperature"], second["max_tokens"]) == (0.5, 300)


async def test_those_of_the_installation_hold_where_it_says_nothing(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_TEMPERATURE, settings.MODEL_MAX_TOKENS = 1.5, 100
    scripted_model.enqueue(text("One."), text("Two."))
    await talk.ask()
    await have(talk, temperature=0)
    await talk.ask()
    assert sent(scripted_model) == [1.5, 0]
    assert [body["max_tokens"] for body in scripted_model.requests] == [100, 100]


def test_a_model_that_reasons_first_is_sent_no_temperature_and_the_newer_limit() -> None:
    own = Conversation(temperature=0.5, max_tokens=300)
    assert limits.sent(own, THINKS) == {"max_completion_tokens": 300}
    assert limits.sent(own, PLAIN) == {"max_tokens": 300, "temperature": 0.5}


async def test_a_model_that_refuses_the_temperature_is_asked_without_which_is_said_once(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    await have(talk, temperature=0.5, max_tokens=300)
    said = "Unsupported value: 'temperature' does not support 0.5 with this model."
    scripted_model.enqueue(refusal(said, 422), text("Without."), text("And again."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert (await talk.ask()).status == RunStatus.DONE
    assert sent(scripted_model) == [0.5, None, None]
    assert [body["max_tokens"] for body in scripted_model.requests] == [300] * 3
    assert await talk.notices() == [NO_TEMPERATURE]
    assert await talk.answers() == ["Without.", "And again."]


async def test_another_complaint_of_the_server_fails_as_before(talk: Talk, scripted_model: ScriptedModel) -> None:
    await have(talk, temperature=0.5)
    scripted_model.enqueue(refusal("No models loaded."))
    assert (await talk.ask()).status == RunStatus.FAILED
    assert NO_TEMPERATURE not in await talk.notices()


async def test_a_server_that_refuses_it_and_then_everything_is_not_said_to_take_none(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    await have(talk, temperature=0.5)
    scripted_model.enqueue(refusal("temperature?"), refusal("temperature!"))
    assert (await talk.ask()).status == RunStatus.FAILED
    await talk.conversation.arefresh_from_db()
    assert talk.conversation.no_temperature_for == ""


def test_what_was_said_or_described_is_never_taken_for_the_temperature() -> None:
    messages = [json.dumps({"role": "user", "content": 'Say {"a":1,"temperature":0.5}'})]
    tools = [json.dumps({"default": {"a": 1, "temperature": 0.5}}, separators=(",", ":"))]
    assert not has_temperature(request_body(PLAIN, messages, tools))
    body = request_body(PLAIN, messages, tools, temperature=1e-05, max_tokens=5)
    assert has_temperature(body)
    assert json.loads(body)["temperature"] == 1e-05


@pytest.mark.parametrize("most,looks", [(1, 0), (4, 3)])
async def test_a_run_has_as_many_turns_as_it_may_and_no_tools_in_the_last(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, most: int, looks: int
) -> None:
    await in_db(recorded_tool)("look", "DISABLED")
    await have(talk, max_turns=most)
    scripted_model.enqueue(*(calls(("look", {"n": n})) for n in range(looks)), text("That is it."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert ["tools" in body for body in scripted_model.requests] == [True] * looks + [False]
    told = [body["messages"][-1]["content"] == WRAP_UP for body in scripted_model.requests]
    assert told == [n >= max(1, most - 2) for n in range(most)]


async def test_one_that_goes_on_beyond_them_is_stopped_and_says_after_how_many(
    talk: Talk, recorder: Recorder, scripted_model: ScriptedModel, settings: Settings
) -> None:
    await in_db(recorded_tool)("look", "DISABLED")
    settings.MODEL_TURNS = 3
    scripted_model.enqueue(*(calls(("look", {"n": n})) for n in range(3)))
    run = await talk.ask()
    assert (run.status, run.error) == (RunStatus.FAILED, too_many(3))


BAD: dict[str, list[Any]] = {
    "temperature": [-0.1, 2.1, float("nan"), float("inf"), True, "1"],
    "max_tokens": [0, -1, 1_000_001, 1.5, True, "9"],
    "max_turns": [0, 101, 2.0, False, "9"],
}


def test_what_does_not_fit_is_named_and_changes_nothing(bob: User) -> None:
    made = conversations.create(bob, temperature=1.0, max_tokens=2, max_turns=3)
    for name, value in [(name, value) for name, values in BAD.items() for value in values]:
        for write in (conversations.change, lambda own, **wanted: conversations.create(own.owner, **wanted)):
            with pytest.raises(BadLimits, match=r"Expected a (whole )?number from") as error:
                write(made, title="Other", **{name: value})
            assert list(error.value.errors) == [name]
        with pytest.raises(BadLimits):
            conversations.begin_so(bob, **{name: value})
        made.refresh_from_db()
        assert (made.title, made.temperature, made.max_tokens, made.max_turns) == ("", 1.0, 2, 3)
        assert (Conversation.objects.count(), OwnDefaults.objects.count()) == (1, 0)


@pytest.mark.parametrize("columns", [{"temperature": 3.0}, {"max_tokens": 0}, {"max_turns": 1000}])
def test_the_database_keeps_no_others(columns: dict[str, Any], bob: User) -> None:
    for rows in (Conversation.objects, OwnDefaults.objects):
        owner = {"owner": bob} if rows.model is Conversation else {"person": bob}
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.create(**owner, **columns)


def test_new_conversations_begin_as_their_person_chose_and_keep_that(bob: User, charlie: User) -> None:
    conversations.begin_so(bob, instructions=" Be brief. ", temperature=0.2, max_turns=5)
    made = conversations.create(bob)
    assert (made.instructions, made.temperature, made.max_tokens, made.max_turns) == ("Be brief.", 0.2, None, 5)
    conversations.begin_so(bob, temperature=None, max_tokens=9)
    later, chosen = conversations.create(bob), conversations.create(bob, temperature=None, instructions="Be long.")
    assert (later.instructions, later.temperature, later.max_tokens, later.max_turns) == ("Be brief.", None, 9, 5)
    assert (chosen.instructions, chosen.temperature, chosen.max_turns) == ("Be long.", None, 5)
    made.refresh_from_db()
    assert made.temperature == 0.2
    assert conversations.create(charlie).instructions == ""
