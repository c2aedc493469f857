"""Links in notices lead to a page, where a person signs in and answers; no address takes an answer from a chat."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from hitlchat.gate.models import Decision
from hitlchat.gate.status import Status
from tests.gate.asking import approval_of, ask, fresh, recording

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.guarantee("SR-22")
def test_a_link_asks_to_sign_in_and_then_shows_the_card(bob: User) -> None:
    path = f"/approvals/{approval_of(ask(bob, recording())).pk}"
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"
    browser = Client()
    browser.force_login(bob)
    assert "Approve" in browser.get(path).content.decode()


@pytest.mark.guarantee("SR-23")
def test_no_address_takes_an_answer_from_whoever_is_not_signed_in(bob: User) -> None:
    """There is no button in a chat: whatever is posted anywhere, signed like our own notices, nothing is decided."""
    call = ask(bob, recording())
    approval = approval_of(call)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
    body = {"payload": '{"actions":[{"action_id":"approve"}]}', "decision": "approve", "verdict": "approve"}
    posted = 0
    for path in sorted(addresses(str(approval.pk))):
        answer = Client(headers=headers).post(path, body)
        assert answer.status_code < 500, path
        posted += 1
    assert posted > 50
    assert fresh(call).status == Status.WAITING
    assert not Decision.objects.exists()


def addresses(approval_id: str) -> set[str]:
    """Of every page and request, with this id where one belongs."""

    def within(patterns: list[URLPattern | URLResolver], before: str) -> set[str]:
        found: set[str] = set()
        for each in patterns:
            path = before + str(each.pattern).lstrip("^").rstrip("$")
            found |= within(each.url_patterns, path) if isinstance(each, URLResolver) else {path}
        return found

    paths = within(get_resolver().url_patterns, "/")
    return {re.sub(r"<(\w+:)?\w+>", lambda match: approval_id if "uuid" in match[0] else "1", path) for path in paths}
