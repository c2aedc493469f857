"""Tools that the model is told of, and how it finds others where there are too many."""

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.agent import conversations, endpoints, offering
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.models import Conversation
from hitlchat.gate.models import AuditEvent, ToolCall
from hitlchat.gate.tools import EVERYTHING, SEARCH, callable_by
from hitlchat.gate.tools import tools_for as catalog_of
from tests.agent.talk import Talk, in_database
from tests.conftest import caller, signed_in
from tests.recorder import recorded_tool
from tests.scripted_model import ScriptedModel, calls, text

pytestmark = pytest.mark.django_db(transaction=True)

TOOLS = {
    "archive_mail": "Put a message aside.",
    "book_room": "Reserve a room for a meeting.",
    "cancelOrder": "Cancel what a customer bought.",
    "pay_back": "Refund a customer's money.",
    "ring_bell": "Make a sound.",
    "weather": "Tell the weather of a place.",
}


@pytest.fixture
def catalog(settings: Settings) -> None:
    settings.MODEL_TOOLS = 3
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, SEARCH: "hitlchat.agent.offering.CatalogSource"}
    for name, description in TOOLS.items():
        recorded_tool(name, "DISABLED", description=description)


def told_of(model: ScriptedModel) -> list[str]:
    """Return the names of the tools in the last request."""
    return [tool["function"]["name"] for tool in model.requests[-1].get("tools", [])]


def results(model: ScriptedModel) -> list[Any]:
    """Return what the model reads of its calls in the last request."""
    contents = [each["content"] for each in model.requests[-1]["messages"] if each["role"] == "tool"]
    return [json.loads(content) for content in contents if content.startswith("{")]


@pytest.mark.parametrize(
    "words, found",
    [
        ("Reserve the large rooms", "book_room"),
        ("One customer wants a refund", "pay_back"),
        ("The orders of Monday, please", "cancelOrder"),
        ("WEATHER", "weather"),
    ],
)
async def test_of_too_many_tools_the_model_is_told_of_those_that_the_persons_words_point_to(
    talk: Talk, catalog: None, scripted_model: ScriptedModel, words: str, found: str
) -> None:
    scripted_model.enqueue(text("I see."))
    await talk.ask(words)
    names = told_of(scripted_model)
    assert (found in names, len(names) <= 3, names[-1]) == (True, True, "find_tools")
    assert f"You are told of {len(names) - 1} of 6 tools" in scripted_model.requests[-1]["messages"][0]["content"]
    (offered,) = await in_database(lambda: list(AuditEvent.objects.filter(name="run.offered")))()
    assert offered.data["tools"] == names


async def test_what_was_called_in_the_conversation_stays(
    talk: Talk, catalog: None, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("weather", {"text": "Rome"})), text("Sunny."), text("Done."))
    await talk.ask("What is the weather?")
    await talk.ask("Cancel the order, pay the customer back, book a room, archive the mail and ring the bell")
    names = told_of(scripted_model)
    assert (len(names), "weather" in names, names[-1]) == (3, True, "find_tools")


async def test_what_the_model_finds_it_is_told_of_and_can_call(
    talk: Talk, catalog: None, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("find_tools", {"query": "make a sound"})), calls(("ring_bell", {"text": "now"})))
    scripted_model.enqueue(text("It rang."))
    await talk.ask("Hello")
    assert "ring_bell" in told_of(scripted_model)
    found = results(scripted_model)[0]
    assert found == {"tools": [{"name": "ring_bell", "description": "Make a sound."}], "of": 6}
    assert (
        await in_database(lambda: [row.status for row in ToolCall.objects.order_by("created_at")])()
        == ["succeeded"] * 2
    )


async def test_it_finds_only_tools_that_the_conversation_may_use(
    talk: Talk, catalog: None, scripted_model: ScriptedModel
) -> None:
    await in_database(Conversation.objects.update)(tools=["archive_mail", "book_room", "pay_back", "weather"])
    scripted_model.enqueue(calls(("find_tools", {"query": "bell room"})), text("Only a room."))
    await talk.ask("Hello")
    (found,) = results(scripted_model)
    assert ([each["name"] for each in found["tools"]], found["of"]) == (["book_room"], 4)


async def test_a_tool_of_the_same_name_stays_and_the_model_asks_the_person_for_other_words(
    talk: Talk, catalog: None, scripted_model: ScriptedModel
) -> None:
    await in_database(recorded_tool)("find_tools", "REQUIRED", description="Find hammers.")
    scripted_model.enqueue(text("I see."))
    await talk.ask("WEATHER")
    assert told_of(scripted_model) == ["weather"]
    assert "in other words" in scripted_model.requests[-1]["messages"][0]["content"]


def test_the_search_is_no_tool_of_pages_clients_or_rules(catalog: None, bob: User) -> None:
    assert offering.offered(caller(bob), EVERYTHING, uuid4()).tools[-1].name == "find_tools"
    assert not catalog_of(caller(bob)).filter(name="find_tools").exists()
    for kind in ("mcp", "api", "studio"):
        assert callable_by(caller(bob, kind), "find_tools") is None


async def test_while_they_are_few_the_model_is_told_of_all(
    talk: Talk, catalog: None, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_TOOLS = 6
    scripted_model.enqueue(text("I see."))
    await talk.ask()
    assert told_of(scripted_model) == sorted(TOOLS)
    assert "You are told" not in scripted_model.requests[-1]["messages"][0]["content"]


async def test_of_few_tools_that_fill_a_quarter_of_the_context_the_model_is_told_of_what_fits(
    talk: Talk, catalog: None, scripted_model: ScriptedModel, settings: Settings, alice: User
) -> None:
    settings.MODEL_TOOLS = 40
    draft = Draft("small", scripted_model.base_url, "scripted", context_length=600)
    row = await in_database(endpoints.create)(draft, signed_in(alice))
    await in_database(conversations.change)(talk.conversation, endpoint="small")
    scripted_model.enqueue(text("I see."))
    everything = " ".join(TOOLS.values())
    await talk.ask(everything)
    *told, finder = scripted_model.requests[-1]["tools"]
    assert finder["function"]["name"] == "find_tools"
    assert 1 < len(told) < len(TOOLS)
    assert sum(len(json.dumps(each, separators=(",", ":"))) for each in told) <= 600
    assert "The model sees the most relevant of 6 tools" in await in_database(_page)(talk)
    await in_database(endpoints.change)(row.pk, replace(draft, context_length=10_000), signed_in(alice))
    scripted_model.enqueue(text("Now I see all."))
    await talk.ask("And now?")
    assert told_of(scripted_model) == sorted(TOOLS)
    assert "The model sees the most relevant" not in await in_database(_page)(talk)


async def test_of_tools_that_are_too_large_each_the_model_is_told_of_one(
    talk: Talk, catalog: None, scripted_model: ScriptedModel, alice: User
) -> None:
    draft = Draft("small", scripted_model.base_url, "scripted", context_length=100)
    await in_database(endpoints.create)(draft, signed_in(alice))
    await in_database(conversations.change)(talk.conversation, endpoint="small")
    scripted_model.enqueue(calls(("find_tools", {"query": "make a sound"})), text("It can ring."))
    await talk.ask("Hello")
    assert told_of(scripted_model) == ["ring_bell", "find_tools"]


@pytest.mark.slow("adds 500 tools")
async def test_a_request_grows_with_the_catalog_only_where_all_of_it_is_told(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    def add(numbers: range) -> None:
        for number in numbers:
            recorded_tool(f"tool_{number}", "DISABLED", description=f"Does what number {number} is about. " * 5)

    async def sizes() -> list[int]:
        found = []
        for most in (40, 10_000):
            settings.MODEL_TOOLS = most
            scripted_model.enqueue(text("I see."))
            await talk.ask("Number 7, please")
            found.append(len(json.dumps(scripted_model.requests[-1].get("tools", []))))
        return found

    await in_database(add)(range(70))
    some, all_of_70 = await sizes()
    await in_database(add)(range(70, 500))
    some_of_500, all_of_500 = await sizes()
    assert all_of_70 > 70 * 300
    assert all_of_500 > 500 * 300
    assert max(some, some_of_500) < 40 * 500


async def test_the_page_says_that_not_all_tools_are_told_of(talk: Talk, catalog: None, settings: Settings) -> None:
    shown = await in_database(_page)(talk)
    assert "The model sees the most relevant of 6 tools" in shown
    settings.MODEL_TOOLS = 6
    assert "The model sees the most relevant" not in await in_database(_page)(talk)


def _page(talk: Talk) -> str:
    client = Client()
    client.force_login(talk.owner)
    return client.get(f"/chat/{talk.conversation.pk}").content.decode()
