"""An administrator invites somebody, makes them an author, and shuts them out."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.conftest import PASSWORD
from tests.processes import STEADY, Server, Servers

pytestmark = pytest.mark.browser


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.start(**STEADY)


@pytest.fixture
def alice(server: Server, visit: Visit) -> Page:
    return visit(server, server.sign_in("alice"))


@pytest.mark.timeout(300)
def test_somebody_is_invited_joins_becomes_an_author_and_is_shut_out(alice: Page, server: Server, visit: Visit) -> None:
    alice.goto(server.url)
    alice.get_by_role("link", name="People", exact=True).click()
    looking.check(alice)
    alice.get_by_role("link", name="Invite").click()
    alice.get_by_label("For whom").fill("Dora <dora@example.com>")
    looking.check(alice)
    alice.get_by_role("button", name="Create link").press("Enter")
    link = alice.locator("#secret").inner_text()
    looking.check(alice)
    alice.reload()
    expect(alice.get_by_role("row", name="Dora <dora@example.com>")).to_be_visible()
    assert link not in alice.content()

    dora = visit(server)
    visit.watch(dora).expect("status of (403|422)")
    dora.goto(link)
    expect(dora.get_by_text("alice invites you")).to_be_visible()
    dora.get_by_label("Username").fill("Alice")
    dora.get_by_label("Password", exact=True).fill(PASSWORD)
    dora.get_by_role("button", name="Join").click()
    expect(dora.get_by_text("This name is taken.")).to_be_visible()
    looking.check(dora)
    dora.get_by_label("Username").fill("dora")
    dora.get_by_label("Password", exact=True).fill(PASSWORD)
    dora.get_by_label("Password", exact=True).press("Enter")
    dora.wait_for_url(f"{server.url}/")
    expect(dora.get_by_role("link", name="People", exact=True)).to_have_count(0)

    alice.reload()
    expect(alice.get_by_role("row", name="Dora <")).to_have_count(0)
    alice.get_by_role("link", name="dora", exact=True).click()
    looking.check(alice)
    alice.get_by_label("Author").check()
    alice.get_by_role("button", name="Change role").click()
    looking.check(alice)
    alice.get_by_role("button", name="Make dora author").click()
    expect(alice.get_by_text("dora is now author.")).to_be_visible()
    dora.goto(f"{server.url}/account")
    expect(dora.get_by_text("writes, tests and publishes tools")).to_be_visible()
    looking.check(dora)
    dora.get_by_role("link", name="Studio").click()
    expect(dora.get_by_role("heading", level=1).first).to_be_visible()

    dora.goto(server.url)
    dora.get_by_label("Message").fill("Hello")
    dora.get_by_label("Message").press("Enter")
    dora.wait_for_url("**/chat/*")
    expect(dora.locator("[data-log]")).to_contain_text("Hello")
    alice.get_by_role("link", name="Deactivate").click()
    looking.check(alice)
    alice.get_by_role("button", name="Deactivate dora").click()
    expect(alice.get_by_text("dora is deactivated and signed out everywhere.")).to_be_visible()
    expect(dora.get_by_role("heading", name="This account was deactivated")).to_be_visible()
    looking.check(dora)
    looking.check(alice)
    dora.goto(f"{server.url}/account")
    expect(dora.get_by_role("heading", name="Sign in")).to_be_visible()
    alice.get_by_role("link", name="Reactivate").click()
    looking.check(alice)
    alice.get_by_role("button", name="Reactivate dora").click()
    expect(alice.get_by_text("dora can sign in again.")).to_be_visible()


@pytest.mark.slow("a server of its own")
@pytest.mark.timeout(180)
def test_people_are_put_into_a_group(alice: Page, server: Server) -> None:
    alice.goto(f"{server.url}/people/")
    alice.get_by_label("Name of a new group").fill("Finance")
    alice.get_by_role("button", name="Create group").press("Enter")
    alice.get_by_label("Person to add").select_option("bob")
    alice.get_by_role("button", name="Add").press("Enter")
    expect(alice.get_by_role("button", name="Remove bob")).to_be_visible()
    looking.check(alice)
    alice.get_by_label("Name of the group").fill("Money")
    alice.get_by_role("button", name="Rename").press("Enter")
    expect(alice.get_by_role("heading", level=1)).to_have_text("Money")
    alice.goto(f"{server.url}/people/")
    expect(alice.get_by_role("row", name="bob")).to_contain_text("Money")
    looking.check(alice)
    alice.get_by_role("link", name="Money").last.click()
    alice.get_by_role("link", name="Delete group").click()
    looking.check(alice)
    alice.get_by_role("button", name="Delete Money").press("Enter")
    expect(alice.get_by_text("The group Money is deleted.")).to_be_visible()
