"""The value that a card asks for after quick yeses, by plain HTTP."""

from html import unescape

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate.models import Approval, Decision
from hitlchat.gate.status import Status
from tests.gate.asking import approval_of, ask, recording, say_yes, status

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def approval(bob: User, settings: LazySettings) -> Approval:
    """A call that waits for bob, whose last yes was quick."""
    settings.HITL_QUICK_YESES = 1
    say_yes(bob, ask(bob, recording("before")))
    Decision.objects.update(hurried=True)
    return approval_of(ask(bob, recording("pay", mode="CONDITIONAL", risk_level=3)))


def answer(page: Client, approval: Approval, **fields: str) -> str:
    sent = {"verdict": "approve", "digest": approval.digest, **fields}
    return page.post(f"/approvals/{approval.pk}/decide", sent, headers=HTMX).content.decode()


def hidden(form: str, name: str) -> str:
    return unescape(form.split(f'name="{name}" value="')[1].split('"', maxsplit=1)[0])


@pytest.mark.guarantee("SR-39")
def test_the_card_says_what_is_wrong_and_the_call_waits_until_the_value_is_right(
    page: Client, approval: Approval
) -> None:
    drawn = page.get(f"/approvals/{approval.pk}").content.decode()
    assert "Your last approval came faster than its card can be read, so this one asks for a value." in drawn
    assert f'hx-include="#typed-{approval.pk}"' in drawn
    # The hidden fields of a card are not all that an answer may leave out.
    for typed, said in ({}, "which is missing"), ({"typed": "hallo"}, "not the value on the card"):
        told = answer(page, approval, **typed)
        assert f'id="matter-{approval.pk}" hx-swap-oob="true"' in told
        assert said in told
        assert "data-wrong" in told
        assert status(approval.call) == Status.WAITING
    assert "Approved" in answer(page, approval, typed="hello")
    assert status(approval.call) != Status.WAITING


def test_neither_a_grant_nor_changed_arguments_are_a_way_around_it(page: Client, approval: Approval) -> None:
    form = page.get(f"/approvals/{approval.pk}/grant", {"part": "offer", "calls": "1"}, headers=HTMX).content.decode()
    assert f'hx-include="#typed-{approval.pk}"' in form
    assert "which is missing" in answer(page, approval, grant=hidden(form, "grant"))
    edited = {"step": "review", "json": '{"text": "other", "amount": 1}'}
    review = page.post(f"/approvals/{approval.pk}/edit", edited, headers=HTMX).content.decode()
    assert f'hx-include="#typed-{approval.pk}"' in review
    shown = hidden(review, "shown")
    assert "which is missing" in answer(page, approval, edited=edited["json"], shown=shown)
    assert status(approval.call) == Status.WAITING
    assert "Approved" in answer(page, approval, edited=edited["json"], shown=shown, typed="hello")


def test_calls_answered_together_in_the_inbox_are_asked_about_one_by_one(
    page: Client, approval: Approval, bob: User
) -> None:
    tool = approval.call.tool
    assert tool is not None
    rows = [approval, approval_of(ask(bob, tool, {"text": "other"}))]
    sent = {"verdict": "approve", "items": [f"{row.pk}:{row.digest}" for row in rows]}
    told = page.post("/approvals/together", sent, headers=HTMX).content.decode()
    assert "answer these calls individually" in told
    assert {status(row.call) for row in rows} == {Status.WAITING}
