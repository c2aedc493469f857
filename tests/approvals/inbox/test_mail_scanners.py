"""Programs that open the links of mails and messages before a person does decide nothing, and see nothing."""

from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitlchat.gate.models import AuditEvent, Decision, ToolCall
from hitlchat.gate.status import Status
from tests.approvals.inbox.conftest import Asked

pytestmark = pytest.mark.django_db(transaction=True)

# A browser of the person's own, which looks ahead with their session.
PREFETCH: Final = {"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch", "X-Moz": "prefetch"}
# As they announce themselves.
SCANNERS: Final[dict[str, dict[str, str]]] = {
    "Safe Links": {"User-Agent": "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:90.0) Gecko/20100101 Firefox/90.0"},
    "Proofpoint": {"User-Agent": "Mozilla/5.0 (compatible; Proofpoint URL Defense)", "Accept": "*/*"},
    "Slack": {"User-Agent": "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"},
    "Teams": {
        "User-Agent": "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5 skype-url-preview@microsoft.com"
    },
    "prefetch": PREFETCH,
}


def paths(approval: Any) -> list[str]:
    """Every address that a person meets on the way to an answer, with what an answer would say."""
    one = f"/approvals/{approval.pk}"
    answer = f"?verdict=approve&digest={approval.digest}"
    together = f"/approvals/together?verdict=approve&items={approval.pk}:{approval.digest}"
    inbox = [
        "/approvals/",
        f"/approvals/?call={approval.pk}",
        "/approvals/waiting",
        "/approvals/decided",
        together,
        "/notices/",
    ]
    parts = ("", "/decide", "/outcome", "/who", "/edit", "/extend", "/take-back", "/grant", "/time-left")
    return inbox + [f"{one}{part}{answer}" for part in parts]


@pytest.mark.guarantee("gate:only-people", "SR-22")
def test_links_that_are_followed_by_a_program_decide_nothing_and_lead_to_sign_in(
    client: Client, bob: User, asked: Asked
) -> None:
    approval = asked(bob, "private words")
    before = AuditEvent.objects.count()
    for name, headers in SCANNERS.items():
        for path in paths(approval):
            for answer in (client.get(path, headers=headers), client.head(path, headers=headers)):
                assert answer.status_code in (302, 405), (name, path)
                assert b"private words" not in answer.content
    # With the session of the person too: whatever looks ahead in their own browser.
    client.force_login(bob)
    for path in paths(approval):
        for answer in (client.get(path, headers=PREFETCH), client.head(path, headers=PREFETCH)):
            assert answer.status_code in (200, 204, 404, 405), path
    assert ToolCall.objects.get().status == Status.WAITING
    assert (Decision.objects.count(), AuditEvent.objects.count()) == (0, before)
