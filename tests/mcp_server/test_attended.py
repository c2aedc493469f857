"""Trusted clients: an administrator marks a token, and only such a client's word may count as a yes."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async as in_thread
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django import Settings

from hitlchat.accounts.models import Token, TokenKind, hashed
from hitlchat.gate import decide
from hitlchat.gate.actor import Actor
from hitlchat.gate.models import Approval, AuditEvent, Decision, Tool, ToolCall
from hitlchat.gate.status import Status
from hitlchat.mcp_server import tokens
from tests.conftest import signed_in
from tests.gate.asking import approval_of, ask_over_mcp, recording, word
from tests.mcp_server.clients import Raw, answer, call_that_is

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.guarantee("gate:only-people")]

HELLO = {"text": "hello"}
both_eras = pytest.mark.parametrize("era", ["2025", "2026"])


@pytest.fixture
def unmarked(bob: User) -> str:
    """A script's token."""
    return tokens.make_mcp(bob)


def test_the_database_keeps_the_mark_off_tokens_of_other_kinds(bob: User) -> None:
    for kind in (TokenKind.API, TokenKind.APPROVER):
        secret = Token.make(bob, kind)
        with pytest.raises(IntegrityError), transaction.atomic():
            Token.objects.filter(digest=hashed(secret)).update(attended=True)


# -- Clients ----------------------------------------------------------------------------------------------------------


@pytest.mark.guarantee("gate:no-yes-no-run")
async def test_a_script_cannot_answer_its_own_question(
    url: str, unmarked: str, db: None, bob: User, entered: list[ToolCall]
) -> None:
    await in_thread(recording)(risk_level=0)
    script = Raw(url, unmarked, elicitation={"form": {}})
    calling = asyncio.create_task(script.call())
    await call_that_is(Status.WAITING)
    assert entered == []
    await in_thread(decide.approve)((await Approval.objects.aget()).pk, signed_in(bob))
    result = (await calling)["result"]
    assert (result["content"][0]["text"], len(entered)) == ("done", 1)
    assert (await Decision.objects.aget()).means == "session"


async def test_a_mark_that_comes_later_lets_no_waiting_question_through(
    url: str, unmarked: str, tool: Tool, entered: list[ToolCall], settings: Settings
) -> None:
    settings.MCP_INBOX_SECONDS = 0  # its answer comes while the call still waits
    client = Raw(url, unmarked, elicitation={"form": {}, "url": {}})
    state = (await client.call())["result"]["requestState"]
    await in_thread(Token.objects.update)(attended=True)
    result = (await client.call(**answer(state)))["result"]
    assert (result["_meta"]["hitlchat/status"], entered, await Decision.objects.acount()) == ("waiting", [], 0)


@pytest.mark.parametrize("marked", [True, False])
def test_the_card_and_rest_say_whether_the_client_may_pass_on_the_answer(
    marked: bool, bob: User, tool: Tool, client: Client
) -> None:
    call = ask_over_mcp(bob, tool, attended=marked)
    client.force_login(bob)
    card = client.get(f"/approvals/{approval_of(call).pk}").content.decode()
    told = client.get(f"/api/approvals/{approval_of(call).pk}").json()["whoDecides"]
    said = "bob can also answer in the MCP client that asks"
    assert (said in card, said in told) == (marked, marked)


# -- Who says so ------------------------------------------------------------------------------------------------------


def marks() -> list[tuple[str, str, int | None, bool]]:
    rows = AuditEvent.objects.filter(name__contains="marked")
    return [(event.name, event.means, event.actor_id, event.data["attended"]) for event in rows]


@pytest.mark.guarantee("audit:complete")
def test_an_administrator_marks_and_unmarks_on_the_page_and_both_are_on_record(
    unmarked: str, alice: User, client: Client
) -> None:
    client.force_login(alice)
    token = Token.objects.get()
    for said in ("1", "1", "0"):
        assert client.post(f"/mcp-access/tokens/{token.pk}/attended", {"attended": said}).status_code == 302
        token.refresh_from_db()
        assert token.attended is (said == "1")
    page = client.get("/mcp-access/tokens").content.decode()
    assert "The client is no longer trusted." in page
    assert marks() == [
        ("token.marked_attended", "session", alice.pk, True),
        ("token.unmarked_attended", "session", alice.pk, False),
    ]


def test_an_administrator_may_mark_their_own_when_they_make_it(alice: User, client: Client) -> None:
    client.force_login(alice)
    form = {"kind": "mcp", "name": "mine", "expires": "30", "which": "all", "attended_by_person": "on"}
    assert client.post("/mcp-access/tokens", form).status_code == 200
    assert Token.objects.get().attended is True
    assert marks() == [("token.marked_attended", "session", alice.pk, True)]


@pytest.mark.parametrize("owner", ["bob", "alice"])
def test_nobody_else_can_mark_one_not_even_its_owner(owner: str, alice: User, bob: User, client: Client) -> None:
    tokens.make_mcp(User.objects.get(username=owner))
    client.force_login(bob)
    token = Token.objects.get()
    assert client.post(f"/mcp-access/tokens/{token.pk}/attended", {"attended": "1"}).status_code == 403
    form = {"kind": "mcp", "name": "mine", "expires": "30", "which": "all", "attended_by_person": "on"}
    assert client.post("/mcp-access/tokens", form).status_code == 200
    page = client.get("/mcp-access/tokens").content.decode()
    assert ("attended_by_person" in page, "/attended" in page) == (False, False)
    assert (Token.objects.filter(attended=True).exists(), marks()) == (False, [])


def test_no_program_can_mark_one_in_an_administrators_name(unmarked: str, alice: User) -> None:
    for means in ("token", "elicitation", "system"):
        with pytest.raises(tokens.OnlyAdministrators):
            tokens.trust(Token.objects.get().pk, Actor(alice.pk, means))
        assert not Token.objects.get().attended


@pytest.mark.parametrize("change", [{"is_superuser": False}, {"is_active": False}], ids=str)
def test_nor_can_who_is_no_administrator_any_more(change: dict[str, bool], unmarked: str, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(**change)
    with pytest.raises(tokens.OnlyAdministrators):
        tokens.trust(Token.objects.get().pk, signed_in(alice))


def test_a_mark_is_one_or_the_other(unmarked: str, alice: User, client: Client) -> None:
    client.force_login(alice)
    address = f"/mcp-access/tokens/{Token.objects.get().pk}/attended"
    for said in ("", "yes", "2"):
        assert client.post(address, {"attended": said}).status_code == 400


def test_what_is_no_mcp_token_cannot_be_marked(alice: User, client: Client) -> None:
    Token.make(alice, TokenKind.API)
    client.force_login(alice)
    for token_id in (Token.objects.get().pk, 99):
        assert client.post(f"/mcp-access/tokens/{token_id}/attended", {"attended": "1"}).status_code == 404


def test_by_command_an_administrator_has_to_be_named(alice: User, bob: User, capsys: Any) -> None:
    making = ("create_token", "bob", "--kind", "mcp", "--attended")
    for by in ((), ("--by", "bob"), ("--by", "nobody")):
        with pytest.raises(CommandError, match="--by"):
            call_command(*making, *by)
    assert not Token.objects.exists()
    call_command(*making, "--by", "alice")
    token = Token.objects.get()
    call_command("create_token", "bob", "--list")
    assert "trusted client" in capsys.readouterr().out
    call_command("create_token", "bob", "--unmark", str(token.pk), "--by", "alice")
    call_command("create_token", "bob", "--mark", str(token.pk), "--by", "alice")
    assert [name for name, *_ in marks()] == [
        "token.marked_attended", "token.unmarked_attended", "token.marked_attended",
    ]  # fmt: skip
    with pytest.raises(CommandError, match="only for --kind mcp"):
        call_command("create_token", "bob", "--kind", "api", "--attended", "--by", "alice")
    with pytest.raises(CommandError, match="has no MCP token"):
        call_command("create_token", "alice", "--mark", str(token.pk), "--by", "alice")


def test_in_the_inspector_only_administrators_are_offered_it(alice: User, bob: User, client: Client) -> None:
    for user, offered in ((bob, False), (alice, True)):
        client.force_login(user)
        page = client.get("/mcp-access/inspector").content.decode()
        assert ('name="attended"' in page) is offered


# -- What was answered so ---------------------------------------------------------------------------------------------


def test_what_a_clients_word_decided_is_found_in_the_history_and_over_rest(
    bob: User, tool: Tool, client: Client, settings: Settings
) -> None:
    by_word, signed = ask_over_mcp(bob, tool), ask_over_mcp(bob, tool)
    decide.approve(approval_of(by_word).pk, word(by_word))
    decide.approve(approval_of(signed).pk, signed_in(bob))
    client.force_login(bob)
    for means, call in (("elicitation", by_word), ("session", signed)):
        found = client.get("/api/calls", {"means": means}).json()
        assert [each["id"] for each in found] == [str(call.pk)]
        page = client.get("/history/", {"means": means}).content.decode()
        assert [str(each.pk) in page for each in (by_word, signed)] == [each is call for each in (by_word, signed)]
    assert client.get("/api/calls", {"means": "telepathy"}).status_code == 422
