"""The Studio's form in a browser: variables, a lower mode, and the risk of what is ticked."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.browser.test_studio import choose
from tests.processes import Server

pytestmark = pytest.mark.browser


@pytest.fixture
def studio(author: Page, server: Server) -> Page:
    """alice in the Studio; whatever she leaves unsaved is given up at the end."""
    author.on("dialog", lambda dialog: dialog.accept())
    author.goto(f"{server.url}/studio/")
    return author


def save(studio: Page) -> None:
    studio.get_by_role("button", name="Save").click()
    expect(studio.get_by_text("You have unsaved changes.")).to_be_hidden()
    expect(studio.locator("[data-saved]")).to_be_visible()


@pytest.mark.slow("another story of the Studio")
def test_a_secret_is_never_shown_again_and_a_lower_mode_asks_whether_to_reduce_oversight(
    studio: Page, server: Server, visit: Visit
) -> None:
    studio.goto(f"{server.url}/studio/new?template=secret")
    studio.get_by_label("Name", exact=True).fill("ticket")
    studio.get_by_role("button", name="Create draft").click()
    expect(studio.locator("#standing")).to_contain_text("API_KEY has no value yet")
    # The spare rows, there for browsers without scripts, are gone.
    expect(studio.locator("[data-row]")).to_have_count(1)
    expect(studio.locator("[data-row]")).to_contain_text("No value yet: the tool stays a draft.")
    value = studio.get_by_label("Variable value")
    value.fill("open sesame 4711")
    studio.get_by_label("Variable name").focus()
    expect(value).to_have_attribute("type", "password")
    value.fill("${SHOP_KEY}")
    studio.get_by_label("Variable name").focus()
    expect(value).to_have_attribute("type", "text")
    value.fill("open sesame 4711")
    save(studio)
    expect(studio.locator("[data-row]")).to_have_count(1)
    expect(value).to_have_value("")
    expect(value).to_have_attribute("placeholder", "Stored; type a new one to replace it")
    assert "open sesame" not in studio.content()
    looking.check(studio)

    choose(studio, "Ask")
    save(studio)
    question = studio.locator("[data-lower]")
    expect(question).to_be_hidden()
    choose(studio, "Never ask")
    expect(question).to_contain_text("Reduce human oversight?")
    studio.get_by_role("button", name="Save").click()
    expect(studio.locator(".problem", has_text="asked about less often than now")).to_be_visible()
    looking.check(studio)
    studio.get_by_label("I understand that fewer calls will be reviewed").check()
    save(studio)
    expect(studio.get_by_label("Never ask")).to_be_checked()
    visit.watch(studio).expect("status of 422")


@pytest.mark.slow("another story of the form")
def test_variables_come_and_go(studio: Page, server: Server) -> None:
    studio.goto(f"{server.url}/studio/new?template=secret")
    studio.get_by_label("Name", exact=True).fill("parcels")
    studio.get_by_role("button", name="Create draft").click()
    names = studio.get_by_label("Variable name")
    for number, name in enumerate(("CITY", "STREET"), start=1):
        studio.get_by_role("button", name="Add a variable").click()
        expect(names.nth(number)).to_be_focused()
        names.nth(number).fill(name)
        studio.get_by_label("Variable value").nth(number).fill(name.lower())
    save(studio)
    expect(names).to_have_count(3)
    studio.get_by_role("button", name="Remove CITY").click()
    expect(studio.get_by_role("button", name="Add a variable")).to_be_focused()
    save(studio)
    expect(names).to_have_count(2)
    expect(names.last).to_have_value("STREET")


@pytest.mark.slow("another story of the form")
def test_the_risk_follows_what_is_ticked_signal_by_signal(studio: Page, server: Server) -> None:
    studio.goto(f"{server.url}/studio/new")
    risk = studio.locator("#risk")
    expect(risk).to_contain_text("At L0 the default is never to ask.")
    expect(studio.get_by_label("Recipients, one per line")).to_be_hidden()
    studio.get_by_label("E-mail").check()
    studio.get_by_label("Recipients, one per line").fill("ops@example.com")
    expect(risk).to_contain_text("It sends e-mail to ops@example.com.")
    studio.get_by_label("Store").check()
    expect(risk.locator(".signals li")).to_have_count(2)
    expect(risk).to_contain_text("The approver reads: Can send e-mail to ops@example.com.")
    choose(studio, "Named hosts")
    studio.get_by_label("Hosts, one per line").fill("*")
    expect(risk).to_contain_text("Not known until the capabilities below are valid.")
    studio.get_by_label("Hosts, one per line").fill("*.example.org")
    expect(risk).to_contain_text("hosts that are not all named: *.example.org")
    choose(studio, "Limits")
    expect(studio.get_by_label("Redirects to follow")).to_be_visible()
    looking.check(studio)
