"""Of how many tools the model is told, and of which where there are too many."""

import pytest
from django.test import Client
from pytest_django import Settings

from tests.agent.talk import Talk, in_database
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
    for name, description in TOOLS.items():
        recorded_tool(name, "DISABLED", description=description)


def told_of(model: ScriptedModel) -> set[str]:
    """The tools in the last request, of which there are as many as there may be."""
    names = [tool["function"]["name"] for tool in model.requests[-1].get("tools", [])]
    assert names == sorted(names)
    return {*names}


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
    assert (len(names), found in names) == (3, True)
    assert "You are told of 3 of 6 tools" in scripted_model.requests[-1]["messages"][0]["content"]


async def test_what_was_called_in_the_conversation_stays(
    talk: Talk, catalog: None, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(calls(("weather", {"text": "Rome"})), text("Sunny."), text("Done."))
    await talk.ask("What is the weather?")
    await talk.ask("Cancel the order, pay the customer back, book a room, archive the mail and ring the bell")
    assert "weather" in told_of(scripted_model)


async def test_while_they_are_few_the_model_is_told_of_all(
    talk: Talk, catalog: None, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_TOOLS = 6
    scripted_model.enqueue(text("I see."))
    await talk.ask()
    assert told_of(scripted_model) == {*TOOLS}
    assert "You are told" not in scripted_model.requests[-1]["messages"][0]["content"]


async def test_the_page_says_that_not_all_tools_are_told_of(talk: Talk, catalog: None, settings: Settings) -> None:
    shown = await in_database(_page)(talk)
    assert "the model is told of 3 of the 6 tools" in shown
    settings.MODEL_TOOLS = 6
    assert "the model is told of" not in await in_database(_page)(talk)


def _page(talk: Talk) -> str:
    client = Client()
    client.force_login(talk.owner)
    return client.get(f"/chat/{talk.conversation.pk}").content.decode()
