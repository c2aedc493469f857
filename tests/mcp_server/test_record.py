"""How whoever decided was known: signed in, or no more than a client's word; on the page, over REST, in the audit."""

from html import unescape
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.test import Client
from mcp_types import Implementation

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.chat.call_view import fate
from hitlchat.gate import decide
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.who import LONGEST_CLAIM
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask, say_yes
from tests.mcp_server.clients import connected, yes
from tests.mcp_server.conftest import TokenOf

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("audit:complete")]

HELLO = {"text": "hello"}
SNEAKY = "Claude\u202e”, signed in\n" + "x" * 200


@pytest.fixture
def browser(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


async def said_yes(era: str, url: str, token: str, name: str) -> None:
    async with connected(url, token, era, yes(), client_info=Implementation(name=name, version="1")) as client:
        assert not (await client.call_tool("refund", HELLO)).is_error


@pytest.mark.guarantee("SR-26")
async def test_a_clients_word_is_recorded_with_what_it_calls_itself_and_the_token(
    url: str, token_of: TokenOf, bob: User, tool: Tool, browser: Client, entered: list[ToolCall]
) -> None:
    token = await in_thread(token_of)(bob, name="my laptop")
    await said_yes("2025", url, token, "Claude Code")
    event = await AuditEvent.objects.aget(name="call.approved")
    assert (event.means, event.data["client"], event.data["token"]) == ("elicitation", "Claude Code", "my laptop")
    approval = await Approval.objects.aget()
    (shown,) = (await in_thread(browser.get)(f"/api/approvals/{approval.pk}")).json()["decisions"]
    assert (shown["person"], shown["means"], shown["client"], shown["token"]) == (
        "bob", "elicitation", "Claude Code", "my laptop",
    )  # fmt: skip
    words = 'Approved by bob, or so says the MCP client that calls itself "Claude Code" (token "my laptop").'
    assert words in await in_thread(page)(browser, approval)


async def test_what_a_client_calls_itself_is_cut_and_cannot_pass_for_our_words(
    url: str, token: str, tool: Tool, browser: Client, entered: list[ToolCall]
) -> None:
    await said_yes("2026", url, token, SNEAKY)
    decision = await Decision.objects.aget()
    assert (len(decision.client), decision.client[-1]) == (LONGEST_CLAIM, "…")
    shown = await in_thread(page)(browser, await Approval.objects.aget())
    assert "\u202e" not in shown
    assert 'itself "ClaudeU+202E”, signed in\\nxxx' in shown


@pytest.mark.guarantee("SR-26")
def test_a_signed_in_person_is_recorded_as_one(bob: User, tool: Tool, browser: Client) -> None:
    call = ask(bob, tool, kind="mcp")
    say_yes(bob, call)
    approval = approval_of(call)
    (shown,) = browser.get(f"/api/approvals/{approval.pk}").json()["decisions"]
    assert (shown["means"], shown["client"], shown["token"]) == ("session", None, None)
    assert "Approved by bob, signed in." in page(browser, approval)
    assert fate(call, approval).startswith("Approved by bob, signed in, after ")


def test_a_call_that_was_declined_says_by_whom_too(bob: User, tool: Tool, browser: Client) -> None:
    call = ask(bob, tool)
    decide.decline(approval_of(call).pk, signed_in(bob))
    assert "Declined by bob, signed in." in page(browser, approval_of(call))


def test_an_approver_token_is_recorded_by_its_name(bob: User, tool: Tool, browser: Client) -> None:
    call = ask(bob, tool, kind="api")
    secret = Token.make(bob, TokenKind.APPROVER, "a script")
    headers: Any = {"Authorization": f"Bearer {secret}"}
    answered = Client().post(
        f"/api/approvals/{approval_of(call).pk}/approve", "{}", "application/json", headers=headers
    )
    assert answered.json()["decisions"][0]["token"] == "a script"
    assert 'Approved by bob, with the approver token "a script".' in page(browser, approval_of(call))


def page(browser: Client, approval: Approval) -> str:
    """The text of the approval's page, without the marks around what cannot be seen."""
    answer = browser.get(f"/approvals/{approval.pk}")
    assert answer.status_code == 200
    return unescape(_without_marks(answer.content.decode()))


def _without_marks(html: str) -> str:
    return html.replace('<span class="esc">', "").replace("</span>", "")
