"""Models on pages: endpoints as administrators keep them, the chooser of a conversation, and what answers took."""

import re
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.agent import conversations, endpoints, transcript, usage
from hitlchat.agent.answer import Answer, Tokens
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.model_client import Endpoint
from hitlchat.agent.models import Conversation, Message, MessageState, ModelEndpoint, Role, Run, RunStatus
from hitlchat.chat import fragments
from tests.chat.conftest import words
from tests.conftest import signed_in
from tests.scripted_model import ScriptedModel, scripted_model, status, text

__all__ = ["scripted_model"]

pytestmark = pytest.mark.django_db

on_servers = pytest.mark.servers("the SQL differs between the databases")

KEY = "sk-of-the-shop-4711"
TYPED = {
    "name": "shop",
    "base_url": "https://models.example/v1",
    "key": KEY,
    "key_header": "Authorization",
    "api": "chat",
    "model": "large",
    "other_models": "small\r\ntiny\r\n",
    "images": "on",
    "parallel_calls": "on",
    "enabled": "on",
}


@pytest.fixture
def shop(alice: User) -> ModelEndpoint:
    draft = Draft("shop", "https://models.example/v1", "large", key=KEY, other_models=("small",), context_length=1000)
    return endpoints.create(draft, signed_in(alice))


# -- As administrators keep them ---------------------------------------------------------------------------------------


def test_they_are_for_administrators(client: Client, bob: User, shop: ModelEndpoint) -> None:
    paths = ["", "new", "at/shop", "at/shop/remove"]
    assert all(client.get(f"/models/{path}").status_code == 302 for path in paths)
    client.force_login(bob)
    assert all(client.get(f"/models/{path}").status_code == 403 for path in paths)
    acts = ["at/shop", "at/shop/test", "at/shop/models", "at/shop/offer", "at/shop/begin", "at/shop/remove"]
    assert all(client.post(f"/models/{path}").status_code == 403 for path in acts)
    assert "/models/" not in client.get("/").content.decode()


def test_one_is_added_and_its_key_is_on_no_page(admin: Client) -> None:
    answer = admin.post("/models/new", TYPED, follow=True)
    row = ModelEndpoint.objects.get()
    assert (row.name, row.offered, row.enabled, endpoints.key_of(row)) == (
        "shop",
        ["large", "small", "tiny"],
        True,
        KEY,
    )
    pages = [answer, admin.get("/models/"), admin.get("/models/at/shop")]
    assert "A key is stored. Leave empty to keep it." in words(answer)
    assert [page for page in pages if KEY in page.content.decode()] == []


def test_prices_are_shown_as_they_were_typed(admin: Client, shop: ModelEndpoint) -> None:
    ModelEndpoint.objects.update(input_price="2.50", output_price="10")
    page = admin.get("/models/at/shop").content.decode()
    assert ('value="2.5"' in page, 'value="10"' in page) == (True, True)


def test_the_api_that_it_is_asked_by_is_chosen_and_shown(admin: Client) -> None:
    assert "API to use" in words(admin.get("/models/new"))
    admin.post("/models/new", TYPED | {"api": "responses"})
    assert ModelEndpoint.objects.get().api == "responses"
    assert "https://models.example/v1 · Responses API" in words(admin.get("/models/"))
    answer = admin.post("/models/at/shop", TYPED | {"api": "grpc"})
    assert (answer.status_code, ModelEndpoint.objects.get().api) == (422, "responses")


def test_what_is_wrong_is_said_at_its_field_without_the_key(admin: Client) -> None:
    answer = admin.post("/models/new", TYPED | {"base_url": "nowhere", "input_price": "1", "context_length": "x"})
    assert answer.status_code == 422
    assert "Expected an address such as https://api.example.com/v1." in words(answer)
    assert "Expected both prices or neither." in words(answer)
    assert "Enter the key again: pages never show it." in words(answer)
    assert KEY not in answer.content.decode()
    assert not ModelEndpoint.objects.exists()


def test_a_key_that_is_left_empty_stays_until_it_is_forgotten(admin: Client, shop: ModelEndpoint) -> None:
    admin.post("/models/at/shop", TYPED | {"key": "", "model": "larger"})
    row = ModelEndpoint.objects.get()
    assert (row.model, endpoints.key_of(row)) == ("larger", KEY)
    admin.post("/models/at/shop", TYPED | {"key": "", "no_key": "on"})
    assert ModelEndpoint.objects.get().key == ""


def test_one_that_conversations_begin_with_is_neither_removed_nor_disabled(admin: Client, shop: ModelEndpoint) -> None:
    admin.post("/models/at/shop/begin")
    said = "This is the default for new conversations. Choose another default first."
    assert said in words(admin.post("/models/at/shop/remove"))
    assert said in words(
        admin.post("/models/at/shop", {name: each for name, each in TYPED.items() if name != "enabled"})
    )
    admin.post("/models/at/environment/begin")
    admin.post("/models/at/shop/remove")
    assert ModelEndpoint.objects.get().removed_at is not None
    assert admin.get("/models/at/shop").status_code == 404


def test_one_is_tested_and_its_models_are_offered_by_a_click(
    admin: Client, shop: ModelEndpoint, scripted_model: ScriptedModel
) -> None:
    ModelEndpoint.objects.update(base_url=scripted_model.base_url)
    scripted_model.enqueue(text("ready"), status(401, {"message": f"bad key {KEY}"}), text("ready, too"))
    assert "The model answered “ready” after" in words(admin.post("/models/at/shop/test"))
    refused = words(admin.post("/models/at/shop/test"))
    assert "did not accept the key (401). Check its key on the Models page. It says: “bad key [key]”." in refused
    assert "The model answered “ready, too”" in words(admin.post("/models/at/environment/test"))
    scripted_model.listed = {"data": [{"id": "large"}, {"id": "huge"}, {"id": "small"}]}
    assert "huge" in words(admin.post("/models/at/shop/models"))
    admin.post("/models/at/shop/offer", {"listed": ["large", "huge", "small"], "model": ["huge"]})
    assert ModelEndpoint.objects.get().offered == ["large", "huge"]


# -- What a conversation asks ------------------------------------------------------------------------------------------


def test_without_an_endpoint_there_is_nothing_to_choose(admin: Client, alice: User) -> None:
    made = conversations.create(alice, title="plain")
    for page in (admin.get("/"), admin.get(f"/chat/{made.pk}")):
        assert 'name="route"' not in page.content.decode()
    assert "The demo model answers." in admin.get("/").content.decode()


def test_a_conversation_begins_with_the_model_that_was_chosen(client: Client, bob: User, shop: ModelEndpoint) -> None:
    client.force_login(bob)
    page = client.get("/").content.decode()
    assert 'value="shop/small"' in page
    # Who answers is for the person to choose.
    assert "The demo model answers." not in page
    client.post("/chat/new", {"route": "shop/small"})
    made = Conversation.objects.get()
    assert (made.endpoint, made.model) == (shop, "small")
    client.post(f"/chat/{made.pk}/change", {"route": "environment/"})
    made.refresh_from_db()
    assert (made.endpoint, made.model) == (None, "")


def test_a_default_model_that_is_gone_is_said_where_conversations_begin(
    client: Client, bob: User, alice: User, shop: ModelEndpoint
) -> None:
    conversations.begin_so(bob, endpoint="shop", model="small")
    client.force_login(bob)
    assert "no longer available" not in words(client.get("/"))
    assert conversations.create(bob).model == "small"
    endpoints.change(shop.pk, replace(endpoints.draft_of(shop), enabled=False), signed_in(alice))
    assert "Your default model “shop · small” is no longer available" in words(client.get("/"))
    begun, draft = conversations.create(bob), conversations.create(bob, draft=True)
    assert (begun.endpoint, begun.model) == (None, "")
    [notice] = begun.messages.all()
    assert (notice.role, "so new conversations ask “demo”" in notice.content) == (Role.NOTICE, True)
    assert "so new conversations ask “demo”" in words(client.get(f"/chat/{begun.pk}"))
    # It would not be removed with nothing else in it.
    assert not draft.messages.exists()


def test_what_nobody_offers_begins_nothing_and_loses_no_text(client: Client, bob: User, shop: ModelEndpoint) -> None:
    client.force_login(bob)
    answer = client.post("/chat/new", {"route": "nowhere/x", "content": "Pay the rent."}, follow=True)
    assert "There is no enabled model endpoint with this name. Your text was: Pay the rent." in words(answer)
    assert not Conversation.objects.exists()
    made = conversations.create(bob, title="plain")
    answer = client.post(f"/chat/{made.pk}/change", {"route": "shop/unknown"}, follow=True)
    assert "The model endpoint “shop” offers large, small." in words(answer)


def test_a_conversation_whose_endpoint_is_gone_says_what_to_do(
    client: Client, alice: User, bob: User, shop: ModelEndpoint
) -> None:
    made = Conversation.objects.create(owner=bob, endpoint=shop, model="small")
    endpoints.remove(shop.pk, signed_in(alice))
    client.force_login(bob)
    page = words(client.get(f"/chat/{made.pk}"))
    assert "The model endpoint “shop” of this conversation was removed. Choose another model at the top" in page
    assert "shop · small" in page


# -- What answers took -------------------------------------------------------------------------------------------------


def answered(made: Conversation, where: ModelEndpoint | None, tokens: Tokens) -> Message:
    run = Run.objects.create(conversation=made, status=RunStatus.DONE)
    Conversation.objects.filter(pk=made.pk).update(tip=run)
    seq = made.messages.count() + 1
    row = Message.objects.create(conversation=made, run=run, seq=seq, role=Role.ASSISTANT, state=MessageState.STREAMING)
    transcript.close_answer(row.pk, Answer("Here."))
    stored = where.pk if where else None
    usage.add(made, Endpoint("", "", "m", stored=stored), tokens, run_id=run.pk, message_id=row.pk)
    return row


@on_servers
def test_an_answer_shows_its_tokens_and_cost_and_the_conversation_their_sum(
    client: Client, bob: User, shop: ModelEndpoint
) -> None:
    ModelEndpoint.objects.update(input_price="2.5", output_price=10)
    made = Conversation.objects.create(owner=bob, title="dear", endpoint=shop)
    answered(made, shop, Tokens(200, 50, 100, 20))
    answered(made, shop, Tokens(400, 100))
    client.force_login(bob)
    page = words(client.get(f"/chat/{made.pk}"))
    assert "250 tokens · 0.0010 USD" in page
    assert "750 tokens · 0.0030 USD · context 50% full" in page
    assert "200 in, 100 of them cached; 50 out, 20 of them reasoning" in client.get(f"/chat/{made.pk}").content.decode()
    assert "750 tokens" in fragments.run(made.pk)


@on_servers
def test_a_sum_with_answers_without_a_price_says_that_it_is_the_least(
    client: Client, bob: User, shop: ModelEndpoint
) -> None:
    ModelEndpoint.objects.update(input_price=1, output_price=1)
    made = Conversation.objects.create(owner=bob, title="mixed", endpoint=shop)
    answered(made, shop, Tokens(500_000, 500_000))
    answered(made, None, Tokens(10, 5))
    assert usage.of_conversation(made.pk) == usage.Used(500_010, 500_005, cost=1.0, unpriced=True)
    client.force_login(bob)
    assert "1,000,015 tokens · at least 1.00 USD" in words(client.get(f"/chat/{made.pk}"))


@on_servers
def test_insights_have_everyones_tokens_for_administrators_and_ones_own_for_others(
    client: Client, alice: User, bob: User, charlie: User
) -> None:
    for person, count in ((bob, 1234), (charlie, 99)):
        answered(Conversation.objects.create(owner=person, title="x"), None, Tokens(count, 5))
    client.force_login(alice)
    assert re.search(r"bob 1,234 5 no price charlie 99 5 no price", words(client.get("/insights/")))
    client.force_login(charlie)
    page = words(client.get("/insights/"))
    assert "charlie 99 5 no price" in page
    assert "1,234" not in page


@on_servers
def test_a_limit_counts_what_was_used_today_also_in_deleted_conversations(bob: User, settings: Settings) -> None:
    made = Conversation.objects.create(owner=bob, title="x")
    answered(made, None, Tokens(60, 40))
    assert usage.over_limit(made) == ""
    settings.MODEL_PERSON_TOKENS = 101
    assert usage.over_limit(made) == ""
    settings.MODEL_PERSON_TOKENS = 100
    Conversation.objects.filter(pk=made.pk).update(tip=None)
    Message.objects.all().delete()
    Run.objects.all().delete()
    made.delete()
    next_one = Conversation.objects.create(owner=bob, title="y")
    assert usage.over_limit(next_one).startswith("You have used 100 tokens today; the daily limit is 100.")
