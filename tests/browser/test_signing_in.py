"""Signing in at an upstream server, in a browser: there, back, and out again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.browser.test_servers import finds
from tests.processes import STEADY, Server, Servers
from tests.upstreams.oauth.guarded import Guarded, guarded_server

pytestmark = pytest.mark.browser


@pytest.fixture
def guarded() -> Iterator[Guarded]:
    with guarded_server() as running:
        yield running


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.start(**STEADY)


@pytest.fixture
def alice(server: Server, guarded: Guarded, visit: Visit) -> Page:
    page = visit(server, server.sign_in("alice"))
    # The one stranger whom the person is sent to, and who sends them back.
    visit.watch(page).expect(f"asked a stranger: {guarded.url}/authorize")
    return page


@pytest.mark.timeout(180)
def test_an_administrator_signs_in_at_a_server_and_out_again(alice: Page, server: Server, guarded: Guarded) -> None:
    alice.goto(f"{server.url}/servers/new")
    alice.get_by_label("Name", exact=True).first.fill("notes")
    alice.get_by_label("Address", exact=True).fill(guarded.mcp)
    alice.get_by_role("button", name="Save and connect").click()
    finds(alice, "#standing", "Waits for someone to sign in")
    alice.reload()
    alice.get_by_role("button", name="Sign in to notes", exact=True).click()

    expect(alice.get_by_role("heading", level=2)).to_contain_text(f"127.0.0.1:{guarded.port}")
    looking.check(alice)
    alice.get_by_role("link", name="Continue to").click()

    expect(alice.get_by_text("You are signed in to notes.")).to_be_visible()
    finds(alice, "#standing", "Connected")
    expect(alice.locator("#sign-in")).to_contain_text("by alice")
    looking.check(alice)

    alice.get_by_role("button", name="Sign out of notes", exact=True).click()
    finds(alice, "#standing", "Waits for someone to sign in")
    assert guarded.asked("/revoke")
