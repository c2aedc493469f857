"""The page of a person's own tokens: made once, listed without their text, limited, revoked."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.gate.models import Tool
from hitlchat.mcp_server import tokens
from hitlchat.mcp_server.models import McpToken

pytestmark = pytest.mark.django_db

URL = "/mcp-access/tokens"
FORM = {"name": "My laptop", "kind": "mcp", "expires": "90", "which": "all", "ceiling": "5"}
MCP = {"without_elicitation": "deny"}


@pytest.fixture
def page(client: Client, bob: User) -> Client:
    client.force_login(bob)
    return client


def made(page: Client, **fields: Any) -> str:
    """The text of a token made with the form."""
    response = page.post(URL, FORM | MCP | fields)
    assert response.status_code == 200, response.content.decode()
    return str(response.context["secret"])


def test_a_new_token_is_shown_once_and_kept_as_its_hash(page: Client, bob: User) -> None:
    response = page.post(URL, FORM | MCP)
    secret = response.context["secret"]
    assert response.content.decode().count(secret) > 1
    assert "no-store" in response["Cache-Control"]
    assert (secret[:9], Token.objects.get().digest) == ("hitl_mcp_", hashed(secret))
    later = page.get(URL).content.decode()
    assert "My laptop" in later
    assert secret not in later
    assert secret not in str(Token.objects.values()) + str(McpToken.objects.values())


def test_what_was_chosen_is_what_the_token_may_do(page: Client, tool: Tool) -> None:
    fields = {"which": "some", "tools": ["refund"], "ceiling": "3", "without_elicitation": "inbox", "expires": "7"}
    access = tokens.find(made(page, **fields))
    assert access is not None
    assert (access.tools, access.ceiling, access.without_elicitation) == (frozenset({"refund"}), 3, "inbox")
    expires = Token.objects.get().expires_at
    assert expires is not None
    assert timedelta(days=6) < expires - timezone.now() < timedelta(days=8)
    shown = page.get(URL).content.decode()
    assert "1 tool: <code>refund</code>" in shown
    assert "asked here while the call waits" in shown


def test_a_ceiling_of_zero_is_not_taken_for_none(page: Client) -> None:
    access = tokens.find(made(page, ceiling="0"))
    assert access is not None
    assert access.ceiling == 0


def test_a_token_lasts_until_the_end_of_its_day_or_for_ever(page: Client) -> None:
    last = timezone.localdate() + timedelta(days=3)
    made(page, expires="date", until=last.isoformat())
    made(page, expires="never")
    latest, first = Token.objects.order_by("-pk")
    assert latest.expires_at is None
    assert first.expires_at is not None
    assert timezone.localtime(first.expires_at).date() == last


@pytest.mark.parametrize("kind", ["api", "approver"])
def test_a_token_of_another_kind_has_a_name_and_an_end_and_no_limits(kind: str, page: Client) -> None:
    secret = made(page, kind=kind, which="some", ceiling="2")
    token = Token.find(secret)
    assert token is not None
    assert (token.kind, token.name, McpToken.objects.count()) == (kind, "My laptop", 0)
    assert page.get("/api/conversations", headers={"Authorization": f"Bearer {secret}"}).status_code != 401
    assert Token.objects.get().last_used_at is not None
    Token.objects.update(expires_at=timezone.now())
    assert page.get("/api/conversations", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert "Expired" in page.get(URL).content.decode()


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "name", "This field is required."),
    ({"name": "x" * 81}, "name", "at most 80 characters"),
    ({"kind": "root"}, "kind", "root is not one of"),
    ({"expires": "date"}, "until", "Enter the last day"),
    ({"expires": "date", "until": "soon"}, "until", "Expected a date such as"),
    ({"expires": "date", "until": "2020-01-01"}, "until", "Expected a day from today to 10 years from now."),
    ({"expires": "date", "until": "9999-12-31"}, "until", "Expected a day from today to 10 years from now."),
    ({"which": "some"}, "tools", "Choose at least one tool"),
    ({"which": "some", "tools": ["gone"]}, "tools", "gone is no longer offered"),
    ({"which": "some", "tools": ["refund"], "ceiling": "0"}, "tools", "refund is L2, above the limit L0."),
    ({"ceiling": "6"}, "ceiling", "6 is not one of"),
    ({"without_elicitation": "allow"}, "without_elicitation", "allow is not one of"),
]


def test_a_mistake_is_named_at_its_field_and_makes_no_token(page: Client, tool: Tool) -> None:
    for fields, field, said in MISTAKES:
        response = page.post(URL, FORM | MCP | fields)
        assert response.status_code == 422, fields
        assert said in str(response.context["form"].errors[field])
        assert "problem" in response.content.decode(), fields
    assert not Token.objects.exists()


def test_the_list_tells_of_each_token_what_it_can_use_now(page: Client, bob: User, tool: Tool) -> None:
    tokens.make_mcp(bob, "some", tools=["gone", "refund"])
    tokens.make_mcp(bob, "low", ceiling=0, tools=["refund"])
    tokens.make_mcp(bob, "all", ceiling=4)
    shown = page.get(URL).content.decode()
    assert "1 tool: <code>refund</code>" in shown
    assert "Chosen, but not available now: <code>gone</code>" in shown
    assert "0 tools, up to" in shown
    assert "(1 now)" in shown


def test_everyone_sees_their_own_tokens_only(page: Client, bob: User, charlie: User) -> None:
    tokens.make_mcp(charlie, "of charlie")
    for kind in TokenKind:
        Token.make(bob, kind, f"the {kind} one")
    shown = page.get(URL).content.decode()
    assert all(f"the {kind} one" in shown for kind in TokenKind)
    assert "of charlie" not in shown


def test_a_name_is_shown_as_text(page: Client, bob: User) -> None:
    tokens.make_mcp(bob, "<b>x\u202ey")
    shown = page.get(URL).content.decode()
    assert "&lt;b&gt;x" in shown
    assert "\u202e" not in shown
