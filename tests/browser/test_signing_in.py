"""Signing in at an upstream server, in a browser: there, back, and out again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.browser.test_servers import finds
from tests.processes import Server
from tests.upstreams.oauth.guarded import Guarded, guarded_server

pytestmark = pytest.mark.browser


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with guarded_server() as running:
        yield running


@pytest.mark.slow("another server to sign in at")
@pytest.mark.timeout(180)
def test_an_administrator_signs_in_at_a_server_and_out_again(
    author: Page, server: Server, guarded: Guarded, visit: Visit, new_name: str
) -> None:
    # The one stranger whom the person is sent to, and who sends them back.
    visit.watch(author).expect(f"asked a stranger: {guarded.url}/authorize")
    author.goto(f"{server.url}/servers/new")
    author.get_by_label("Name", exact=True).first.fill(new_name)
    author.get_by_label("Address", exact=True).fill(guarded.mcp)
    author.get_by_role("button", name="Save and connect").click()
    finds(author, "#standing", "Waits for someone to sign in")
    author.reload()
    author.get_by_role("button", name=f"Sign in to {new_name}", exact=True).click()

    expect(author.get_by_role("heading", level=2)).to_contain_text(f"127.0.0.1:{guarded.port}")
    looking.check(author)
    author.get_by_role("link", name="Continue to").click()

    expect(author.get_by_text(f"You are signed in to {new_name}.")).to_be_visible()
    finds(author, "#standing", "Connected")
    expect(author.locator("#sign-in")).to_contain_text("by alice")
    looking.check(author)

    author.get_by_role("button", name=f"Sign out of {new_name}", exact=True).click()
    finds(author, "#standing", "Waits for someone to sign in")
    assert guarded.asked("/revoke")
