"""The Studio's pages of agents."""

from django.contrib.auth.models import User
from django.test import Client


def test_without_agents_the_page_says_how_to_begin(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    assert "No agents yet" in client.get("/studio/agents/").content.decode()
