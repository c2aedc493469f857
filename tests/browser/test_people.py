"""An administrator invites somebody, makes them an author, and shuts them out."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import SharedModel, Visit
from tests.conftest import PASSWORD
from tests.processes import Server
from tests.scripted_model import text

pytestmark = pytest.mark.browser


@pytest.mark.slow("a long story of people")
@pytest.mark.timeout(300)
def test_somebody_is_invited_joins_becomes_an_author_and_is_shut_out(
    author: Page, server: Server, visit: Visit, model: SharedModel, new_name: str
) -> None:
    author.goto(server.url)
    author.get_by_role("link", name="People", exact=True).click()
    looking.check(author)
    author.get_by_role("link", name="Invite").click()
    author.get_by_label("For whom").fill(f"Dora <{new_name}@example.com>")
    looking.check(author)
    author.get_by_role("button", name="Create link").press("Enter")
    link = author.locator("#secret").inner_text()
    looking.check(author)
    author.reload()
    expect(author.get_by_role("row", name=f"Dora <{new_name}@example.com>")).to_be_visible()
    assert link not in author.content()

    dora = visit(server)
    visit.watch(dora).expect("status of (403|422)")
    dora.goto(link)
    expect(dora.get_by_text("alice invites you")).to_be_visible()
    dora.get_by_label("Username").fill("Alice")
    dora.get_by_label("Password", exact=True).fill(PASSWORD)
    dora.get_by_role("button", name="Join").click()
    expect(dora.get_by_text("This name is taken.")).to_be_visible()
    looking.check(dora)
    dora.get_by_label("Username").fill(new_name)
    dora.get_by_label("Password", exact=True).fill(PASSWORD)
    dora.get_by_label("Password", exact=True).press("Enter")
    dora.wait_for_url(f"{server.url}/")
    expect(dora.get_by_role("link", name="People", exact=True)).to_have_count(0)

    author.reload()
    expect(author.get_by_role("row", name=f"Dora <{new_name}")).to_have_count(0)
    author.get_by_role("link", name=new_name, exact=True).click()
    looking.check(author)
    author.get_by_label("Author").check()
    author.get_by_role("button", name="Change role").click()
    looking.check(author)
    author.get_by_role("button", name=f"Make {new_name} author").click()
    expect(author.get_by_text(f"{new_name} is now author.")).to_be_visible()
    dora.goto(f"{server.url}/account")
    expect(dora.get_by_text("writes, tests and publishes tools")).to_be_visible()
    looking.check(dora)
    dora.get_by_role("link", name="Studio").click()
    expect(dora.get_by_role("heading", level=1).first).to_be_visible()

    model.enqueue(text("Hello to you."))
    dora.goto(server.url)
    dora.get_by_label("Message").fill("Hello")
    dora.get_by_label("Message").press("Enter")
    dora.wait_for_url("**/chat/*")
    expect(dora.locator("[data-log]")).to_contain_text("Hello to you.")
    author.get_by_role("link", name="Deactivate").click()
    looking.check(author)
    author.get_by_role("button", name=f"Deactivate {new_name}").click()
    expect(author.get_by_text(f"{new_name} is deactivated and signed out everywhere.")).to_be_visible()
    expect(dora.get_by_role("heading", name="This account was deactivated")).to_be_visible()
    looking.check(dora)
    looking.check(author)
    dora.goto(f"{server.url}/account")
    expect(dora.get_by_role("heading", name="Sign in")).to_be_visible()
    author.get_by_role("link", name="Reactivate").click()
    looking.check(author)
    author.get_by_role("button", name=f"Reactivate {new_name}").click()
    expect(author.get_by_text(f"{new_name} can sign in again.")).to_be_visible()


@pytest.mark.slow("another story of people")
@pytest.mark.timeout(180)
def test_people_are_put_into_a_group(author: Page, server: Server, new_name: str) -> None:
    author.goto(f"{server.url}/people/")
    author.get_by_label("Name of a new group").fill(f"Finance of {new_name}")
    author.get_by_role("button", name="Create group").press("Enter")
    author.get_by_label("Person to add").select_option("bob")
    author.get_by_role("button", name="Add").press("Enter")
    expect(author.get_by_role("button", name="Remove bob")).to_be_visible()
    looking.check(author)
    author.get_by_label("Name of the group").fill(f"Money of {new_name}")
    author.get_by_role("button", name="Rename").press("Enter")
    expect(author.get_by_role("heading", level=1)).to_have_text(f"Money of {new_name}")
    author.goto(f"{server.url}/people/")
    expect(author.get_by_role("row", name="bob")).to_contain_text(f"Money of {new_name}")
    looking.check(author)
    author.get_by_role("link", name=f"Money of {new_name}").last.click()
    author.get_by_role("link", name="Delete group").click()
    looking.check(author)
    author.get_by_role("button", name=f"Delete Money of {new_name}").press("Enter")
    expect(author.get_by_text(f"The group Money of {new_name} is deleted.")).to_be_visible()
