"""A person gives an MCP client a token: from the top bar to the text that is copied, and to its end."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import House, Visit

pytestmark = pytest.mark.browser

# What the browser says of an answer that names mistakes.
MISTAKES: Final = "status of 422"
CLIPBOARD: Final = ("clipboard-read", "clipboard-write")


@pytest.fixture
def bob(visit: Visit, house: House) -> Page:
    page = visit(house.server, house.bob, permissions=[*CLIPBOARD])
    visit.watch(page).expect(MISTAKES)
    return page


def copied(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


@pytest.mark.slow("a story of tokens")
@pytest.mark.timeout(180)
def test_a_token_is_made_copied_once_and_revoked(bob: Page, house: House) -> None:
    bob.goto(house.server.url)
    bob.get_by_role("link", name="your account").click()
    bob.get_by_role("link", name="Your tokens").click()
    expect(bob.get_by_text("No tokens yet")).to_be_visible()
    looking.check(bob)

    bob.get_by_label("Name", exact=True).fill("My laptop")
    bob.get_by_label("Only these").check()
    bob.get_by_label("Expires").select_option("On a date of your choice")
    bob.get_by_role("button", name="Create token").click()
    expect(bob.get_by_text("Enter the last day on which the token is valid.")).to_be_visible()
    expect(bob.get_by_text("Choose at least one tool")).to_be_visible()
    looking.check(bob)
    bob.get_by_label("All tools, now and in the future").check()
    bob.get_by_label("Expires").select_option("In 7 days")
    bob.get_by_label("Give it a link").check()
    bob.get_by_role("button", name="Create token").press("Enter")

    secret = bob.locator("#secret").inner_text()
    assert secret.startswith("hitl_mcp_")
    bob.get_by_role("button", name="Copy the token").click()
    expect(bob.get_by_text("Copied").first).to_be_visible()
    assert copied(bob) == secret
    looking.check(bob)

    bob.reload()
    expect(bob.get_by_role("row", name="My laptop")).to_contain_text("the client gets a link")
    assert bob.get_by_role("row").count() == 2
    assert secret not in bob.content()
    looking.check(bob)
    bob.get_by_role("link", name="Revoke My laptop").click()
    looking.check(bob)
    bob.get_by_role("button", name="Revoke it").click()
    expect(bob.get_by_text("My laptop is revoked.")).to_be_visible()
    expect(bob.get_by_text("No tokens yet")).to_be_visible()


@pytest.mark.slow("another story of tokens")
@pytest.mark.timeout(120)
def test_the_connect_page_fills_in_a_token_and_copies_what_a_client_needs(bob: Page, house: House) -> None:
    bob.goto(f"{house.server.url}/mcp-access/connect")
    expect(bob.locator("#claude-code-1")).to_contain_text("Bearer <token>")
    looking.check(bob)
    bob.get_by_role("button", name="Create a token and fill it in").press("Enter")
    secret = bob.locator("#secret").inner_text()
    bob.locator("#vs-code summary").press("Enter")
    bob.get_by_role("button", name="Copy for VS Code: .vscode/mcp.json").click()
    expect(bob.get_by_text("Copied").first).to_be_visible()
    assert f"{house.server.url}/mcp" in copied(bob)
    looking.check(bob)
    bob.reload()
    expect(bob.locator("#claude-code-1")).to_contain_text("Bearer <token>")
    assert secret not in bob.content()
    bob.get_by_role("link", name="Your tokens").first.click()
    bob.get_by_role("link", name="Revoke Made on the Connect page").click()
    bob.get_by_role("button", name="Revoke it").click()
