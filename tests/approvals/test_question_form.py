"""The form of a question to the person, as a page sends it, and the other ways to answer, which are none."""

from io import StringIO

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from hitlchat.agent import asking
from hitlchat.gate.models import Approval, Decision, Tool
from hitlchat.gate.submit import CallRequest, submit
from tests.conftest import caller

pytestmark = pytest.mark.django_db(transaction=True)

FIELDS = [
    {"name": "colour", "label": "Which <b>colour</b>", "kind": "choice", "choices": ["red", "blue"]},
    {"name": "litres", "label": "How much", "kind": "number"},
]
OVER_HTMX = {"HX-Request": "true"}


@pytest.fixture
def asked(bob: User, settings: Settings) -> Approval:
    settings.HITL_ASK_USER = True
    asking.offered()
    request = CallRequest(asking.NAME, {"question": "Paint\u202e it?", "fields": FIELDS}, caller(bob))
    return async_to_sync(submit)(request).approval


def sent(approval: Approval, **values: str) -> dict[str, str]:
    return {"digest": approval.digest, "verdict": "approve"} | values


def nothing_decided(approval: Approval) -> bool:
    return not Decision.objects.filter(approval=approval).exists()


def test_the_card_shows_the_models_words_as_text_and_nothing_to_approve(
    client: Client, bob: User, asked: Approval
) -> None:
    client.force_login(bob)
    page = client.get(reverse("approval", args=[asked.pk])).content.decode()
    assert "The agent asks" in page
    assert 'Paint<span class="esc">U+202E</span> it?' in page
    assert "Which &lt;b&gt;colour&lt;/b&gt;" in page
    assert [words in page for words in ("Change the arguments", 'class="risk', "Grant", "Approve")] == [False] * 4


def test_what_does_not_fit_comes_back_with_its_errors_and_what_was_typed(
    client: Client, bob: User, asked: Approval
) -> None:
    client.force_login(bob)
    address = reverse("reply", args=[asked.pk])
    form = client.post(address, sent(asked, f0="green", f1="<many>"), headers=OVER_HTMX).content.decode()
    assert ("2 fields do not fit" in form, "Choose one of them." in form, "Give a number." in form) == (True,) * 3
    assert 'value="&lt;many&gt;"' in form
    page = client.post(address, sent(asked, f0="red"))
    assert (page.status_code, b"one field does not fit" in page.content) == (422, True)
    assert nothing_decided(asked)


@pytest.mark.parametrize("over, status", [("ws", 204), ("http", 200)])
def test_an_answer_that_fits_is_taken_once(client: Client, bob: User, asked: Approval, over: str, status: int) -> None:
    client.force_login(bob)
    values = sent(asked, f0="blue", f1="2.5", over=over)
    address = reverse("reply", args=[asked.pk])
    assert client.post(address, values, headers=OVER_HTMX).status_code == status
    asked.call.refresh_from_db()
    assert asked.call.arguments["answer"] == {"colour": "blue", "litres": 2.5}
    again = client.post(address, values | {"f0": "red"}, headers=OVER_HTMX).content.decode()
    assert "Your answer did not count." in again
    (decision,) = Decision.objects.all()
    assert decision.edited_arguments == asked.call.arguments


def test_an_answer_to_another_question_than_was_shown_is_none(client: Client, bob: User, asked: Approval) -> None:
    client.force_login(bob)
    values = sent(asked, f0="blue", f1="2") | {"digest": "0" * 64}
    assert client.post(reverse("reply", args=[asked.pk]), values).status_code == 409
    assert nothing_decided(asked)


def test_nobody_else_sees_or_answers_it(client: Client, alice: User, charlie: User, asked: Approval) -> None:
    for other in (alice, charlie):
        client.force_login(other)
        assert client.post(reverse("reply", args=[asked.pk]), sent(asked, f0="red", f1="1")).status_code == 404
    assert nothing_decided(asked)


def test_a_plain_yes_of_a_page_is_none(client: Client, bob: User, asked: Approval) -> None:
    client.force_login(bob)
    page = client.post(reverse("decide", args=[asked.pk]), sent(asked))
    assert (page.status_code, b"a yes needs an" in page.content) == (409, True)
    assert nothing_decided(asked)


def test_a_yes_at_the_console_is_none(bob: User, asked: Approval) -> None:
    with pytest.raises(CommandError, match="a yes needs an “answer”"):
        call_command("approvals", "approve", str(asked.pk), "--as", "bob", "--digest", asked.digest, stdout=StringIO())
    assert nothing_decided(asked)


def test_a_call_that_asks_nothing_has_no_form_to_answer(client: Client, bob: User, asked: Approval) -> None:
    client.force_login(bob)
    type(asked.call).objects.filter(pk=asked.call_id).update(source="studio")
    assert client.post(reverse("reply", args=[asked.pk]), sent(asked, f0="red", f1="1")).status_code == 404


def test_the_studio_and_the_policies_offer_nothing_to_edit_or_try_of_it(
    client: Client, alice: User, asked: Approval
) -> None:
    client.force_login(alice)
    assert Tool.objects.filter(name=asking.NAME).exists()
    for page in (reverse("studio"), reverse("policies")):
        assert asking.NAME not in client.get(page).content.decode(), page
    assert client.get(f"/studio/tools/{asking.NAME}").status_code == 404
