"""The page of the rules: read by everyone, and tried by keyboard."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.processes import STEADY, Server, Servers

pytestmark = pytest.mark.browser

RULES = """[
  {"policy": "deny_list", "tools": ["wipe"], "reason": "Nothing is wiped from here."},
  {"policy": "never_ask", "tools": ["brief", "slow"]},
  {"policy": "tool_names", "tools": ["echo"]}
]"""


@pytest.fixture
def ruled(own: Servers) -> Server:
    return own.start(**STEADY, HITL_POLICIES=RULES)


@pytest.mark.slow("a story of the policies")
@pytest.mark.timeout(180)
def test_the_rules_are_read_and_a_call_is_simulated_by_keyboard(ruled: Server, visit: Visit) -> None:
    page: Page = visit(ruled, ruled.sign_in("alice"))
    page.goto(ruled.url)
    page.get_by_role("link", name="Policies").press("Enter")
    expect(page.get_by_role("heading", name="Rules in force")).to_be_visible()
    expect(page.locator(".rules li").first).to_contain_text("Nothing is wiped from here.")
    expect(page.get_by_role("table")).to_contain_text("It is set to never ask.")
    looking.check(page)

    page.get_by_label("Tool", exact=True).select_option("wipe")
    expect(page.get_by_label("Arguments")).to_have_value('{\n  "note": ""\n}')
    page.get_by_role("button", name="Simulate").press("Enter")
    expect(page.get_by_role("region", name="Simulate a call").get_by_role("status")).to_contain_text(
        "Would be refused. Nothing is wiped from here."
    )
    looking.check(page)

    page.get_by_label("Arguments").fill('{"note": 5}')
    page.get_by_role("button", name="Simulate").press("Enter")
    expect(page.get_by_role("region", name="Simulate a call").get_by_role("status")).to_contain_text("Not simulated.")
    expect(page.get_by_label("Arguments")).to_have_attribute("aria-invalid", "true")
    looking.check(page)

    member = visit(ruled, ruled.sign_in("bob"))
    member.goto(f"{ruled.url}/policies")
    expect(member.get_by_role("heading", name="Tools that can run without asking")).to_have_count(0)
    member.get_by_label("Tool", exact=True).select_option("look")
    member.get_by_role("button", name="Simulate").press("Enter")
    expect(member.get_by_role("status")).to_contain_text("Would run without asking.")
    looking.check(member)
