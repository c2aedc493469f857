"""The oversight report: it counts what happened, names the batches that hold it, and is for administrators only."""

import html
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from hitlchat.gate import hindsight
from hitlchat.gate.actor import SYSTEM
from hitlchat.gate.models import Hindsight, Seal
from hitlchat.gate.status import Status
from hitlchat.gate.transition import note
from hitlchat.insights.figures import Period
from hitlchat.insights.report import report
from hitlchat.record import sealing
from tests.conftest import signed_in as person
from tests.insights.rows import answered, asked, ran

pytestmark = pytest.mark.django_db

LONG_AGO = timezone.now() - timedelta(days=40)


@pytest.fixture
def month(alice: User, bob: User) -> None:
    """Five questions of bob's and one from before, four answers, a tool of L5 that ran unasked, one of L1 that did."""
    answered(bob, "refund", took=12)
    answered(bob, "refund", took=0.5, hurried=True, opened=False)
    answered(alice, "refund", no=True, took=30, opened=True)
    answered(bob, "refund", took=None, edited_arguments={"amount": 1})
    asked(bob, "refund", Status.EXPIRED)
    answered(bob, "refund", at=LONG_AGO)
    ran(bob, "wipe", risk_level=5, reason="A rule allows it.")
    ran(bob, "look", risk_level=1)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.usefixtures("month")
def test_programs_get_what_was_asked_how_it_was_answered_and_what_ran_unasked(alice: User) -> None:
    answer = signed_in(alice).get("/insights/report?format=json")
    assert "attachment" in answer["Content-Disposition"]
    found = answer.json()
    assert found["questions"] == {"asked": 5, "approved": 3, "declined": 1, "expired": 1, "others": 0}
    answers = {"count": 4, "medianSeconds": 12, "totalSeconds": 42, "means": {"session": 4}}
    looked = {"folded": 2, "opened": 1, "edited": 1, "hurried": 1, "unseen": 1}
    assert found["answers"] == answers | looked
    assert [(each["name"], each["approved"], each["declined"]) for each in found["people"]] == [
        ("bob", 3, 0),
        ("alice", 0, 1),
    ]
    assert {each["name"]: each["ranUnasked"] for each in found["tools"]} == {"refund": 0, "wipe": 1, "look": 1}
    reasons = {each["reason"]: each["count"] for each in found["unasked"]["latestReasons"]}
    assert (found["unasked"]["calls"], reasons) == (2, {"A rule allows it.": 1, "Not asked.": 1})


def test_it_counts_what_people_said_looking_back(alice: User, bob: User) -> None:
    for verdict in ("fine", "should_ask", "fine"):
        hindsight.look_back(ran(bob, "look").pk, person(bob), Hindsight.Verdict(verdict))
    found = report(Period.of("7d"))
    assert found.as_json["tools"][0]["lookedBack"] == {"fine": 2, "shouldAsk": 1}
    assert found.as_json["lookedBack"] == {"fine": 2, "shouldAsk": 1}
    assert (found.figures.looked_back, found.figures.should_ask) == (3, 1)
    assert "Of these looked back at</dt><dd>3" in signed_in(alice).get("/insights/report").content.decode()


@pytest.mark.usefixtures("month")
def test_the_page_says_the_same_and_points_at_a_tool_of_high_risk_that_ran_unasked(alice: User) -> None:
    shown = html.unescape(signed_in(alice).get("/insights/report").content.decode())
    assert "1 tool of L4 or L5 ran without approval in this period." in shown
    assert "A rule allows it." in shown
    assert "<code>session</code>" in shown


def test_it_names_the_batches_that_its_events_are_sealed_in_and_what_is_not_sealed(alice: User) -> None:
    note(None, "test.one", actor=SYSTEM)
    sealing.seal()
    note(None, "test.two", actor=SYSTEM)
    seal = Seal.objects.latest("number")
    found = report(Period.of("7d"))
    assert found.sealed.unsealed == 1
    assert found.as_json["record"]["batches"][-1] == {
        "number": seal.number,
        "sealedAt": seal.sealed_at.isoformat(),
        "hash": seal.hash,
    }
    assert found.as_json["record"]["key"] == seal.key_id
    page = signed_in(alice).get("/insights/report").content.decode()
    assert " ".join(seal.hash[at : at + 4] for at in range(0, 64, 4)) in page


def test_without_calls_the_page_says_what_it_would_count(alice: User) -> None:
    assert "No calls in the last" in signed_in(alice).get("/insights/report?period=7d").content.decode()
