"""Links in notices lead to a page and do nothing: also where a scanner follows them, signed in or not (SR-22); and no
address takes an answer from a chat (SR-23).
"""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from hitlchat.gate.models import AuditEvent, Decision
from hitlchat.gate.status import Status
from hitlchat.notices.models import Receiver
from tests.gate.asking import approval_of, ask, fresh, recording
from tests.notices.noticing import look, mail_to, webhook
from tests.notices.receivers import Inbound
from tests.tools_studio.mailbox import Mailbox

pytestmark = pytest.mark.django_db(transaction=True)

# One that passes for a browser, and one that says what it is.
SAFE_LINKS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Edg/119.0"
SLACKBOT = "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"


@pytest.mark.guarantee("SR-22")
def test_scanners_that_follow_every_link_decide_nothing(
    alice: User, bob: User, inbound: Inbound, mailbox: Mailbox
) -> None:
    mail_to(bob, "bob@example.com")
    webhook(alice, inbound, person=bob, kind="slack")
    call = ask(bob, recording())
    look()
    told = mailbox.messages[0].get_content() + inbound.got[0].json["text"]
    paths = {found.removeprefix("https://hitl.example.com") for found in re.findall(r"https://[^\s|>]+", told)}
    approval = f"/approvals/{approval_of(call).pk}"
    assert paths == {approval, "/approvals/", "/notices/"}
    before = AuditEvent.objects.count()
    for browser in (Client(headers={"User-Agent": SLACKBOT}), signed_in_as(bob, SAFE_LINKS)):
        for path in sorted(paths):
            browser.get(path)
            browser.head(path)
            browser.get(f"{path}?decision=approve&verdict=approve&answer=yes")
    assert fresh(call).status == Status.WAITING
    assert not Decision.objects.exists()
    assert AuditEvent.objects.count() == before
    assert Receiver.objects.filter(enabled=True).count() == 2


def signed_in_as(person: User, agent: str) -> Client:
    browser = Client(headers={"User-Agent": agent})
    browser.force_login(person)
    return browser


@pytest.mark.guarantee("SR-22")
def test_a_link_asks_to_sign_in_and_then_shows_the_card(bob: User) -> None:
    path = f"/approvals/{approval_of(ask(bob, recording())).pk}"
    assert Client().get(path)["Location"] == f"/sign-in?next={path}"
    assert "Approve" in signed_in_as(bob, "a browser").get(path).content.decode()


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
