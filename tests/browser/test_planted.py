"""Attention checks: announced, read in the inbox, met there among other calls, and told at once once answered."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import Chat, approve, decline, settle
from tests.browser.conftest import SharedModel, Visit
from tests.browser.looking import THOROUGHLY, check
from tests.processes import STEADY, Servers
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

CODE: Final = 'def run(amount: int) -> str:\n    """Give money back."""\n    return f"{amount} given back"\n'
TEXT: Final = "We want to know whether cards are read."
LONG_AGO: Final = (
    "from datetime import timedelta; from django.db.models import F;"
    "from hitlchat.gate.models import AnnouncementRead, AttentionCheck as Check; ago = timedelta(days=40);"
    "AnnouncementRead.objects.update(at=F('at') - ago); Check.objects.update(at=F('at') - ago, until=F('until') - ago)"
)


def inbox(page: Page, url: str) -> Page:
    page.goto(f"{url}/approvals/")
    settle(page)
    return page


@pytest.mark.slow("a long story of attention checks")
@pytest.mark.timeout(300)
@pytest.mark.guarantee("gate:no-yes-no-run")
def test_checks_are_announced_read_met_in_the_inbox_and_told_at_once(own: Servers, visit: Visit) -> None:
    model = SharedModel()
    server = own.start(**model.environment | STEADY)
    server.home.add_tool("refund", CODE, hitl_mode="REQUIRED", prompt_template="Give back {args.amount}")
    alice = visit(server, server.sign_in("alice"))
    bob = server.sign_in("bob")
    model.enqueue(calls(("refund", {"amount": 40})), text("Done."))
    chat = Chat(visit(server, bob), server, bob.begin("Give back 40 EUR, please.")).open()
    approve(chat.asked(1))
    chat.said("Done.")

    alice.goto(f"{server.url}/attention-checks")
    alice.get_by_label("Announcement").fill(TEXT)
    expect(alice.get_by_label("Days from one check of a person to the next, at least")).to_have_value("14")
    check(alice, THOROUGHLY)
    alice.get_by_role("button", name="Turn on and announce").press("Enter")
    expect(alice.get_by_role("heading", name="Attention checks are on")).to_be_visible()
    check(alice, THOROUGHLY)

    page = inbox(visit(server, bob), server.url)
    announced = page.get_by_role("region", name="Attention checks")
    expect(announced).to_contain_text(TEXT)
    check(page, THOROUGHLY)
    announced.get_by_role("button", name="I have read this").press("Enter")
    expect(announced).to_have_count(0)
    expect(page.locator("[data-line]")).to_have_count(0)

    result = page.locator("[data-card-slot]")
    for answer, told in ((decline, "Seen"), (approve, "Not seen")):
        server.home.manage("shell", "-v", "0", "-c", LONG_AGO)
        card = inbox(page, server.url).locator("[data-ask]")
        expect(card).to_contain_text("Give back 400")
        expect(card).to_contain_text("Give back 40 EUR, please.")
        expect(page.locator("#inbox-count")).to_have_text("1 waiting for you")
        expect(page.locator("[data-line]")).to_have_count(1)
        check(page)
        answer(card)
        expect(result.get_by_role("heading", name="This was an attention check")).to_be_visible()
        expect(result.get_by_text(told, exact=True)).to_be_visible()
        expect(page.locator("[data-line]")).to_have_count(0)
        expect(page.locator("#inbox-count")).to_have_text("Nothing is waiting")
        check(page, THOROUGHLY)
    result.get_by_role("link", name="Your results").click()
    own_results = page.get_by_role("region", name="Your results")
    expect(own_results.get_by_text("Seen", exact=True)).to_have_count(1)
    expect(own_results.get_by_text("Not seen", exact=True)).to_have_count(1)
    check(page, THOROUGHLY)

    alice.reload()
    expect(alice.get_by_role("region", name="Everyone together")).to_contain_text("1 person has read the announcement.")
    expect(alice.get_by_role("region", name="Your results")).not_to_contain_text("Give back")
    (ran,) = bob.get("/api/calls").json()
    assert (ran["status"], ran["arguments"]) == ("succeeded", {"amount": 40})
    model.close()
