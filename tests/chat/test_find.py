"""Finding by Ctrl+K: pages, conversations and tools, each to whom it is open."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from hitlchat.agent import conversations
from hitlchat.agent.models import Conversation
from hitlchat.chat import pages

pytestmark = pytest.mark.django_db


def found(person: User, words: str = "") -> dict[str, str]:
    """Names and addresses of what this person finds, without the documentation, which everybody may read."""
    client = Client()
    client.force_login(person)
    page = client.get("/find", {"q": words}).content.decode()
    hits = re.findall(r'<a href="([^"]+)"><span class="clip">([^<]+)</span>', page)
    return {name: url for url, name in hits if not url.startswith("/docs/")}


def test_pages_are_found_by_those_who_may_open_them(alice: User, bob: User) -> None:
    assert found(alice, "composed")["Composed tools"] == reverse("servers:drawer")
    assert found(bob, "composed") == {}
    assert found(bob, "account") == {"Your account": "/account"}


def test_every_page_that_is_offered_opens(alice: User, bob: User) -> None:
    for person in (bob, alice):
        client = Client()
        client.force_login(person)
        assert [each.name for each in pages.open_to(person) if client.get(reverse(each.url)).status_code != 200] == []


def test_conversations_are_found_by_title_and_by_nobody_else(bob: User, charlie: User) -> None:
    made = Conversation.objects.create(owner=bob)
    conversations.change(made, title="Parcels of May")
    assert found(bob, "parc") == {"Parcels of May": f"/chat/{made.pk}"}
    assert "Parcels of May" in found(bob)
    assert found(charlie, "parc") == {}


def test_what_finds_nothing_says_so(bob: User, client: Client) -> None:
    client.force_login(bob)
    for words in ["zzz nothing", '"', "%", "x" * 500]:
        assert "Nothing contains all of these words." in client.get("/find", {"q": words}).content.decode()


def test_it_is_for_those_who_are_signed_in(client: Client) -> None:
    assert client.get("/find").status_code == 302
