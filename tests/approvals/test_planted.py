"""Attention checks on pages: announced in the inbox, then among what waits, and told at once once answered."""

from typing import Final

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from hitlchat.gate import planted
from hitlchat.gate.models import AttentionCheck, ToolCall
from hitlchat.gate.status import Status
from tests.conftest import signed_in
from tests.gate import sources_for_tests
from tests.gate.asking import ask, recording
from tests.planted import AS_ASKED, REQUEST, SCHEMA, TEXT, announced, check_for, paid, paying

pytestmark = pytest.mark.django_db
HTMX: Final = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def recording_source(settings: Settings) -> None:
    settings.TOOL_SOURCES = {**settings.TOOL_SOURCES, **sources_for_tests.SOURCES}


@pytest.fixture
def page(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


def test_an_administrator_announces_and_each_person_reads_it_in_the_inbox_first(
    alice: User, bob: User, page: Client
) -> None:
    paid(bob, paying())
    assert page.post("/attention-checks/announce", {"text": TEXT, "every_days": 1}).status_code == 403
    admin = Client()
    admin.force_login(alice)
    wrong = admin.post("/attention-checks/announce", {"text": TEXT, "every_days": 0})
    assert wrong.status_code == 422
    assert planted.current() is None
    shown = admin.post("/attention-checks/announce", {"text": TEXT, "every_days": 1}, follow=True).content.decode()
    assert "Checks come only to people who have read it." in shown
    assert "0 people have read the announcement." in shown
    inbox = page.get("/approvals/").content.decode()
    assert TEXT in inbox
    assert not AttentionCheck.objects.exists()
    found = planted.current()
    assert found is not None
    assert TEXT not in page.post(f"/attention-checks/{found.pk}/read", follow=True).content.decode()
    assert "Attention checks are off." in admin.post("/attention-checks/end", follow=True).content.decode()
    changes = admin.get("/history/changes?area=settings").content.decode()
    assert "Attention checks were announced" in changes
    assert "Attention checks were turned off" in changes


def test_the_inbox_shows_a_check_as_it_shows_a_call_and_counts_it(alice: User, bob: User, page: Client) -> None:
    paid(bob, paying())
    announced(alice, bob)
    html = page.get("/approvals/").content.decode()
    check = AttentionCheck.objects.get()
    assert html.count("Refund 400") >= 2
    assert "data-ask" in html
    assert REQUEST in html
    assert "1 waiting for you" in html
    assert page.get("/waiting").content == b"1"
    assert "attention check" not in html.lower()
    assert "Refund 400" in page.get("/approvals/waiting").content.decode()
    assert "Refund 400" not in page.get("/approvals/waiting?kind=mcp").content.decode()
    card = page.get(f"/approvals/{check.pk}/outcome", headers=HTMX).content.decode()
    assert f"/approvals/{check.pk}/decide" in card
    assert "cannot be changed here" in page.get(f"/approvals/{check.pk}/edit", headers=HTMX).content.decode()
    assert page.get(f"/approvals/{check.pk}/time-left").status_code == 204
    more = {"deadline": check.until.isoformat()}
    assert page.post(f"/approvals/{check.pk}/extend", more, headers=HTMX).status_code == 204
    assert AttentionCheck.objects.count() == 1


@pytest.mark.parametrize("verdict", ["approve", "decline", "suggest", "answer"])
def test_the_answer_says_at_once_that_it_was_a_check_and_whether_it_was_seen(
    alice: User, bob: User, page: Client, verdict: str
) -> None:
    check = check_for(bob, alice)
    sent = {"verdict": verdict, "digest": planted.as_question(check).digest, "reason": "Less.", "answer": "Done."}
    told = page.post(f"/approvals/{check.pk}/decide", sent, headers=HTMX).content.decode()
    assert "This was an attention check" in told
    assert ("Not seen" in told) == (verdict == "approve")
    assert "40" in told
    late = page.post(f"/approvals/{check.pk}/decide", {"verdict": "decline"}, headers=HTMX).content.decode()
    assert "that answer stays" in late
    assert "Refund 400" not in page.get("/approvals/").content.decode()
    own = page.get("/attention-checks").content.decode()
    assert ("Not seen" in own) == (verdict == "approve")
    assert "Refund 400" in own
    assert set(ToolCall.objects.values_list("status", flat=True)) == {Status.APPROVED}


def test_an_answer_that_is_none_or_somebody_elses_counts_for_nothing(alice: User, bob: User, page: Client) -> None:
    check = check_for(bob, alice)
    for sent in ({"verdict": "maybe"}, {"verdict": ["approve", "decline"]}):
        again = page.post(f"/approvals/{check.pk}/decide", sent, headers=HTMX).content.decode()
        assert "data-ask" in again
        assert "Nothing was decided" in again
    other = Client()
    other.force_login(alice)
    assert other.post(f"/approvals/{check.pk}/decide", {"verdict": "decline"}).status_code == 404
    assert other.get(f"/approvals/{check.pk}/outcome").status_code == 404
    assert planted.open_to(bob.pk) is not None
    planted.end(signed_in(alice))
    gone = page.get(f"/approvals/{check.pk}/outcome", headers=HTMX).content.decode()
    assert "counts for nothing" in gone
    assert "data-ask" not in gone


def test_administrators_see_nobodys_results_on_any_page(alice: User, bob: User, page: Client) -> None:
    check = check_for(bob, alice)
    page.post(f"/approvals/{check.pk}/decide", {"verdict": "approve"}, headers=HTMX)
    admin = Client()
    admin.force_login(alice)
    shown = admin.get("/attention-checks").content.decode()
    assert "Totals appear once at least 5 people" in shown
    for path in ("/attention-checks", "/history/changes", "/history/", "/insights/report", "/record"):
        html = admin.get(path, follow=True).content.decode()
        assert "Refund 400" not in html
        assert "Not seen" not in html
    events = admin.get("/api/audit?name=attention.check_answered").json()
    assert "bob" not in str(events)


def test_a_call_that_waits_is_answered_as_before_beside_a_check(alice: User, bob: User, page: Client) -> None:
    check_for(bob, alice)
    call = ask(bob, recording("other", input_schema=SCHEMA), AS_ASKED)
    html = page.get("/approvals/").content.decode()
    assert "2 waiting for you" in html
    sent = {"verdict": "decline", "digest": call.approval.digest}
    page.post(f"/approvals/{call.approval.pk}/decide", sent, headers=HTMX)
    assert ToolCall.objects.get(pk=call.pk).status == Status.DECLINED
    assert planted.open_to(bob.pk) is not None
