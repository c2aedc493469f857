"""Earned rules: what was always approved is proposed, kept, published, runs unasked, and ends at the first no."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.chatting import Chat
from tests.browser.conftest import SharedModel, Visit
from tests.browser.looking import THOROUGHLY, check
from tests.processes import STEADY, Servers
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

CODE = 'def run(order: str, amount: int) -> str:\n    """Give money back."""\n    return f"{amount} given back"\n'
HISTORY = """
from django.contrib.auth.models import User
from hitlchat.gate.models import Tool
from tests.gate.earning import history
history(User.objects.get(username="bob"), Tool.objects.get(name="refund"))
"""


@pytest.mark.slow("a long story of earned rules")
@pytest.mark.timeout(240)
def test_a_rule_is_proposed_published_used_and_ended_by_the_first_no(own: Servers, visit: Visit) -> None:
    model = SharedModel()
    server = own.start(**model.environment | STEADY)
    own.home.add_tool("refund", CODE, hitl_mode="REQUIRED", prompt_template="Give back {args.amount}")
    own.home.manage("shell", "-v", "0", "-c", HISTORY)
    bob, page = server.sign_in("bob"), visit(server, server.sign_in("alice"))
    # What it loosens is to be confirmed first.
    visit.watch(page).expect("status of 422")

    page.goto(f"{server.url}/policies/lab")
    page.get_by_role("link", name="Earned rules").press("Enter")
    proposal = page.get_by_role("article", name="refund")
    expect(proposal).to_contain_text("30 of 30 calls like this were approved unchanged")
    proposal.get_by_text("3 other calls of the tool").press("Enter")
    expect(proposal.get_by_role("list").get_by_role("link")).to_have_count(3)
    check(page, THOROUGHLY)
    proposal.get_by_role("button", name="Keep as a draft").press("Enter")
    expect(page.get_by_role("heading", name="What the record says of refund")).to_be_visible()
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.get_by_text("No declined call would have run.")).to_be_visible()
    check(page, THOROUGHLY)
    page.get_by_label("Why").fill("They were all approved.")
    page.get_by_role("button", name="Publish draft").press("Enter")
    page.get_by_label("I understand that fewer calls will be reviewed").press("Space")
    page.get_by_role("button", name="Publish draft").press("Enter")
    expect(page.get_by_text("Published by alice")).to_be_visible()

    chat = Chat(visit(server, bob), server, bob.begin("")).open()
    model.enqueue(calls(("refund", {"order": "B-7", "amount": 12})), text("Twelve."))
    chat.say()
    chat.said("Twelve.")
    expect(chat.call("succeeded")).to_contain_text("refund")
    page.goto(f"{server.url}/policies/earned")
    row = page.get_by_role("row").filter(has_text="Decays if unused until")
    expect(row).to_contain_text("used once")
    check(page, THOROUGHLY)
    # Everything is asked about there: a call like it comes to a person, who says no.
    strict = bob.begin("")
    assert bob.patch(f"/api/conversations/{strict}", {"asks": "every"}).is_success
    chat = Chat(visit(server, bob), server, strict).open()
    model.enqueue(calls(("refund", {"order": "B-8", "amount": 13})), text("Not that one."))
    chat.say()
    chat.decline(chat.asked())
    chat.said("Not that one.")
    page.reload()
    ended = page.get_by_role("row").filter(has_text=re.compile("Ended by a no"))
    expect(ended).to_contain_text("a person said no to a call like those it covers")
    expect(page.get_by_text("No earned rule is in force")).to_be_visible()
    check(page, THOROUGHLY)
    model.close()
