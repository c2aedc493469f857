"""Model endpoints of administrators: what they may be, what is on record, and which one a conversation asks."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from hitlchat.agent import conversations, endpoints, model_client, routes, runner, usage
from hitlchat.agent.administering import BadDraft, InUse, NameTaken, OnlyPeople
from hitlchat.agent.answer import Tokens
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.models import Conversation, ModelEndpoint, RunStatus
from hitlchat.agent.routes import NotOffered
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import AuditEvent
from tests.agent.talk import Talk, in_database
from tests.conftest import signed_in
from tests.scripted_model import Reply, ScriptedModel, sse, text
from tests.tables import each_row

pytestmark = pytest.mark.django_db(transaction=True)

on_servers = pytest.mark.servers("row locks tell two at a time apart")

KEY = "sk-of-the-shop-4711"
SHOP = Draft("shop", "https://models.example/v1", "large", key=KEY, other_models=("small",))


def here(model: ScriptedModel, **more: Any) -> Draft:
    """The scripted model as an administrator would add it."""
    return replace(Draft("here", model.base_url, "scripted", key=KEY, other_models=("other",)), **more)


# -- What it may be ----------------------------------------------------------------------------------------------------

WRONG = {
    "no name": (replace(SHOP, name=""), "name"),
    "the name of the environment's": (replace(SHOP, name="Environment"), "name"),
    "a name that no address has": (replace(SHOP, name="a/b"), "name"),
    "no address": (replace(SHOP, base_url="models.example"), "base_url"),
    "another protocol": (replace(SHOP, base_url="file:///etc/passwd"), "base_url"),
    "a password in the address": (replace(SHOP, base_url="https://bob:pw@models.example/v1"), "base_url"),
    "a reference in the address": (replace(SHOP, base_url="https://models.example/${HOME}"), "base_url"),
    "the whole path": (replace(SHOP, base_url="https://models.example/v1/chat/completions"), "base_url"),
    "openly to the internet": (replace(SHOP, base_url="http://models.example/v1"), "base_url"),
    "a port that cannot be": (replace(SHOP, base_url="https://models.example:99999/v1"), "base_url"),
    "no model": (replace(SHOP, model=" "), "model"),
    "an empty model": (replace(SHOP, other_models=("a", "")), "other_models"),
    "a key with a line break": (replace(SHOP, key="sk-1\nX-Admin: 1"), "key"),
    "a reference with more": (replace(SHOP, key="sk-${SHOP}"), "key"),
    "a reference to hitlchat's own": (replace(SHOP, key="${SECRET_KEY}"), "key"),
    "another header": (replace(SHOP, key_header="Cookie"), "key_header"),
    "the place of the other API": (replace(SHOP, base_url="https://models.example/v1/responses/"), "base_url"),
    "another API": (replace(SHOP, api="grpc"), "api"),
    "no context": (replace(SHOP, context_length=0), "context_length"),
    "a price below nothing": (replace(SHOP, input_price=Decimal(-1), output_price=Decimal(1)), "input_price"),
    "half a price": (replace(SHOP, input_price=Decimal(1)), "output_price"),
}


def test_what_cannot_be_names_its_field_and_adds_nothing(alice: User) -> None:
    for name, case in WRONG.items():
        draft, field = case
        with pytest.raises(BadDraft) as refused:
            endpoints.create(draft, signed_in(alice))
        assert list(refused.value.errors) == [field], name
        assert not ModelEndpoint.objects.exists(), name


def test_a_server_of_ones_own_needs_no_encryption(alice: User) -> None:
    for name, url in [
        ("a", "http://127.0.0.1:11434/v1"),
        ("b", "http://localhost:1234/v1"),
        ("c", "http://ollama:1/v1"),
    ]:
        assert endpoints.create(replace(SHOP, name=name, base_url=url), signed_in(alice)).base_url == url


@on_servers
def test_two_endpoints_have_different_names(alice: User) -> None:
    endpoints.create(SHOP, signed_in(alice))
    with pytest.raises(NameTaken):
        endpoints.create(replace(SHOP, name="SHOP"), signed_in(alice))


def test_a_program_changes_no_endpoint_even_for_an_administrator(alice: User) -> None:
    for means in ("system", "elicitation"):
        with pytest.raises(OnlyPeople):
            endpoints.create(SHOP, Actor(alice.pk, means))


def test_whoever_is_no_administrator_changes_no_endpoint(alice: User, bob: User) -> None:
    row = endpoints.create(SHOP, signed_in(alice))
    for change in (
        lambda: endpoints.create(replace(SHOP, name="mine"), signed_in(bob)),
        lambda: endpoints.change(row.pk, SHOP, signed_in(bob)),
        lambda: endpoints.begin_with(row.pk, signed_in(bob)),
        lambda: endpoints.remove(row.pk, signed_in(bob)),
    ):
        with pytest.raises(OnlyPeople):
            change()


# -- Its key -----------------------------------------------------------------------------------------------------------


def test_a_key_is_sealed_at_rest_and_a_reference_stays_as_it_is(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    row = endpoints.create(SHOP, signed_in(alice))
    assert KEY not in row.key
    assert routes.to(row).api_key == KEY
    monkeypatch.setenv("SHOP_KEY", "sk-of-the-environment")
    row = endpoints.change(row.pk, replace(SHOP, key="${SHOP_KEY}"), signed_in(alice))
    assert row.key == "${SHOP_KEY}"
    assert routes.to(row).api_key == "sk-of-the-environment"
    monkeypatch.delenv("SHOP_KEY")
    with pytest.raises(model_client.ModelTrouble, match="“shop” is not usable: the environment variable SHOP_KEY"):
        routes.to(row)


def test_a_key_does_not_go_along_to_another_host(alice: User) -> None:
    row = endpoints.create(SHOP, signed_in(alice))
    elsewhere = replace(endpoints.draft_of(row), base_url="https://other.example/v1")
    with pytest.raises(BadDraft) as refused:
        endpoints.change(row.pk, elsewhere, signed_in(alice))
    assert list(refused.value.errors) == ["key"]
    same = replace(endpoints.draft_of(row), base_url="https://models.example/v2")
    assert routes.to(endpoints.change(row.pk, same, signed_in(alice))).api_key == KEY


@on_servers
def test_every_change_is_on_record_without_the_key(alice: User) -> None:
    row = endpoints.create(replace(SHOP, base_url="https://models.example/v1?tag=q-4711"), signed_in(alice))
    draft = replace(endpoints.draft_of(row), key="sk-another-one", context_length=8192)
    endpoints.change(row.pk, draft, signed_in(alice))
    endpoints.begin_with(row.pk, signed_in(alice))
    endpoints.begin_with(None, signed_in(alice))
    endpoints.remove(row.pk, signed_in(alice))
    events = list(AuditEvent.objects.filter(name__startswith="endpoint.").order_by("pk"))
    assert [each.name.partition(".")[2] for each in events] == ["added", *["changed"] * 3, "removed"]
    added, changed, begins, _, removed = (each.data for each in events)
    assert (added["endpoint"], added["before"], added["after"]["address"]) == ("shop", {}, "https://models.example/v1")
    assert (changed["before"], changed["after"]) == ({"context_length": None}, {"context_length": 8192})
    assert changed["also"] == ["key"]
    assert (begins["before"], begins["after"]) == ({"is_default": False}, {"is_default": True})
    assert removed["after"] == {}
    told = " ".join(str(each.data) for each in events)
    assert [secret for secret in (KEY, "sk-another-one", "q-4711") if secret in told] == []


def test_a_change_that_changes_nothing_is_not_on_record(alice: User) -> None:
    row = endpoints.create(SHOP, signed_in(alice))
    endpoints.change(row.pk, endpoints.draft_of(row), signed_in(alice))
    assert not AuditEvent.objects.filter(name="endpoint.changed").exists()


# -- Which one a conversation asks -------------------------------------------------------------------------------------


async def added(model: ScriptedModel, alice: User, **more: Any) -> ModelEndpoint:
    return await in_database(endpoints.create)(here(model, **more), signed_in(alice))


async def chosen(talk: Talk, value: str) -> None:
    endpoint, _, model = value.partition("/")
    await in_database(conversations.change)(talk.conversation, endpoint=endpoint, model=model)


async def test_a_conversation_asks_the_endpoint_and_model_that_it_chose(
    talk: Talk, scripted_model: ScriptedModel, alice: User, settings: Settings
) -> None:
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    await added(scripted_model, alice)
    await chosen(talk, "here/other")
    scripted_model.enqueue(text("From here."))
    assert (await talk.ask()).status == RunStatus.DONE
    assert scripted_model.requests[0]["model"] == "other"
    assert scripted_model.keys == [f"Bearer {KEY}"]


async def test_a_conversation_keeps_its_endpoint_when_another_becomes_usual(
    talk: Talk, scripted_model: ScriptedModel, alice: User, bob: User
) -> None:
    row = await added(scripted_model, alice)
    await in_database(endpoints.begin_with)(row.pk, signed_in(alice))
    scripted_model.enqueue(text("Of the environment."))
    await talk.ask()
    assert scripted_model.keys == ["Bearer a key for the scripted model"]
    made = await in_database(conversations.create)(bob)
    assert made.endpoint_id == row.pk


GONE = {
    "removed": "The model endpoint “here” of this conversation was removed. Choose another model",
    "disabled": "The model endpoint “here” of this conversation is disabled. Choose another model",
    "without the model": "The model endpoint “here” no longer offers “other”. Choose another model",
    "without its key": "The key of the model endpoint “here” is not usable",
}


@each_row("gone, said", GONE.items(), ids=GONE)
def test_an_endpoint_that_is_gone_is_said(bob: User, alice: User, gone: str, said: str) -> None:
    Conversation.objects.all().delete()
    ModelEndpoint.objects.all().delete()
    row = endpoints.create(replace(SHOP, name="here", other_models=("other",)), signed_in(alice))
    made = Conversation.objects.create(owner=bob, endpoint=row, model="other")
    draft = endpoints.draft_of(row)
    match gone:
        case "removed":
            endpoints.remove(row.pk, signed_in(alice))
        case "disabled":
            endpoints.change(row.pk, replace(draft, enabled=False), signed_in(alice))
        case "without the model":
            endpoints.change(row.pk, replace(draft, other_models=()), signed_in(alice))
        case _:
            ModelEndpoint.objects.update(key="sealed-elsewhere")
    made.refresh_from_db()
    with pytest.raises(model_client.ModelTrouble) as trouble:
        routes.of(made)
    assert str(trouble.value).startswith(said)


async def test_a_conversation_whose_endpoint_is_gone_says_so_and_asks_nobody(
    talk: Talk, scripted_model: ScriptedModel, alice: User
) -> None:
    row = await added(scripted_model, alice)
    await chosen(talk, "here/other")
    await in_database(endpoints.remove)(row.pk, signed_in(alice))
    run = await talk.ask()
    assert (run.status, scripted_model.requests) == (RunStatus.FAILED, [])
    assert run.error.startswith(GONE["removed"])
    assert await talk.notices() == [run.error]
    await chosen(talk, "environment")
    scripted_model.enqueue(text("Here again."))
    await in_database(runner.retry)(await Conversation.objects.aget(pk=talk.conversation.pk))
    assert (await talk.over()).status == RunStatus.DONE


async def test_what_no_enabled_endpoint_offers_cannot_be_chosen(
    talk: Talk, scripted_model: ScriptedModel, alice: User
) -> None:
    await added(scripted_model, alice)
    await added(scripted_model, alice, name="off", enabled=False)
    for value in ("nowhere/scripted", "here/unknown", "off/scripted"):
        with pytest.raises(NotOffered):
            await chosen(talk, value)


@on_servers
async def test_an_endpoint_that_new_conversations_begin_with_cannot_go(
    scripted_model: ScriptedModel, alice: User
) -> None:
    row = await added(scripted_model, alice)
    await in_database(endpoints.begin_with)(row.pk, signed_in(alice))
    with pytest.raises(InUse):
        await in_database(endpoints.remove)(row.pk, signed_in(alice))
    with pytest.raises(InUse):
        await in_database(endpoints.change)(row.pk, here(scripted_model, enabled=False), signed_in(alice))
    await in_database(endpoints.begin_with)(None, signed_in(alice))
    await in_database(endpoints.remove)(row.pk, signed_in(alice))
    assert await in_database(routes.default)() is None


async def test_what_an_endpoint_can_do_shapes_the_request(
    talk: Talk, scripted_model: ScriptedModel, alice: User, make_tool: object
) -> None:
    await in_database(make_tool)("echo")  # type: ignore[arg-type]
    row = await added(scripted_model, alice, parallel_calls=False, reasoning=True, images=False)
    await chosen(talk, "here/scripted")
    scripted_model.enqueue(text("One at a time."))
    await talk.ask()
    assert scripted_model.requests[0]["parallel_tool_calls"] is False
    assert routes.to(row).limit_name == "max_completion_tokens"
    assert not await in_database(routes.takes_images)(talk.conversation)


# -- Where it leads ----------------------------------------------------------------------------------------------------


async def test_a_private_address_is_not_asked_where_the_operator_rules_it_out(
    talk: Talk, scripted_model: ScriptedModel, alice: User, settings: Settings
) -> None:
    await added(scripted_model, alice)
    await chosen(talk, "here/scripted")
    settings.MODEL_ALLOW_PRIVATE = False
    run = await talk.ask()
    assert "Nothing was sent to the model server at " in run.error
    assert ": 127.0.0.1 must not be reached, and private addresses are not allowed." in run.error
    assert scripted_model.requests == []


async def test_a_redirect_takes_the_key_nowhere(scripted_model: ScriptedModel, alice: User) -> None:
    row = await added(scripted_model, alice)
    scripted_model.enqueue(Reply((b"",), 307, {"Location": f"{scripted_model.base_url}/elsewhere"}))
    assert "refused the request (307)" in (await in_database(routes.test)(row)).error
    assert len(scripted_model.requests) == 1


# -- Whether it answers ------------------------------------------------------------------------------------------------


async def test_a_test_tells_what_the_model_answered(scripted_model: ScriptedModel, alice: User) -> None:
    row = await added(scripted_model, alice)
    scripted_model.enqueue(text("ready"), text("ready, too"))
    trial = await in_database(routes.test)(row)
    assert (trial.answer, trial.error) == ("ready", "")
    assert (await in_database(routes.test)(None)).answer == "ready, too"
    assert [len(each["messages"]) for each in scripted_model.requests] == [1, 1]


LISTS = {
    "as OpenAI has it": ({"object": "list", "data": [{"id": "b"}, {"id": "a"}]}, ("a", "b")),
    "as a plain list": ([{"id": "b", "object": "model"}, {"name": "a"}], ("a", "b")),
    "under another name": ({"models": [{"name": "llama"}]}, ("llama",)),
    "with what is no name": ({"data": [{"id": "a"}, {"id": 7}, "x", {"id": "bad\u202ename"}, {}]}, ("a",)),
}


async def test_the_models_of_a_server_are_listed_by_name(scripted_model: ScriptedModel, alice: User) -> None:
    row = await added(scripted_model, alice)
    for shape, (listed, expected) in LISTS.items():
        scripted_model.listed = listed
        assert (await in_database(routes.listing)(row)).models == expected, shape


async def test_a_server_that_repeats_the_key_gets_it_on_no_page(scripted_model: ScriptedModel, alice: User) -> None:
    row = await added(scripted_model, alice)
    scripted_model.enqueue(text(f"You sent {KEY}"))
    assert (await in_database(routes.test)(row)).answer == "You sent [key]"
    scripted_model.listed = {"data": [{"id": KEY}]}
    assert (await in_database(routes.listing)(row)).models == ("[key]",)


async def test_a_list_without_models_is_said(scripted_model: ScriptedModel, alice: User) -> None:
    row = await added(scripted_model, alice)
    nothing: list[Any] = [{"data": []}, {}, [], "models", None]
    for listed in nothing:
        scripted_model.listed = listed
        assert (await in_database(routes.listing)(row)).error.startswith("The server lists no models.")


async def test_a_server_that_is_not_there_is_said_in_plain_words(alice: User) -> None:
    draft = Draft("nobody", "http://127.0.0.1:9/v1", "large")
    row = await in_database(endpoints.create)(draft, signed_in(alice))
    expected = "The model server at http://127.0.0.1:9/v1 cannot be reached. Check that it runs and that its address"
    assert (await in_database(routes.test)(row)).error.startswith(expected)
    assert (await in_database(routes.listing)(row)).error.startswith(expected)


# -- Limits ------------------------------------------------------------------------------------------------------------


@on_servers
async def test_who_has_used_up_the_day_is_refused_before_anything_is_sent(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_PERSON_TOKENS = 120
    counts = {"prompt_tokens": 100, "completion_tokens": 20}
    parts = text("Here.").parts
    told = sse({"id": "x", "choices": [], "usage": counts})
    scripted_model.enqueue(Reply((*parts[:-1], told, *parts[-1:])))
    assert (await talk.ask()).status == RunStatus.DONE
    run = await talk.ask("And now?")
    assert run.status == RunStatus.FAILED
    assert run.error.startswith("You have used 120 tokens today; the daily limit is 120.")
    assert len(scripted_model.requests) == 1
    settings.MODEL_PERSON_TOKENS = 0
    scripted_model.enqueue(text("Now."))
    await in_database(runner.retry)(talk.conversation)
    assert (await talk.over()).status == RunStatus.DONE


async def test_what_costs_too_much_is_refused_with_what_it_cost(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    # By the prices that the environment has for its endpoint.
    settings.OPENAI_INPUT_PRICE, settings.OPENAI_OUTPUT_PRICE = 1000.0, 2500.0
    settings.MODEL_CONVERSATION_COST = 0.15
    parts = text("Here.").parts
    told = sse({"id": "x", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
    scripted_model.enqueue(Reply((*parts[:-1], told, *parts[-1:])))
    assert (await talk.ask()).status == RunStatus.DONE
    run = await talk.ask("And now?")
    assert run.error.startswith("This conversation has cost 0.15 USD, and the limit for a conversation is 0.15 USD.")
    settings.MODEL_PERSON_COST = 0.1
    other = Conversation(owner=talk.owner)
    assert "today; the daily limit is 0.1 USD" in await in_database(usage.over_limit)(other)
    settings.MODEL_PERSON_COST = 0.2
    assert await in_database(usage.over_limit)(other) == ""
    assert len(scripted_model.requests) == 1


@pytest.mark.parametrize("shown", [True, False])
def test_the_environment_says_what_its_model_costs_and_how_much_it_reads(
    bob: User, settings: Settings, shown: bool
) -> None:
    settings.OPENAI_BASE_URL = "https://models.example/v1" if shown else ""
    settings.OPENAI_CONTEXT_LENGTH, settings.OPENAI_INPUT_PRICE, settings.OPENAI_OUTPUT_PRICE = 1000, 1.5, 3.0
    found = endpoints.environment()
    said = (found.context_length, found.input_price, found.output_price)
    # The demo model is another.
    assert said == ((1000, Decimal("1.5"), Decimal("3.0")) if shown else (None, None, None))
    made = conversations.create(bob)
    usage.add(made, model_client.endpoint(), Tokens(400, 100))
    assert usage.of_conversation(made.pk).cost == (0.0009 if shown else None)


async def test_a_conversation_that_has_used_up_its_tokens_is_refused_and_another_is_not(
    talk: Talk, scripted_model: ScriptedModel, settings: Settings
) -> None:
    settings.MODEL_CONVERSATION_TOKENS = 120
    parts = text("Here.").parts
    told = sse({"id": "x", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
    scripted_model.enqueue(Reply((*parts[:-1], told, *parts[-1:])))
    assert (await talk.ask()).status == RunStatus.DONE
    run = await talk.ask("And now?")
    assert run.error.startswith("This conversation has used 120 tokens, and the limit for a conversation is 120.")
    assert len(scripted_model.requests) == 1
    assert await in_database(usage.over_limit)(Conversation(owner=talk.owner)) == ""
