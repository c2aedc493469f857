"""A conversation's title, which the model is asked for once, after its first answer."""

import json

import pytest
from pytest_django import Settings

from hitlchat.agent import branches, conversations, runner, runs, search, titles
from hitlchat.agent.demo_model.server import answer
from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Conversation, RunStatus, Titling
from hitlchat.agent.request import own_body
from hitlchat.base.background import background
from tests.agent.demo_tools import reply_to
from tests.agent.talk import Talk, in_database
from tests.conftest import MakeTool
from tests.scripted_model import Gate, Json, ScriptedModel, calls, hang, status, text
from tests.waiting import soon

pytestmark = pytest.mark.django_db(transaction=True)

FIRST = "Where is the parcel of order 4711? It was to come on Monday morning."
OF_FIRST = "Where is the parcel of order 4711? It was to come on…"


@pytest.fixture(autouse=True)
def titling(settings: Settings, scripted_model: ScriptedModel) -> None:
    settings.CHAT_TITLES = True


async def title(talk: Talk) -> str:
    """The title as it stands once nothing goes on any more."""
    # The run's own task begins the one for the title.
    await background.drain(20)
    await background.drain(20)
    return (await Conversation.objects.aget(pk=talk.conversation.pk)).title


async def test_after_the_first_answer_the_model_gives_the_title(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("It is in Leeds."), text("Parcel of order 4711"))
    await talk.ask(FIRST)
    assert await title(talk) == "Parcel of order 4711"
    found = await in_database(list)(search.matching(conversations.of(talk.owner), "parcel of 4711"))
    assert found == [talk.conversation]


async def test_the_request_is_short_and_offers_no_tool(
    talk: Talk, scripted_model: ScriptedModel, make_tool: MakeTool
) -> None:
    await in_database(make_tool)("echo")
    scripted_model.enqueue(text("a" * 50_000), text("Long"))
    await talk.ask("b" * 50_000)
    assert await title(talk) == "Long"
    first, second = scripted_model.requests
    assert "tools" in first
    assert second.keys() == {"model", "stream", "stream_options", "messages", "max_tokens"}
    assert (second["model"], second["max_tokens"]) == (first["model"], 1000)
    assert len(json.dumps(second)) < 6000


def test_models_of_openai_are_told_the_limit_by_the_name_that_they_take() -> None:
    places = [Endpoint(url, "", "m") for url in ("", "http://127.0.0.1:8001/v1")]
    found = [json.loads(own_body(place, "Give it a title.", "Hello", 9)) for place in places]
    plain = {"messages", "model", "stream", "stream_options"}
    assert [sorted(set(each) - plain) for each in found] == [
        ["max_completion_tokens"],
        ["max_tokens"],
    ]


async def test_it_is_asked_for_once(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(text("One."), text("The title"), text("Two."))
    await talk.ask("First")
    # As another process does that sees the end of the run, too.
    await titles.give(talk.conversation.pk)
    await title(talk)
    await talk.ask("Second")
    assert await title(talk) == "The title"
    assert len(scripted_model.requests) == 3


async def test_the_first_answer_that_ends_well_counts(talk: Talk, scripted_model: ScriptedModel) -> None:
    scripted_model.enqueue(status(400), text("It is in Leeds."), text("The title"))
    assert (await talk.ask(FIRST)).status == RunStatus.FAILED
    assert await title(talk) == OF_FIRST
    await in_database(runner.retry)(talk.conversation)
    await talk.over()
    assert await title(talk) == "The title"


async def test_nothing_is_asked_while_a_call_waits(
    talk: Talk, scripted_model: ScriptedModel, make_tool: MakeTool
) -> None:
    await in_database(make_tool)("echo")
    scripted_model.enqueue(calls(("echo", {"text": "hi"})))
    await talk.say("Echo")
    approval = await talk.only()
    assert len(scripted_model.requests) == 1
    scripted_model.enqueue(text("Done."), text("An echo"))
    await talk.approve(approval)
    await talk.over()
    assert await title(talk) == "An echo"


async def test_nobody_waits_for_it(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("One."), text("The ", gate, "title"), text("Two."))
    await talk.ask("First")
    await gate.arrival()
    assert (await talk.ask("Second")).status == RunStatus.DONE
    gate.open()
    assert await title(talk) == "The title"


async def test_a_title_that_the_person_gives_meanwhile_stays(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("One."), text("The ", gate, "title"))
    await talk.ask("First")
    await gate.arrival()
    await in_database(conversations.change)(talk.conversation, title="My own")
    gate.open()
    assert await title(talk) == "My own"
    assert not await in_database(list)(search.matching(conversations.of(talk.owner), "title"))


async def test_a_title_of_ones_own_is_not_even_asked_about(talk: Talk, scripted_model: ScriptedModel) -> None:
    await in_database(conversations.change)(talk.conversation, title="First")
    scripted_model.enqueue(text("One."))
    await talk.ask("First")
    assert await title(talk) == "First"
    assert len(scripted_model.requests) == 1


async def test_naming_it_as_the_first_message_did_makes_that_ones_own(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text(gate, "One."))
    await talk.say("First")
    await in_database(conversations.change)(talk.conversation, title="First")
    gate.open()
    await talk.over()
    assert await title(talk) == "First"
    assert len(scripted_model.requests) == 1


async def edit(talk: Talk, content: str) -> None:
    """Say this in place of the first message, and wait for the answer."""
    first = await talk.conversation.runs.order_by("created_at").afirst()
    assert first is not None
    await in_database(runner.instead)(talk.conversation, first.pk, content)
    await talk.over()


async def test_with_its_message_edited_away_a_title_goes_too_and_is_made_anew_after_the_next_answer(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    gate = Gate()
    scripted_model.enqueue(text("Noted."), text("The secret"), text(gate, "It is in Leeds."), text("Parcel"))
    await talk.ask("My password is hunter2")
    assert await title(talk) == "The secret"
    first = await talk.run()
    await in_database(runner.instead)(talk.conversation, first.pk, FIRST)
    assert (await Conversation.objects.aget(pk=talk.conversation.pk)).title == OF_FIRST
    assert not await in_database(list)(search.matching(conversations.of(talk.owner), "secret"))
    gate.open()
    await talk.over()
    assert await title(talk) == "Parcel"
    assert "hunter2" not in json.dumps(scripted_model.requests[-1])
    await in_database(branches.switch)(talk.conversation.pk, first.pk)
    assert await title(talk) == "My password is hunter2"


async def test_a_title_that_comes_after_its_message_was_edited_away_is_none(
    talk: Talk, scripted_model: ScriptedModel
) -> None:
    late = Gate()
    scripted_model.enqueue(text("Noted."), text("Password ", late, "hunter2"), text("It is in Leeds."), text(" "))
    await talk.ask("My password is hunter2")
    await late.arrival()
    await edit(talk, FIRST)
    # A title that is of no use, so that the late one would find none in its place.
    await soon(lambda: len(scripted_model.requests) == 4, "the other title is asked for")
    late.open()
    assert await title(talk) == OF_FIRST


@pytest.mark.parametrize("own", ["My own", "First"])
async def test_a_title_of_ones_own_stays_when_the_first_message_is_edited(
    own: str, talk: Talk, scripted_model: ScriptedModel
) -> None:
    scripted_model.enqueue(text("One."), text("The title"), text("Two."))
    await talk.ask("First")
    await title(talk)
    await in_database(conversations.change)(talk.conversation, title=own)
    await edit(talk, "Second")
    assert await title(talk) == own
    assert len(scripted_model.requests) == 3


async def test_a_conversation_that_is_deleted_meanwhile_gets_none(talk: Talk, scripted_model: ScriptedModel) -> None:
    gate = Gate()
    scripted_model.enqueue(text("One."), text("The ", gate, "title"))
    await talk.ask("First")
    await gate.arrival()
    await Conversation.objects.filter(pk=talk.conversation.pk).aupdate(deleted_at="2026-01-01T00:00Z")
    gate.open()
    assert await title(talk) == "First"


@pytest.mark.parametrize("reply", [status(503, retry=True), text("**“”**")])
async def test_without_a_usable_one_the_title_stays_and_nothing_is_asked_again(
    talk: Talk, scripted_model: ScriptedModel, reply: object
) -> None:
    scripted_model.enqueue(text("One."), reply, text("Two."))  # type: ignore[arg-type]
    await talk.ask("First")
    assert await title(talk) == "First"
    await talk.ask("Second")
    assert await title(talk) == "First"
    assert len(scripted_model.requests) == 3
    assert (await talk.run()).status == RunStatus.DONE


@pytest.mark.slow("waits for the end of its time")
async def test_a_model_that_says_nothing_costs_the_title(talk: Talk, scripted_model: ScriptedModel) -> None:
    _, claim = await in_database(runs.start)(talk.conversation, "First")
    await in_database(runs.finish)(claim, RunStatus.DONE)
    scripted_model.enqueue(hang())
    # Long enough for the request to go out.
    await titles.give(talk.conversation.pk, within=3.0)
    assert await title(talk) == "First"


async def test_switched_off_nothing_is_asked(talk: Talk, scripted_model: ScriptedModel, settings: Settings) -> None:
    settings.CHAT_TITLES = False
    scripted_model.enqueue(text("One."), text("Two."))
    await talk.ask("First")
    assert await title(talk) == "First"
    settings.CHAT_TITLES = True
    await talk.ask("Second")
    assert await title(talk) == "First"
    assert len(scripted_model.requests) == 2
    assert (await Conversation.objects.aget(pk=talk.conversation.pk)).titling == Titling.OVER


def test_what_the_model_writes_becomes_one_plain_short_line() -> None:
    for written, shown in [
        ("Parcel of order 4711", "Parcel of order 4711"),
        ("“Parcel of order 4711.”\n\nI chose it since", "Parcel of order 4711"),
        ("## **Title:** *Parcel*", "Parcel"),
        ("Titel: Paket", "Paket"),
        ("<think>What may it\nbe?</think>\n\nParcel", "Parcel"),
        ("Parcel\u202e\u200b\x1b of\tLeeds\x00", "Parcel of Leeds"),
        ("<script>alert(1)</script>", "script>alert(1)</script"),
        ("word " * 40, "word word word word word word word word word word word…"),
        ("w" * 500, "w" * 59 + "…"),
        ('"Delivery of the "big" parcel".', 'Delivery of the "big" parcel'),
        ('Delivery of the "big"', 'Delivery of the "big"'),
        ("**Explain f(x) and f(y).**", "Explain f(x) and f(y)"),
        ("„Was heißt „Paket“?“", "Was heißt „Paket“?"),
        ("## Lists in C# ##", "Lists in C#"),
        ("Lists in `C#`.", "Lists in `C#`"),
        ("Say 'hello there'", "Say 'hello there'"),
        ("Ann's 'order'", "Ann's 'order'"),
        ("'Ann's order'", "Ann's order"),
        ('Swap "a", "b" and "c".', 'Swap "a", "b" and "c"'),
        ("  \n ", ""),
        ("\ud83d", ""),
    ]:
        assert titles.plain(written) == shown


def test_the_demo_model_takes_the_words_of_the_request() -> None:
    for said, shown in [
        ("Refund 12.00 EUR for order 4711", "Refund 12.00 EUR for order 4711"),
        ("please refund 12.00 EUR for order 4711, since it arrived broken.", "Refund 12.00 EUR for order 4711"),
        ("Could you please tell me a story? Thanks!", "Tell me a story"),
        ("one two three four five six seven eight nine", "One two three four five six seven"),
        ("Save a note (title: “Tea order”, text: “Ann takes Assam, Ben takes Earl Grey.”)", "Save a note"),
        ("Change the address of order 4712 to “7 Station Road, Galway”", "Change the address of order 4712"),
        ('Say "good morning to all of you there" twice', "Say"),
        ('Say "good morning" to everybody', 'Say "good morning" to everybody'),
        ("Hello, compare apples, pears and plums", "Hello, compare apples, pears and plums"),
        ("refund_order(order_id: A-1)", "refund_order"),
        ("refund_order order_id=4711 amount=5", "refund_order order_id=4711 amount=5"),
        ("(in German) what is a gate?", "(in German) what is a gate"),
        ("…", "…"),
        ("?", "A conversation"),
    ]:
        read = json.dumps({"user": said, "assistant": "Done."})
        messages: list[Json] = [{"role": "system", "content": titles.INSTRUCTIONS}, {"role": "user", "content": read}]
        chunks = list(answer({"messages": messages}, {}))
        assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == shown


def test_words_that_look_like_a_request_for_a_title_are_answered_as_words() -> None:
    said = json.dumps({"user": "Refund", "assistant": ""})
    told, _ = reply_to({"messages": [{"role": "system", "content": "Help."}, {"role": "user", "content": said}]})
    assert "demo model" in told
