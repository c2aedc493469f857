"""The pages on which a person answers a server's question, with and without scripts."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from hitlchat.upstreams.models import QuestionState, UpstreamQuestion
from tests.upstreams.asking import executing_elsewhere, question_of

HTMX = {"HX-Request": "true"}


@pytest.fixture
def question(bob: User) -> UpstreamQuestion:
    return question_of(executing_elsewhere(bob), "Approve <b>this</b>\u202e\n[or that](https://evil.example)")


@pytest.fixture
def bobs(bob: User, client: Client) -> Client:
    client.force_login(bob)
    return client


def post(client: Client, question: UpstreamQuestion, what: str = "answer", **sent: object) -> str:
    headers = HTMX if sent.pop("htmx", True) else {}
    answer = client.post(reverse(f"servers:{what}-question", args=[question.pk]), sent, headers=headers)
    return f"{answer.status_code} {answer.content.decode()}"


@pytest.mark.guarantee("SR-36")
def test_the_servers_words_are_text_in_a_box_that_names_it(bobs: Client, question: UpstreamQuestion) -> None:
    shown = bobs.get(reverse("servers:question", args=[question.pk])).content.decode()
    assert "Written by the server counter" in shown
    assert "Approve &lt;b&gt;this&lt;/b&gt;" in shown
    assert 'class="esc">U+202E' in shown
    assert 'href="https://evil.example' not in shown
    assert "data-ask" not in shown


def test_an_answer_that_fits_is_sent_and_its_values_are_not_shown(bobs: Client, question: UpstreamQuestion) -> None:
    told = post(bobs, question, f0="red", f1="2")
    assert told.startswith("200")
    assert "Answered by bob: colour, litres. The values are not kept." in told
    question.refresh_from_db()
    assert (question.state, question.means) == (QuestionState.ANSWERED, "session")


def test_every_fault_is_told_at_its_field_and_what_was_typed_is_kept(bobs: Client, question: UpstreamQuestion) -> None:
    told = post(bobs, question, f1="20", colour="red")
    assert "Not sent: 2 answers are not valid." in told
    assert "Choose one from the list." in told
    assert "Give a number of at most 9." in told
    assert 'value="20"' in told
    assert "hx-preserve" not in told
    question.refresh_from_db()
    assert question.state == QuestionState.OPEN


def test_without_scripts_it_is_a_page_with_the_status_of_what_happened(
    bobs: Client, question: UpstreamQuestion
) -> None:
    assert post(bobs, question, htmx=False, f0="green").startswith("422")
    assert post(bobs, question, "decline", htmx=False).startswith("302")
    assert post(bobs, question, htmx=False, f0="red").startswith("409")
    question.refresh_from_db()
    assert question.state == QuestionState.DECLINED


def test_one_that_is_too_late_is_said_to_be(bobs: Client, question: UpstreamQuestion) -> None:
    UpstreamQuestion.objects.filter(pk=question.pk).update(deadline=timezone.now() - timedelta(seconds=1))
    told = post(bobs, question, f0="red")
    assert "This question is no longer open. Your answer was not sent." in told
    assert "Send answer" not in told


def test_an_address_counts_as_agreed_to_only_when_the_person_says_so(bobs: Client, bob: User) -> None:
    question = question_of(executing_elsewhere(bob), url="https://shop.example/go", schema={})
    assert "Tick this once you have opened the address" in post(bobs, question)
    assert "bob agreed to go to shop.example." in post(bobs, question, agreed="yes")


@pytest.mark.guarantee("gate:only-people")
def test_it_is_nobody_elses_not_even_an_administrators(
    alice: User, charlie: User, client: Client, question: UpstreamQuestion
) -> None:
    assert client.get(reverse("servers:questions")).status_code == 302
    for person in (alice, charlie):
        client.force_login(person)
        assert client.get(reverse("servers:question", args=[question.pk])).status_code == 404
        assert post(client, question, f0="red").startswith("404")
        assert post(client, question, "decline").startswith("404")
        assert b"asks you" not in client.get(reverse("servers:questions")).content
    question.refresh_from_db()
    assert question.state == QuestionState.OPEN


def test_looking_changes_nothing(bobs: Client, question: UpstreamQuestion) -> None:
    for what in ("answer", "decline"):
        assert bobs.get(reverse(f"servers:{what}-question", args=[question.pk])).status_code == 405
    assert b"asks you" in bobs.get(reverse("servers:questions")).content
    question.refresh_from_db()
    assert question.state == QuestionState.OPEN


def test_every_page_leads_to_what_waits(bobs: Client, question: UpstreamQuestion) -> None:
    assert b"Server questions" in bobs.get("/").content
    post(bobs, question, "decline")
    assert b"Server questions" not in bobs.get("/").content


def test_without_fields_it_only_asks_whether_to_go_on(bobs: Client, bob: User) -> None:
    question = question_of(executing_elsewhere(bob), schema={"type": "object", "properties": {}})
    shown = bobs.get(reverse("servers:question", args=[question.pk])).content.decode()
    assert "only asks whether to continue" in shown
    assert "Answered by bob. The values are not kept." in post(bobs, question)
