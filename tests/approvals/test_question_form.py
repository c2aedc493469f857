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
    return question_to(bob)


def question_to(user: User) -> Approval:
    request = CallRequest(asking.NAME, {"question": "Paint\u202e it?", "fields": FIELDS}, caller(user))
    return async_to_sync(submit)(request).approval


def sent(approval: Approval, **values: str) -> dict[str, str]:
    return {"digest": approval.digest, "verdict": "approve"} | values


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
    assert ("2 fields are not valid" in form, "Choose one from the list." in form, "Give a number." in form) == (
        True,
    ) * 3
    assert 'value="&lt;many&gt;"' in form
    page = client.post(address, sent(asked, f0="red"))
    assert (page.status_code, b"one field is not valid" in page.content) == (422, True)
    assert not Decision.objects.exists()


def test_an_answer_that_fits_is_taken_once(client: Client, bob: User, settings: Settings) -> None:
    client.force_login(bob)
    settings.HITL_ASK_USER = True
    asking.offered()
    for over, status in (("ws", 204), ("http", 200)):
        approval = question_to(bob)
        values = sent(approval, f0="blue", f1="2.5", over=over)
        address = reverse("reply", args=[approval.pk])
        assert client.post(address, values, headers=OVER_HTMX).status_code == status
        approval.call.refresh_from_db()
        assert approval.call.arguments["answer"] == {"colour": "blue", "litres": 2.5}
        again = client.post(address, values | {"f0": "red"}, headers=OVER_HTMX).content.decode()
        assert "Your answer was not recorded." in again
        assert approval.decisions.get().edited_arguments == approval.call.arguments


def test_other_ways_to_answer_it_are_none(
    client: Client, alice: User, bob: User, charlie: User, asked: Approval
) -> None:
    """Of others, to another question than was shown, by a plain yes of a page or at the console."""
    address, values = reverse("reply", args=[asked.pk]), sent(asked, f0="blue", f1="2")
    for other in (alice, charlie):
        client.force_login(other)
        assert client.post(address, values).status_code == 404
    client.force_login(bob)
    assert client.post(address, values | {"digest": "0" * 64}).status_code == 409
    page = client.post(reverse("decide", args=[asked.pk]), sent(asked))
    assert (page.status_code, b"a yes needs an" in page.content) == (409, True)
    with pytest.raises(CommandError, match="a yes needs an “answer”"):
        call_command("approvals", "approve", str(asked.pk), "--as", "bob", "--digest", asked.digest, stdout=StringIO())
    # A call that asks nothing has no form to answer.
    type(asked.call).objects.filter(pk=asked.call_id).update(source="studio")
    assert client.post(address, values).status_code == 404
    assert not Decision.objects.exists()


def test_the_studio_and_the_policies_offer_nothing_to_edit_or_try_of_it(
    client: Client, alice: User, asked: Approval
) -> None:
    client.force_login(alice)
    assert Tool.objects.filter(name=asking.NAME).exists()
    for page in (reverse("studio"), reverse("policies")):
        assert asking.NAME not in client.get(page).content.decode(), page
    assert client.get(f"/studio/tools/{asking.NAME}").status_code == 404
