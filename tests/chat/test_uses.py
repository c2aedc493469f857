"""The page on which a person says what a conversation uses."""

from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.agent import conversations, endpoints
from hitlchat.agent.endpoints import Draft
from hitlchat.agent.models import Conversation, OwnDefaults
from hitlchat.gate import oversight
from hitlchat.gate.models import AuditEvent, Strictness
from tests.chat.conftest import words
from tests.conftest import signed_in

pytestmark = pytest.mark.django_db(transaction=True)

TYPED = {"instructions": "Be brief.", "temperature": "0.5", "max_tokens": "300", "max_turns": "5"}


def held(made: Conversation) -> list[Any]:
    made.refresh_from_db()
    return [made.instructions, made.temperature, made.max_tokens, made.max_turns]


def test_it_is_saved_for_this_conversation_alone(client: Client, bob: User, made: Conversation) -> None:
    assert f"/chat/{made.pk}/uses" in client.get(f"/chat/{made.pk}").content.decode()
    answer = client.post(f"/chat/{made.pk}/uses", TYPED, follow=True)
    assert "Saved. Applies from the next answer." in words(answer)
    assert held(made) == ["Be brief.", 0.5, 300, 5]
    assert conversations.create(bob).instructions == ""
    client.post(f"/chat/{made.pk}/uses", dict.fromkeys(TYPED, ""))
    assert held(made) == ["", None, None, None]


def test_new_conversations_begin_so_where_that_is_ticked(client: Client, bob: User, made: Conversation) -> None:
    answer = client.post(f"/chat/{made.pk}/uses", TYPED | {"begin_so": "on"}, follow=True)
    assert "to new conversations" in words(answer)
    client.post("/chat/new", {})
    new = Conversation.objects.exclude(pk=made.pk).get()
    assert held(new) == held(made)


def test_what_does_not_fit_is_said_at_its_field_and_nothing_is_saved(client: Client, made: Conversation) -> None:
    for name, value in [
        ("temperature", "2.5"),
        ("temperature", "nan"),
        ("max_tokens", "0"),
        ("max_turns", "101"),
        ("max_turns", "many"),
        ("instructions", "x" * 10_001),
        ("instructions", "\x00"),
    ]:
        answer = client.post(f"/chat/{made.pk}/uses", TYPED | {"begin_so": "on", name: value})
        assert answer.status_code == 422
        assert f'id="id_{name}_error"' in answer.content.decode()
        assert held(made) == ["", None, None, None]
        assert not OwnDefaults.objects.exists()


def test_it_says_what_holds_where_a_field_is_empty(client: Client, made: Conversation, settings: Settings) -> None:
    page = words(client.get(f"/chat/{made.pk}/uses"))
    assert "no temperature, no limit on answer tokens, 18 turns per run" in page
    settings.MODEL_TEMPERATURE, settings.MODEL_MAX_TOKENS, settings.MODEL_TURNS = 0.7, 4000, 30
    page = words(client.get(f"/chat/{made.pk}/uses"))
    assert "temperature 0.7, 4,000 tokens per answer, 30 turns per run" in page


def test_what_it_asks_about_is_chosen_here_too_and_for_new_ones(client: Client, bob: User, made: Conversation) -> None:
    page = f"/chat/{made.pk}/uses"
    client.post(page, TYPED | {"asks": "risky"})
    client.post(page, TYPED)
    assert (oversight.strictness_of(made.pk), oversight.strictness_of(conversations.create(bob).pk)) == (
        "risky",
        "tools",
    )
    assert client.post(page, TYPED | {"asks": "never", "begin_so": "on"}).status_code == 422
    for word in ("every", "risky"):
        client.post(page, TYPED | {"asks": word, "begin_so": "on"})
        assert oversight.strictness_of(conversations.create(bob).pk) == word
    told = [event.data for event in AuditEvent.objects.filter(name="conversation.default_asks_changed").order_by("pk")]
    assert [(each["person"], each["after"], "weaker" in each) for each in told] == [
        ("bob", {"asks": "every"}, False),
        ("bob", {"asks": "risky"}, True),
    ]


def test_the_model_is_chosen_here_too_and_for_new_ones(
    client: Client, bob: User, alice: User, made: Conversation
) -> None:
    page = f"/chat/{made.pk}/uses"
    # With one model there is nothing to choose.
    assert 'name="route"' not in client.get(page).content.decode()
    draft = Draft("shop", "https://models.example/v1", "large", other_models=("small",))
    shop = endpoints.create(draft, signed_in(alice))
    client.post(page, TYPED | {"route": "shop/small"})
    made.refresh_from_db()
    assert (made.endpoint, made.model, conversations.create(bob).endpoint) == (shop, "small", None)
    assert '<option value="shop/small" selected>' in client.get(page).content.decode()
    client.post(page, TYPED | {"route": "shop/large", "begin_so": "on"})
    client.post("/chat/new", {})
    begun = Conversation.objects.filter(endpoint=shop, model="large").exclude(pk=made.pk)
    assert begun.count() == 1
    assert '<option value="shop/large" selected>' in client.get("/").content.decode()
    # What the installation has is left to it.
    endpoints.begin_with(shop.pk, signed_in(alice))
    client.post(page, TYPED | {"route": "shop/large", "begin_so": "on"})
    assert not OwnDefaults.objects.get().chooses_model
    assert client.post(page, TYPED | {"route": "shop/none"}).status_code == 422


def test_a_model_that_is_gone_stays_until_another_is_chosen(client: Client, alice: User, made: Conversation) -> None:
    draft = Draft("shop", "https://models.example/v1", "large")
    shop = endpoints.create(draft, signed_in(alice))
    endpoints.create(replace(draft, name="office"), signed_in(alice))
    Conversation.objects.update(endpoint=shop)
    endpoints.remove(shop.pk, signed_in(alice))
    page = f"/chat/{made.pk}/uses"
    assert "shop · large (no longer available)" in words(client.get(page))
    assert client.post(page, TYPED | {"route": "", "begin_so": "on"}).status_code == 302
    made.refresh_from_db()
    assert (made.endpoint, OwnDefaults.objects.get().chooses_model) == (shop, False)


def test_a_stored_word_that_is_not_known_is_shown_as_every_call(client: Client, made: Conversation) -> None:
    Strictness.objects.create(conversation_id=made.pk, asks="sometimes")
    assert '<option value="every" selected>' in client.get(f"/chat/{made.pk}/uses").content.decode()


def test_somebody_elses_is_not_there(client: Client, charlie: User, made: Conversation) -> None:
    client.force_login(charlie)
    assert client.get(f"/chat/{made.pk}/uses").status_code == 404
    assert client.post(f"/chat/{made.pk}/uses", TYPED).status_code == 404


def test_empty_instructions_show_those_of_the_installation(
    client: Client, made: Conversation, settings: Settings
) -> None:
    settings.MODEL_INSTRUCTIONS = "Answer in <Latin>."
    assert 'placeholder="Answer in &lt;Latin&gt;."' in client.get(f"/chat/{made.pk}/uses").content.decode()
