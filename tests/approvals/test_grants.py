"""The form of a grant on a card, the page of the grants, and the console."""

import html
import json
import re
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client

from hitlchat.gate.grants.scope import Scope
from hitlchat.gate.models import Approval, DecidedBy, Decision, Grant, Tool, new_id
from hitlchat.gate.status import Status
from tests.gate.asking import approval_of, ask, fresh, recording
from tests.gate.deciding_people import members, rule
from tests.gate.granting import conditional, granted, runs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def approval(bob: User) -> Approval:
    return approval_of(ask(bob, conditional()))


def form(page: Client, approval: Approval, **typed: Any) -> str:
    return page.get(f"/approvals/{approval.pk}/grant", {"over": "http"} | typed).content.decode()


def offered(text: str) -> str:
    """The scope that the button stands for."""
    (found,) = re.findall(r'name="grant" value="([^"]*)"', text)
    return html.unescape(found)


@pytest.mark.guarantee("SR-43")
def test_the_scope_is_read_in_words_before_the_click_and_the_click_gives_exactly_that(
    bob: User, page: Client, approval: Approval
) -> None:
    assert "Approve, and run refund without asking for the next 5 calls in this conversation, until " in form(
        page, approval
    )
    typed = {
        "calls": "2",
        "minutes": "",
        "thisConversation": "on",
        "sameArguments": "on",
        "condition": "args['amount'] < 5",
    }
    text = form(page, approval, part="offer", **typed)
    assert (
        "Approve, and run refund without asking with exactly these arguments for the next 2 calls in this "
        "conversation, while args[&#x27;amount&#x27;] &lt; 5 holds."
    ) in text
    assert not Decision.objects.exists()
    page.post(
        f"/approvals/{approval.pk}/decide", {"verdict": "approve", "digest": approval.digest, "grant": offered(text)}
    )
    grant = Grant.objects.get()
    assert (grant.calls, grant.until, grant.condition, bool(grant.arguments_digest)) == (
        2,
        None,
        "args['amount'] < 5",
        True,
    )
    assert grant.conversation_id == approval.call.conversation_id
    assert f"/grants/#grant-{grant.pk}" in page.get(f"/approvals/{approval.pk}").content.decode()


def test_until_when_is_what_was_read_and_what_is_wrong_stands_there_without_a_button(
    page: Client, approval: Approval
) -> None:
    for typed, said in (({"sameArguments": "on"}, "needs a limit"), ({"calls": "x"}, "whole numbers")):
        text = form(page, approval, part="offer", **typed)
        assert said in text
        assert "data-approve" not in text
    scope = offered(form(page, approval))
    page.post(f"/approvals/{approval.pk}/decide", {"verdict": "approve", "digest": approval.digest, "grant": scope})
    until = Grant.objects.get().until
    assert until is not None
    assert json.loads(scope)["until"] == until.isoformat()


def test_why_no_grant_can_be_given_stands_on_the_card_and_in_the_form(page: Client, alice: User, bob: User) -> None:
    tool, others = conditional(), Group.objects.create(name="others")
    members(others, "dora")
    rule(tool, alice, decided_by=DecidedBy.REQUESTER, escalate_to=others, escalate_after_seconds=60)
    for asked_of, on_card, in_form in (
        (recording("plain"), "can\u2019t be allowed in advance", "This tool asks every time"),
        (conditional(name="wipe", risk_level=5), "L5 calls need approval every time", ""),
        (
            tool,
            "has its own rules about who decides, so its calls can\u2019t be allowed in advance",
            "so no grant applies",
        ),
    ):
        found = approval_of(ask(bob, asked_of))
        assert on_card in page.get(f"/approvals/{found.pk}").content.decode()
        assert in_form in form(page, found)


@pytest.mark.guarantee("gate:no-yes-no-run")
def test_a_form_with_a_grant_that_is_none_decides_nothing(
    subtests: pytest.Subtests, page: Client, approval: Approval
) -> None:
    for grant in [
        "",
        "{}",
        "null",
        "[]",
        '{"calls": 5}',
        "5",
        [Scope(calls=1).as_json, Scope(calls=100).as_json],
        Scope(calls=1).as_json.replace("1", "true"),
    ]:
        with subtests.test(grant=grant):
            sent = {"verdict": "approve", "digest": approval.digest, "grant": grant}
            assert page.post(f"/approvals/{approval.pk}/decide", sent).status_code == 409
            edited = {"edited": "{}", "shown": "", **sent, "grant": Scope(calls=1).as_json}
            assert page.post(f"/approvals/{approval.pk}/decide", edited).status_code == 409
            assert (fresh(approval.call).status, Grant.objects.count()) == (Status.WAITING, 0)


def test_the_page_says_what_runs_unasked_and_revokes_at_once(bob: User, page: Client) -> None:
    assert "No active grants" in page.get("/grants/").content.decode()
    tool = conditional()
    grant = granted(bob, tool, calls=3, this_conversation=True)
    assert runs(bob, tool)
    text = page.get("/grants/").content.decode()
    assert "refund runs without asking for the next 3 calls in one conversation." in text
    assert "used 1 of 3" in text
    assert page.get(f"/grants/{grant.pk}/revoke").status_code == 405
    told = page.post(f"/grants/{grant.pk}/revoke", follow=True).content.decode()
    assert "refund asks again" in told
    assert "bob revoked it" in told
    assert not runs(bob, tool)


def test_people_see_and_revoke_their_own_and_administrators_all(
    alice: User, bob: User, charlie: User, client: Client
) -> None:
    grant = granted(bob, conditional(), minutes=5)
    client.force_login(charlie)
    assert client.get(f"/approvals/{grant.approval_id}/grant").status_code == 404
    assert "refund" not in client.get("/grants/").content.decode()
    assert client.post(f"/grants/{grant.pk}/revoke").status_code == 404
    client.force_login(alice)
    assert "refund" in client.get("/grants/").content.decode()
    client.post(f"/grants/{grant.pk}/revoke")
    assert Grant.objects.get().ended_by == alice


def console(*words: Any) -> str:
    out = StringIO()
    call_command("grants", *words, stdout=out)
    return out.getvalue()


def test_the_operator_lists_and_revokes_on_the_console(bob: User) -> None:
    assert "No active grants." in console("list")
    tool: Tool = conditional()
    grant = granted(bob, tool, calls=3)
    assert runs(bob, tool)
    assert "bob\tactive\trefund runs without asking for the next 3 calls.\tused 1 of 3" in console("list")
    assert "asks again" in console("revoke", str(grant.pk))
    assert not runs(bob, tool)
    assert "No active grants." in console("list", "--user", "bob")
    (told,) = json.loads(console("list", "--all", "--json"))
    assert (told["id"], told["state"]) == (str(grant.pk), "revoked")
    with pytest.raises(CommandError, match="no grant with this id"):
        console("revoke", str(new_id()))
