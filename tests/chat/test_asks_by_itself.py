"""Conversations that ask by themselves, on their pages."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.agent.models import Conversation
from hitlchat.gate import oversight, ruling
from hitlchat.gate.models import Strictness
from tests.chat.conftest import words
from tests.conftest import signed_in
from tests.gate.conftest import entered
from tests.gate.granting import conditional, granted

__all__ = ["entered"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_is_chosen_at_its_top_and_said_there(client: Client, made: Conversation) -> None:
    page = client.get(f"/chat/{made.pk}")
    assert "This conversation asks: As the tools say. Choose" in page.content.decode()
    answer = client.post(f"/chat/{made.pk}/change", {"asks": "every"}, follow=True)
    assert "This conversation asks: About every call. Choose" in answer.content.decode()
    assert "Grants do not cover calls that this conversation itself asks about." in words(answer)
    client.post(f"/chat/{made.pk}/change", {"asks": "tools"})
    assert oversight.strictness_of(made.pk) == "tools"


def test_a_word_that_there_is_not_changes_nothing_and_is_said(client: Client, made: Conversation) -> None:
    answer = client.post(f"/chat/{made.pk}/change", {"asks": "never"}, follow=True)
    assert "Expected one of tools, risky, every." in words(answer)
    assert oversight.strictness_of(made.pk) == "tools"


def test_a_stored_word_that_is_not_known_is_said_to_ask_about_every_call(client: Client, made: Conversation) -> None:
    Strictness.objects.create(conversation_id=made.pk, asks="sometimes")
    page = client.get(f"/chat/{made.pk}")
    assert "The stored setting is not valid, so every call needs approval." in words(page)
    assert "This conversation asks: About every call. Choose" in page.content.decode()


def test_of_somebody_elses_nothing_is_changed(client: Client, charlie: User, made: Conversation) -> None:
    client.force_login(charlie)
    assert client.post(f"/chat/{made.pk}/change", {"asks": "every"}).status_code == 404
    assert not Strictness.objects.exists()


def test_a_grant_that_does_not_count_here_is_said_not_to(client: Client, bob: User, made: Conversation) -> None:
    granted(bob, conditional(), calls=5, conversation_id=made.pk)
    assert "refund runs without asking: 5 of 5 left" in words(client.get(f"/chat/{made.pk}"))
    ruling.change_strictness(made.pk, "risky", signed_in(bob))
    page = words(client.get(f"/chat/{made.pk}"))
    assert "The grant for refund does not apply here" in page
    assert "refund runs without asking" not in page


def test_a_change_to_less_is_shown_to_administrators_as_such(client: Client, alice: User, made: Conversation) -> None:
    client.post(f"/chat/{made.pk}/change", {"asks": "every"})
    client.post(f"/chat/{made.pk}/change", {"asks": "tools"})
    client.force_login(alice)
    page = words(client.get("/history/changes?area=conversations"))
    assert page.count("The approval setting of a conversation was changed") == 2
    assert page.count("asks less") == 1
    assert "Calls that need approval only in this conversation can run unseen." in page
