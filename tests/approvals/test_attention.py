"""A page tells what came into sight, and everyone reads on the record how long an answer took (SR-42)."""

import html
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.accounts.models import Token, TokenKind
from hitlchat.gate.models import Approval, AuditEvent, Decision, Showing, Tool
from tests.conftest import MakeTool
from tests.gate.asking import approval_of, ask

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "A long note that nobody reads to its end at once. " * 40


@pytest.fixture
def tool(make_tool: MakeTool) -> Tool:
    return make_tool("echo")


def items(*approvals: Approval) -> dict[str, Any]:
    return {"items": [f"{each.pk}:{each.digest}" for each in approvals]}


def text_of(page: Client, approval: Approval) -> str:
    return html.unescape(page.get(f"/approvals/{approval.pk}").content.decode())


def test_a_page_tells_of_every_card_that_came_into_sight_and_a_get_tells_nothing(
    page: Client, bob: User, tool: Tool
) -> None:
    one, other = (approval_of(ask(bob, tool, {"text": text})) for text in ("one", "other"))
    assert f'data-item="{one.pk}:{one.digest}"' in text_of(page, one)
    assert page.get("/approvals/shown", items(one)).status_code == 405
    assert not Showing.objects.exists()
    for _ in range(2):
        assert page.post("/approvals/shown", items(one, other)).status_code == 204
    assert Showing.objects.count() == AuditEvent.objects.filter(name="call.shown", actor=bob).count() == 2


def test_what_is_not_theirs_not_what_waits_or_makes_no_sense_is_passed_over(
    page: Client, charlie: User, bob: User, tool: Tool
) -> None:
    theirs, own = approval_of(ask(charlie, tool)), approval_of(ask(bob, tool))
    odd = [f"{theirs.pk}:{theirs.digest}", f"{own.pk}:{'0' * 64}", str(own.pk), "x:y", "", f"{uuid4()}:{own.digest}"]
    assert page.post("/approvals/shown", {"items": odd}).status_code == 204
    assert Client().post("/approvals/shown", items(own)).status_code == 302
    assert Client(enforce_csrf_checks=True).post("/approvals/shown", items(own)).status_code == 403
    assert not Showing.objects.exists()


@pytest.mark.guarantee("SR-42")
def test_the_mark_is_on_the_record_and_not_hidden_from_its_person(page: Client, bob: User, tool: Tool) -> None:
    approval = approval_of(ask(bob, tool, {"text": LONG}))
    form = text_of(page, approval)
    assert '<input type="hidden" name="opened" value="no">' in form
    with time_machine.travel(timezone.now(), tick=False):
        page.post("/approvals/shown", items(approval))
        Showing.objects.update(at=timezone.now() - timedelta(seconds=0.5))
        page.post(f"/approvals/{approval.pk}/decide", {"verdict": "approve", "digest": approval.digest, "opened": "no"})
    seen = text_of(page, approval)
    assert "(about" in seen
    assert "Not all folded text was opened." in seen
    answer = page.get(f"/api/approvals/{approval.pk}").json()["decisions"][0]
    assert (answer["hurried"], answer["opened"]) == (True, False)
    assert answer["shownForMs"] == 500
    assert answer["firstShownAt"] == page.get(f"/api/calls/{approval.call_id}").json()["decisions"][0]["firstShownAt"]


def test_where_nothing_is_folded_nothing_is_claimed(page: Client, bob: User, tool: Tool) -> None:
    approval = approval_of(ask(bob, tool))
    assert 'name="opened"' not in text_of(page, approval)
    page.post(f"/approvals/{approval.pk}/decide", {"verdict": "approve", "digest": approval.digest, "opened": "maybe"})
    assert Decision.objects.get().opened is None
    assert "Not shown by hitlchat before the answer." in text_of(page, approval)


def test_over_rest_it_counts_as_shown_to_who_may_decide_by_that_token(client: Client, bob: User, tool: Tool) -> None:
    approval = approval_of(ask(bob, tool))
    for kind, means in ((TokenKind.API, []), (TokenKind.APPROVER, ["token"])):
        token = {"Authorization": f"Bearer {Token.make(bob, kind)}"}
        for _ in range(2):
            assert client.get(f"/api/approvals/{approval.pk}", headers=token).status_code == 200
        assert [each.means for each in Showing.objects.all()] == means
