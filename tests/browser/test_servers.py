"""An upstream server as an administrator meets it: added, tested, connected, changed, gone, switched off, removed."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import looking
from tests.browser.conftest import Visit
from tests.processes import Server, Servers
from tests.upstreams.client.upstreams import Program, starting
from tests.waiting import until

pytestmark = pytest.mark.browser

# As long as a page waits between two looks, at most.
LOOKS_MS: Final = 5_000
KEY: Final = "sk-very-secret-0815"
NOBODY: Final = "http://127.0.0.1:9/mcp"
# What the browser says of an answer that names mistakes.
MISTAKES: Final = "status of 422"


@pytest.fixture
def upstream() -> Iterator[Program]:
    """A server of somebody else's, over HTTP."""
    for start in starting():
        yield start()


@pytest.fixture
def alice(author: Page, visit: Visit) -> Page:
    visit.watch(author).expect(MISTAKES)
    return author


def fill_in(page: Page, url: str, name: str) -> None:
    page.get_by_label("Name", exact=True).first.fill(name)
    page.get_by_label("Address", exact=True).fill(url)


def finds(page: Page, place: str, words: str) -> None:
    """Have the page look for what it looks for by itself every few seconds, until it shows these words."""

    def shows() -> bool:
        page.clock.run_for(LOOKS_MS)
        return words in page.locator(place).inner_text()

    until(shows, f"{place} shows {words!r}")


@pytest.mark.timeout(180)
def test_a_server_is_added_tested_connected_changed_disabled_and_removed(
    alice: Page, server: Server, upstream: Program, new_name: str
) -> None:
    alice.goto(f"{server.url}/servers/")
    looking.check(alice)
    alice.get_by_role("main").get_by_role("link", name="Add server").first.click()

    fill_in(alice, NOBODY, new_name)
    alice.get_by_role("button", name="Test connection").click()
    expect(alice.locator("#trial")).to_contain_text("The connection failed.")
    fill_in(alice, upstream.url, new_name)
    expect(alice.locator("#risk")).to_contain_text("It runs on this machine.")
    alice.get_by_role("button", name="Test connection").click()
    expect(alice.locator("#trial")).to_contain_text("The connection works.")
    expect(alice.locator("#trial")).to_contain_text("echo")
    looking.check(alice)

    alice.get_by_role("button", name="Save and connect").click()
    expect(alice.get_by_role("heading", level=1)).to_have_text(new_name)
    finds(alice, "#standing", "Connected")
    expect(alice.locator("#tools")).to_contain_text(f"{new_name}_echo")
    looking.check(alice)

    alice.get_by_label("Address", exact=True).fill(NOBODY)
    alice.get_by_role("button", name="Save", exact=True).click()
    finds(alice, "#standing", "Not reachable")
    alice.get_by_role("link", name="All servers").click()
    expect(alice.get_by_role("row", name=new_name)).to_contain_text("Not reachable")
    looking.check(alice)

    alice.get_by_role("link", name=new_name).click()
    alice.get_by_role("button", name="Disable").click()
    finds(alice, "#standing", "Disabled")
    alice.get_by_role("link", name="Delete").click()
    looking.check(alice)
    alice.get_by_role("button", name=f"Delete {new_name}").click()
    expect(alice.get_by_text(f"{new_name} is deleted, with its tools.")).to_be_visible()
    expect(alice.get_by_role("link", name=new_name)).to_have_count(0)


@pytest.mark.slow("kills a server")
@pytest.mark.timeout(180)
def test_the_page_follows_the_server_without_taking_the_focus_or_what_was_typed(
    alice: Page, server: Server, upstream: Program, new_name: str
) -> None:
    alice.goto(f"{server.url}/servers/new")
    fill_in(alice, upstream.url, new_name)
    alice.get_by_role("button", name="Save and connect").click()
    expect(alice.locator("#standing")).to_contain_text("Connected")
    documentation = alice.get_by_role("textbox", name="Documentation", exact=True)
    documentation.fill("https://docs.exa")
    upstream.kill()
    alice.get_by_role("button", name="Test connection").press("Enter")
    expect(alice.locator("#trial-saved")).to_contain_text("The connection failed.")
    expect(alice.get_by_role("button", name="Test connection")).to_be_focused()
    documentation.focus()
    alice.keyboard.press("End")
    expect(alice.locator("#standing")).not_to_contain_text("Connected", timeout=45_000)
    alice.keyboard.type("mple")
    expect(documentation).to_have_value("https://docs.example")
    upstream.start()
    alice.get_by_role("link", name="All servers").click()
    alice.locator(f"#why-{new_name}").click()
    link = alice.get_by_role("link", name=new_name)
    link.focus()
    expect(alice.get_by_role("row", name=new_name)).to_contain_text("Connected", timeout=45_000)
    expect(link).to_be_focused()
    expect(alice.locator(f"#risk-{new_name}")).to_contain_text("It runs on this machine.", use_inner_text=True)


@pytest.mark.slow("another story of servers")
def test_a_secret_is_filled_in_by_a_button_hidden_while_typed_and_never_sent_back(
    alice: Page, server: Server, upstream: Program, new_name: str
) -> None:
    alice.goto(f"{server.url}/servers/new")
    fill_in(alice, upstream.url, name="has spaces")
    alice.get_by_role("button", name="Bearer token").click()
    expect(alice.get_by_label("Value").first).to_be_focused()
    alice.keyboard.type(KEY)
    alice.get_by_label("Address", exact=True).focus()
    expect(alice.get_by_label("Value").first).to_have_attribute("type", "password")
    alice.get_by_role("button", name="Save and connect").click()
    expect(alice.locator("#id_name_error")).to_be_visible()
    assert KEY not in alice.content()
    looking.check(alice)
    alice.get_by_label("Name", exact=True).first.fill(new_name)
    alice.get_by_role("button", name="Save and connect").click()
    expect(alice.locator("#standing")).to_contain_text("Connected")
    expect(alice.get_by_placeholder("Stored; type a new one to replace it")).to_be_visible()
    assert KEY not in alice.content()


@pytest.mark.slow("a server of its own")
def test_a_program_is_started_after_its_command_line_was_confirmed(servers: Servers, visit: Visit) -> None:
    server = servers.start(MCP_ALLOW_STDIO="1")
    page = visit(server, server.sign_in("alice"))
    visit.watch(page).expect(MISTAKES)
    page.goto(f"{server.url}/servers/new")
    page.get_by_label("Name", exact=True).first.fill("local")
    page.get_by_text("Program (stdio)").click()
    page.get_by_label("Program", exact=True).fill("no-such-program")
    page.get_by_label("Arguments").fill("--root\n/a b")
    page.get_by_role("button", name="Save and connect").click()
    expect(page.locator(".problem", has_text="No such program was found")).to_be_visible()
    page.get_by_label("Program", exact=True).fill("false")
    page.get_by_role("button", name="Save and connect").click()
    expect(page.get_by_role("alert", name="Start this program on this machine?")).to_be_visible()
    expect(page.locator(".confirm pre")).to_have_text("false --root '/a b'")
    looking.check(page)
    page.get_by_role("button", name="Yes, start it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("local")
    expect(page.locator("#standing")).to_contain_text("Not reachable")
