"""The page on which people look back at calls that ran without asking."""

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate.models import Hindsight
from tests.insights.rows import ran

pytestmark = pytest.mark.django_db


@pytest.fixture
def client_of_bob(bob: User, settings: LazySettings) -> Client:
    settings.HITL_LOOK_BACK_PERCENT = 100
    client = Client()
    client.force_login(bob)
    return client


def test_the_inbox_leads_to_calls_that_ran_unasked_until_each_has_an_answer(bob: User, client_of_bob: Client) -> None:
    assert "Was that fine?" not in client_of_bob.get("/approvals/").content.decode()
    first = ran(bob, "send", arguments={"to": "carol@example.com"})
    ran(bob, "archive")
    assert "2 calls ran without asking" in client_of_bob.get("/approvals/").content.decode()
    page = client_of_bob.get("/looking-back").content.decode()
    assert page.count("Should have asked") == 2
    assert "carol@example.com" in page
    answered = client_of_bob.post(f"/looking-back/{first.pk}", {"verdict": "should_ask"}, follow=True).content.decode()
    assert "it should have been asked about" in answered
    assert "carol@example.com" not in answered
    assert "1 call ran without asking" in client_of_bob.get("/approvals/").content.decode()
    events = client_of_bob.get(f"/history/{first.pk}").content.decode()
    assert "Looked back: it should have been asked about." in events


def test_an_answer_that_is_none_records_nothing_and_a_second_one_changes_nothing(
    bob: User, client_of_bob: Client
) -> None:
    call = ran(bob, "send")
    for sent in ({}, {"verdict": "maybe"}, {"verdict": ["fine", "should_ask"]}):
        again = client_of_bob.post(f"/looking-back/{call.pk}", sent, follow=True).content.decode()
        assert "Nothing was recorded" in again
    assert not Hindsight.objects.exists()
    client_of_bob.post(f"/looking-back/{call.pk}", {"verdict": "fine"})
    late = client_of_bob.post(f"/looking-back/{call.pk}", {"verdict": "should_ask"}, follow=True).content.decode()
    assert "already looked back" in late
    assert "Nothing to look back at" in late
    assert Hindsight.objects.get().verdict == "fine"
