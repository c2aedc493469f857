"""The next steps on the start page of a new installation: for administrators, after the first approval, until done."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.agent.models import ModelEndpoint
from hitlchat.upstreams.models import UpstreamServer
from tests.conftest import MakeTool, tried

pytestmark = pytest.mark.django_db
LINK = re.compile(r"<li><div><b>([^<]+)</b>")


@pytest.fixture
def root(client: Client) -> User:
    """An administrator, signed in."""
    user = User.objects.create_superuser("root", password="a long enough pass phrase")
    client.force_login(user)
    return user


def steps(client: Client) -> list[str]:
    return LINK.findall(client.get("/").content.decode())


def test_they_are_shown_once_a_call_was_approved_until_they_are_dismissed(
    client: Client, root: User, make_tool: MakeTool
) -> None:
    assert steps(client) == []
    tried(make_tool(), root, text="hi")
    assert steps(client) == ["Connect a model", "Add a server", "Connect a client"]
    assert client.post("/chat/next-steps/dismiss").url == "/"  # type: ignore[attr-defined]
    assert steps(client) == []


def test_each_goes_once_it_is_done(client: Client, root: User, make_tool: MakeTool) -> None:
    tried(make_tool(), root, text="hi")
    ModelEndpoint.objects.create(name="local", base_url="http://127.0.0.1:9/v1", model="none")
    assert steps(client) == ["Add a server", "Connect a client"]
    UpstreamServer.objects.create(name="mail", transport="http", url="http://127.0.0.1:9/mcp")
    assert steps(client) == ["Connect a client"]
    Token.make(root, TokenKind.MCP)
    assert steps(client) == []


def test_people_who_are_no_administrators_have_none(client: Client, bob: User, make_tool: MakeTool) -> None:
    tried(make_tool(), bob, text="hi")
    client.force_login(bob)
    assert steps(client) == []
