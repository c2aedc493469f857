"""What the page of a call shows once it is settled, and how empty texts and patterns are changed."""

import html
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.chat import fragments
from hitlchat.gate import decide
from hitlchat.gate.batch import Outcome
from hitlchat.gate.models import Approval
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import MakeTool, caller, signed_in

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
REFUND = '''def run(order: str, reason: str = "") -> str:
    """Pay money back."""
    return order
'''


@pytest.fixture
def approval(make_tool: MakeTool, bob: User) -> Approval:
    make_tool("refund", code=REFUND)
    return asked(bob)


def asked(user: User, kind: Any = "chat") -> Approval:
    call = async_to_sync(submit)(CallRequest("refund", {"order": "A-1"}, caller(user, kind)))
    return Approval.objects.select_related("call").get(call=call)


def text_of(page: Client, approval: Approval) -> str:
    return html.unescape(page.get(f"/approvals/{approval.pk}").content.decode())


def test_a_settled_call_is_shown_as_it_was_asked_and_as_it_was_changed(
    page: Client, approval: Approval, bob: User
) -> None:
    edited = {"order": "A-2", "reason": "late"}
    decide.approve(approval.pk, signed_in(bob), digest=approval.digest, edited=edited)
    shown = text_of(page, approval)
    assert '"order": "A-1"' in shown
    assert '"order": "A-2"' in shown
    assert "Arguments as they were changed and approved" in shown
    assert "Asked because this tool asks every time." in shown
    assert approval.digest in shown
    assert str(approval.call.created_at.year) in shown
    assert 'href="/approvals/"' in shown


def test_after_the_answer_it_is_said_how_an_mcp_client_learns_of_it(
    page: Client, approval: Approval, bob: User
) -> None:
    over_mcp = asked(bob, "mcp")
    for each in (approval, over_mcp):
        decide.decline(each.pk, signed_in(bob))
    assert "The client learns of it by itself" in text_of(page, over_mcp)
    assert "The client learns of it by itself" not in text_of(page, approval)


def test_a_fragment_for_another_page_has_only_the_outcome(page: Client, approval: Approval, bob: User) -> None:
    decide.decline(approval.pk, signed_in(bob))
    there = HTMX | {"HX-Current-URL": "http://x/studio/tools/refund"}
    assert approval.digest not in page.get(f"/approvals/{approval.pk}/outcome", headers=there).content.decode()


def test_an_empty_text_is_changed_in_a_field_and_may_stay_empty(page: Client, approval: Approval) -> None:
    path = f"/approvals/{approval.pk}/edit"
    form = page.get(path, headers=HTMX).content.decode()
    assert 'name="arg-reason"' in form
    assert "As JSON instead" in form
    typed = {"step": "review", "arg-order": "A-2", "arg-reason": ""}
    review = html.unescape(page.post(path, typed, headers=HTMX).content.decode())
    assert "The other argument stays as asked." in review


def test_from_json_there_is_always_a_way_back_to_fields(page: Client, approval: Approval) -> None:
    path = f"/approvals/{approval.pk}/edit"
    for typed in ({"step": "json", "arg-order": "A-2"}, {"step": "review", "json": "{"}):
        assert "As fields instead" in page.post(path, typed, headers=HTMX).content.decode()


@pytest.mark.parametrize("counted", [True, False])
def test_the_outcomes_of_several_answers_are_a_warning_only_if_one_did_not_count(
    approval: Approval, counted: bool
) -> None:
    told = [Outcome(approval.pk, "one", "Approved.", True), Outcome(approval.pk, "two", "Said.", counted)]
    assert ("all-counted" in fragments.outcomes(told)) == counted
