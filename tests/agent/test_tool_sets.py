"""Conversations that are held to a tool set: their model is told of no others, finds no others, and runs no others."""

import json
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.agent import conversations, runner, tool_sets
from hitlchat.agent.administering import BadDraft, InUse, NameTaken, OnlyPeople
from hitlchat.agent.models import Conversation, OwnDefaults, RunStatus, ToolSet
from hitlchat.agent.tool_sets import BadTools, Draft
from hitlchat.base.problems import NotFound
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent
from hitlchat.gate.status import Status
from hitlchat.gate.tools import SEARCH
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.recorder import Recorder, recorded_tool
from tests.scripted_model import Gate, Reply, ScriptedModel, calls, text, unfinished

pytestmark = pytest.mark.django_db(transaction=True)

WITHIN = ("archive_mail", "book_room", "pay_back", "weather")
OUTSIDE = ("ring_bell", "steal")
REFUSED = "There is no tool named 'ring_bell' here. This conversation may not use it."


@pytest.fixture
def catalog(settings: Settings, recorder: Recorder) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, SEARCH: "hitlchat.agent.offering.CatalogSource"}
    for name in (*WITHIN, *OUTSIDE):
        recorded_tool(name, "DISABLED", description=f"To {name.replace('_', ' ')}, with a bell.")


@pytest.fixture
def held(talk: Talk, catalog: None, alice: User) -> ToolSet:
    """The set that the conversation is held to."""
    made = tool_sets.create(Draft("Office", tools=WITHIN), signed_in(alice))
    conversations.change(talk.conversation, tool_set="Office")
    return made


def told_of(model: ScriptedModel, place: int = -1) -> list[str]:
    return [tool["function"]["name"] for tool in model.requests[place].get("tools", [])]


def read(model: ScriptedModel) -> list[str]:
    """Return what the model reads of its calls in the last request."""
    return [each["content"] for each in model.requests[-1]["messages"] if each["role"] == "tool"]


async def test_the_model_is_told_of_the_tools_of_the_set_alone(
    talk: Talk, held: ToolSet, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("I see."))
    await talk.ask()
    assert told_of(scripted_model) == list(WITHIN)


@pytest.mark.guarantee("gate:no-yes-no-run", "gate:truth")
async def test_a_call_of_another_tool_runs_nothing_and_the_model_is_told_so(
    talk: Talk, held: ToolSet, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("ring_bell", {}), ("weather", {})), text("I may not."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert [name for name, _ in recorder.entered] == ["weather"]
    assert REFUSED in read(scripted_model)[0]
    assert await talk.outcomes() == [Status.REJECTED, Status.SUCCEEDED]


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_the_search_finds_within_the_set_alone(
    talk: Talk, held: ToolSet, recorder: Recorder, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_TOOLS = 2
    scripted_model.enqueue(calls(("find_tools", {"query": "steal ring bell room"})), calls(("steal", {})), text("No."))
    await talk.ask("Hello")
    found = json.loads(read(scripted_model)[0])
    assert ([each["name"] for each in found["tools"]], found["of"]) == (["book_room"], len(WITHIN))
    assert not any({*OUTSIDE} & {*told_of(scripted_model, place)} for place in range(3))
    assert recorder.entered == []
    offered = await in_database(lambda: [row.data["tools"] for row in AuditEvent.objects.filter(name="run.offered")])()
    assert offered == [told_of(scripted_model, place) for place in range(3)]


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_what_was_found_before_the_set_was_narrowed_is_not_told_of_any_more(
    talk: Talk, held: ToolSet, alice: User, recorder: Recorder, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_TOOLS = 2
    scripted_model.enqueue(calls(("find_tools", {"query": "room"})), text("A room."))
    await talk.ask("Hello")
    assert "book_room" in told_of(scripted_model)
    narrower = Draft("Office", tools=("archive_mail", "pay_back", "weather"))
    await in_database(tool_sets.change)(held.pk, narrower, signed_in(alice))
    scripted_model.enqueue(calls(("book_room", {})), text("I may not."))
    await talk.ask("Hello")
    assert "book_room" not in told_of(scripted_model)
    assert recorder.entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_set_that_is_narrowed_while_the_model_answers_holds_for_that_answer(
    talk: Talk, held: ToolSet, alice: User, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    asks = Reply((*unfinished("Wait", gate).parts, *calls(("weather", {})).parts))
    scripted_model.enqueue(asks, text("I may not."))
    await talk.say()
    await talk.text_arrived("Wait")
    await in_database(tool_sets.change)(held.pk, Draft("Office", tools=("pay_back",)), signed_in(alice))
    gate.open()
    await talk.over()
    assert await talk.answers() == ["Wait", "I may not."]
    assert (told_of(scripted_model, 0), told_of(scripted_model)) == (list(WITHIN), ["pay_back"])
    assert (await talk.outcomes(), recorder.entered) == ([Status.REJECTED], [])


async def test_a_set_that_was_removed_leaves_no_tool_and_both_are_told_why(
    talk: Talk, held: ToolSet, alice: User, recorder: Recorder, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.HITL_ASK_USER = True
    await in_database(tool_sets.remove)(held.pk, signed_in(alice))
    scripted_model.enqueue(calls(("weather", {})), text("I have none."))
    await talk.ask()
    assert told_of(scripted_model) == []
    said = scripted_model.requests[-1]["messages"][0]["content"]
    assert tool_sets.removed("Office") in said
    assert tool_sets.removed("Office") in read(scripted_model)[0]
    assert recorder.entered == []


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_what_is_said_in_place_of_something_else_is_held_to_the_set_of_now(
    talk: Talk, catalog: None, alice: User, recorder: Recorder, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("ring_bell", {})), text("It rang."))
    first = await talk.ask("Ring")
    assert recorder.entered == [("ring_bell", {})]
    await in_database(conversations.change)(talk.conversation, tools=["weather"])
    scripted_model.enqueue(calls(("ring_bell", {})), text("I may not."))
    await in_database(runner.instead)(talk.conversation, first.pk, "Ring again")
    await talk.over()
    assert (told_of(scripted_model), len(recorder.entered)) == (["weather"], 1)
    scripted_model.enqueue(calls(("ring_bell", {})), text("I may not."))
    again = await talk.run()
    await in_database(runner.instead)(talk.conversation, again.pk, None)
    await talk.over()
    assert len(recorder.entered) == 1


@pytest.mark.guarantee("gate:no-yes-no-run", "run:survives")
async def test_calls_that_wait_or_are_held_back_are_withdrawn_and_the_run_goes_on(
    talk: Talk, held: ToolSet, alice: User, recorder: Recorder, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.HITL_MAX_WAITING_PER_CONVERSATION = 1
    await in_database(lambda: recorded_tool("send"))()
    await in_database(tool_sets.change)(held.pk, Draft("Office", tools=("send",)), signed_in(alice))
    scripted_model.enqueue(calls(("send", {"n": 1}), ("send", {"n": 2})), text("It was not sent."))
    await talk.say()
    await talk.asked(1)
    await in_database(tool_sets.change)(held.pk, Draft("Office", tools=("weather",)), signed_in(alice))
    assert (await talk.over()).status == RunStatus.DONE
    assert sorted(await talk.outcomes()) == [Status.REJECTED, Status.WITHDRAWN]
    assert recorder.entered == []


# -- Who changes them, and what may be wrong ---------------------------------------------------------------------------


BAD: list[tuple[str, dict[str, Any]]] = [
    ("name", {"name": ""}),
    ("name", {"name": " x"}),
    ("name", {"name": "a/b"}),
    ("name", {"name": ".."}),
    ("name", {"name": "x" * 65}),
    ("name", {"name": "a\nb"}),
    ("name", {"name": "a\ud800"}),
    ("description", {"description": "x" * 301}),
    ("description", {"description": "a\x00"}),
    ("tools", {"tools": ("nothing",)}),
    ("tools", {"tools": ("weather",) * 2001}),
]


def test_what_cannot_be_names_its_field_and_changes_nothing(catalog: None, alice: User) -> None:
    made = tool_sets.create(Draft("Office", tools=WITHIN), signed_in(alice))
    for field, more in BAD:
        for write in (tool_sets.create, lambda draft, actor: tool_sets.change(made.pk, draft, actor)):
            with pytest.raises(BadDraft) as error:
                write(Draft(**{"name": "Other", **more}), signed_in(alice))
            assert list(error.value.errors) == [field]
        assert [(row.name, row.tools) for row in ToolSet.objects.all()] == [("Office", list(WITHIN))]


def test_only_an_administrator_who_is_a_person_changes_them(catalog: None, alice: User, bob: User) -> None:
    made = tool_sets.create(Draft("Office"), signed_in(alice))
    for actor in (signed_in(bob), Actor(alice.pk, "system")):
        for write in (
            lambda: tool_sets.create(Draft("Other"), actor),  # noqa: B023
            lambda: tool_sets.change(made.pk, Draft("Other"), actor),  # noqa: B023
            lambda: tool_sets.begin_with(made.pk, actor),  # noqa: B023
            lambda: tool_sets.remove(made.pk, actor),  # noqa: B023
        ):
            with pytest.raises(OnlyPeople):
                write()
    assert [(row.name, row.is_default) for row in tool_sets.rows()] == [("Office", False)]


def test_each_change_is_on_record_and_one_that_changes_nothing_is_not(catalog: None, alice: User) -> None:
    made = tool_sets.create(Draft("Office", tools=("weather",)), signed_in(alice))
    tool_sets.change(made.pk, Draft("Office", tools=("weather", "weather")), signed_in(alice))
    tool_sets.change(made.pk, Draft("Office", tools=("weather", "pay_back")), signed_in(alice))
    tool_sets.remove(made.pk, signed_in(alice))
    rows = AuditEvent.objects.filter(name__startswith="tool_set.").order_by("pk")
    office = {"name": "Office", "description": "", "is_default": False}
    assert [(row.name, row.data["before"], row.data["after"]) for row in rows] == [
        ("tool_set.added", {}, office | {"tools": ["weather"]}),
        ("tool_set.changed", {"tools": ["weather"]}, {"tools": ["pay_back", "weather"]}),
        ("tool_set.removed", office | {"tools": ["pay_back", "weather"]}, {}),
    ]


def test_a_name_is_one_sets_until_that_is_removed(catalog: None, alice: User) -> None:
    made = tool_sets.create(Draft("Office"), signed_in(alice))
    other = tool_sets.create(Draft("Other"), signed_in(alice))
    with pytest.raises(NameTaken):
        tool_sets.create(Draft("OFFICE"), signed_in(alice))
    with pytest.raises(NameTaken):
        tool_sets.change(other.pk, Draft("office"), signed_in(alice))
    tool_sets.remove(made.pk, signed_in(alice))
    tool_sets.create(Draft("OFFICE"), signed_in(alice))
    with pytest.raises(NotFound):
        tool_sets.change(made.pk, Draft("Office"), signed_in(alice))


def test_a_set_keeps_tools_that_are_not_there_now(catalog: None, alice: User) -> None:
    made = tool_sets.create(Draft("Office", tools=WITHIN), signed_in(alice))
    ToolSet.objects.update(tools=["gone", "weather"])
    tool_sets.change(made.pk, Draft("Office", tools=("gone",)), signed_in(alice))
    made.refresh_from_db()
    assert made.tools == ["gone"]


# -- What conversations begin with -------------------------------------------------------------------------------------


def begun(person: User, **wanted: Any) -> tuple[Any, Any]:
    made = conversations.create(person, **wanted)
    return made.tools, made.tool_set.name if made.tool_set else None


def test_new_ones_begin_with_what_an_administrator_chose_unless_their_person_chose_otherwise(
    catalog: None, alice: User, bob: User, charlie: User
) -> None:
    assert begun(bob) == (None, None)
    office = tool_sets.create(Draft("Office", tools=WITHIN), signed_in(alice), begins=True)
    tool_sets.create(Draft("Own"), signed_in(alice))
    before = conversations.create(charlie)
    assert begun(bob) == (None, "Office")
    for chosen, found in (
        ({"all_tools": True}, (None, None)),
        ({"tools": ["weather"]}, (["weather"], None)),
        ({"tool_set": "Own"}, (None, "Own")),
        ({"instructions": "Be brief."}, (None, "Own")),
        ({"tools": None}, (None, "Office")),
    ):
        conversations.begin_so(bob, **chosen)
        assert begun(bob) == found
    assert begun(bob, tools=None) == (None, None)
    assert begun(bob, tools=["weather"]) == (["weather"], None)
    assert begun(bob, tool_set="Own") == (None, "Own")
    assert begun(charlie) == (None, "Office")
    with pytest.raises(InUse):
        tool_sets.remove(office.pk, signed_in(alice))
    tool_sets.begin_with(None, signed_in(alice))
    assert begun(charlie) == (None, None)
    before.refresh_from_db()
    assert before.tool_set == office


def test_ones_own_beginning_with_a_set_that_was_removed_may_use_none(catalog: None, alice: User, bob: User) -> None:
    office = tool_sets.create(Draft("Office", tools=WITHIN), signed_in(alice))
    conversations.begin_so(bob, tool_set="Office")
    tool_sets.remove(office.pk, signed_in(alice))
    made = conversations.create(bob)
    assert tool_sets.of(made).why == tool_sets.removed("Office")
    assert not tool_sets.usable(made).exists()


def test_a_choice_that_cannot_be_is_named_and_changes_nothing(catalog: None, alice: User, bob: User) -> None:
    tool_sets.create(Draft("Office"), signed_in(alice))
    made = conversations.create(bob, tools=["weather"])
    rows: list[tuple[dict[str, Any], str]] = [
        ({"tool_set": "Nothing"}, "tool_set"),
        ({"tool_set": "Office", "tools": ["weather"]}, "tool_set"),
        ({"tools": "weather"}, "tools"),
        ({"tools": [1]}, "tools"),
    ]
    for wanted, field in rows:
        for write in (
            partial(conversations.change, made, title="Other", **wanted),
            partial(conversations.create, bob, **wanted),
            partial(conversations.begin_so, bob, **wanted),
        ):
            with pytest.raises(BadTools) as error:
                write()
            assert list(error.value.errors) == [field]
        made.refresh_from_db()
        assert (made.title, made.tools, Conversation.objects.count(), OwnDefaults.objects.count()) == (
            "",
            ["weather"],
            1,
            0,
        )
