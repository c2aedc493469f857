"""Someone meets the gate as the user of an MCP client: of both revisions, by keyboard, and of one that cannot ask."""

from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import looking
from tests.browser.chatting import press, settle, tab_to
from tests.browser.conftest import NARROW, House, Visit
from tests.browser.tools import ECHO

# The pages do many things one after the other, each of which takes a second until it shows.
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow("another story of the Inspector"),
    pytest.mark.timeout(240),
    pytest.mark.guarantee("gate:no-yes-no-run"),
]

OLDER: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
each_era = pytest.mark.parametrize("era", [MODERN, OLDER])


class Bench:
    """A session's page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.tools = page.locator("#inspector-tools")
        self.asked = page.get_by_role("article", name="The client asks its user")
        self.calls = page.locator("#inspector-calls article")
        self.log = page.locator("#inspector-log")

    def tool(self, name: str) -> Locator:
        return self.tools.get_by_role("link").filter(has=self.page.locator("code").get_by_text(name, exact=True))

    def run(self, name: str) -> None:
        self.tool(name).click()
        expect(self.page.locator("#tool-head")).to_contain_text(name)
        self.page.get_by_role("button", name="Call", exact=True).click()

    def end(self) -> None:
        self.page.get_by_role("button", name="End session").click()
        expect(self.page.get_by_role("heading", name="New session")).to_be_visible()


@pytest.fixture
def bob(visit: Visit, house: House) -> Page:
    page = visit(house.server, house.bob)
    page.goto(f"{house.server.url}/mcp-access/connect")
    page.get_by_role("link", name="Inspector", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="New session")).to_be_visible()
    return page


def records(house: House, count: int) -> list[dict[str, Any]]:
    """The last calls of bob's, the latest first."""
    return list(house.bob.get("/api/calls", limit=str(count)).json())


def connected(bob: Page, era: str, *, without: str) -> Bench:
    """A session of a client that cannot ask; `without`: what its token says for that."""
    bob.get_by_text(era, exact=True).click()
    bob.get_by_text("No", exact=True).click()
    bob.get_by_label("If the client can").select_option(label=without)
    bob.get_by_role("button", name="Connect").click()
    expect(bob.get_by_text("It cannot ask its user.")).to_be_visible()
    return Bench(bob)


@each_era
def test_only_what_its_user_accepts_runs_and_no_mouse_is_needed(era: str, bob: Page, house: House) -> None:
    tab_to(bob, bob.get_by_role("radio", name=MODERN))
    if era == OLDER:
        bob.keyboard.press("ArrowRight")
    expect(bob.get_by_role("radio", name=era)).to_be_checked()
    tab_to(bob, bob.get_by_role("button", name="Connect"))
    bob.keyboard.press("Enter")
    bench = Bench(bob)
    expect(bob.get_by_role("heading", name=f"Client, protocol {era}")).to_be_visible()
    expect(bench.tool("count")).to_be_visible()
    house.sits_at_his_clients()
    tab_to(bob, bench.tool("count"))
    bob.keyboard.press("Enter")
    # Not the rest of the list: what is next is what was chosen.
    expect(bob.locator("#tool-head")).to_be_focused()
    expect(bob.get_by_text("No arguments.")).to_be_visible()

    call = bob.get_by_role("button", name="Call", exact=True)
    for how in ("Decline", "Accept"):
        tab_to(bob, call)
        bob.keyboard.press("Enter")
        expect(bench.asked).to_contain_text("[Risk L2, Low] Count")
        expect(bench.asked).to_contain_text("elicitation, form mode")
        assert [each["status"] for each in records(house, 1)] == ["waiting"]
        # The question stands before what it came from.
        expect(call).to_be_focused()
        settle(bob)
        tab_to(bob, bench.asked.get_by_role("button", name=how), "Shift+Tab")
        bob.keyboard.press("Enter")
        expect(bench.asked).to_have_count(0)
        expect(bob.locator("#inspector-questions")).to_be_focused()

    expect(bench.calls).to_have_count(2)
    expect(bench.calls.first.get_by_text("Result", exact=True)).to_be_visible()
    expect(bench.calls.last).to_contain_text("Error")
    expect(bench.calls.last).to_contain_text("The user declined this call. It was not executed.")
    accepted, declined = records(house, 2)
    assert [accepted["status"], declined["status"], declined["startedAt"]] == ["succeeded", "declined", None]
    expect(bench.calls.first.locator("pre").first).to_have_text(str(accepted["result"]))
    assert [each["means"] for each in (accepted["decisions"][0], declined["decisions"][0])] == ["elicitation"] * 2
    looking.check(bob)

    with bob.expect_popup() as opened:
        bench.calls.first.get_by_role("link", name="Record: who").press("Enter")
    expect(opened.value.get_by_text("hitlchat-inspector").first).to_be_visible()
    opened.value.close()
    bench.end()


@each_era
def test_what_goes_over_the_wire_is_seen_and_what_came_into_the_catalog(era: str, bob: Page, house: House) -> None:
    bob.get_by_text(era, exact=True).click()
    bob.get_by_role("button", name="Connect").click()
    bench = Bench(bob)
    expect(bench.tool("look")).to_be_visible()
    bench.tool("look").click()
    # The form is made from the schema, with its default.
    expect(bob.get_by_role("textbox", name="text")).to_have_value("hello")
    bob.get_by_role("textbox", name="text").fill("some text")
    bob.get_by_role("button", name="Call", exact=True).click()
    expect(bench.calls.first.get_by_text("Result", exact=True)).to_be_visible()
    both = bench.log.locator("li", has_text="tools/call")
    expect(both).to_have_count(2)
    sent, answered = both.all()
    sent.locator("summary").press("Enter")
    expect(sent.locator("pre")).to_contain_text('"method": "tools/call"')
    expect(sent.locator("pre")).to_contain_text('"text": "some text"')
    answered.locator("summary").press("Enter")
    expect(answered.locator("pre")).to_contain_text('"structuredContent"')
    expect(answered.locator("summary b")).to_contain_text("ms")

    newcomer = f"newcomer_{era[:4]}"
    expect(bench.tool(newcomer)).to_have_count(0)
    house.alice.add_tool(newcomer, code=ECHO)
    bob.get_by_role("button", name="List again").click()
    expect(bench.tool(newcomer)).to_be_visible()
    expect(bench.tool("look")).to_have_attribute("aria-current", "true")

    looking.check(bob)
    bench.end()


def test_without_elicitation_the_call_is_refused(bob: Page, house: House) -> None:
    bench = connected(bob, OLDER, without="Refuse it")
    bench.run("count")
    expect(bench.calls.first).to_contain_text("this client cannot ask its user")
    expect(bench.asked).to_have_count(0)
    (refused,) = records(house, 1)
    assert (refused["status"], refused["approvalId"], refused["startedAt"]) == ("refused", None, None)
    bench.end()


def test_without_elicitation_the_call_waits_for_its_user_who_is_signed_in(bob: Page, house: House) -> None:
    bench = connected(bob, MODERN, without="Ask me here, and let it wait")
    bob.set_viewport_size(NARROW)
    bench.run("count")
    with bob.expect_popup() as opened:
        bench.calls.first.get_by_role("link", name="Decide it here, signed in").press("Enter")
    looking.check(bob)
    assert records(house, 1)[0]["startedAt"] is None
    press(opened.value.get_by_role("button", name="Approve"))
    expect(bench.calls.first.get_by_text("Result", exact=True)).to_be_visible()
    (approved,) = records(house, 1)
    assert (approved["status"], [each["means"] for each in approved["decisions"]]) == ("succeeded", ["session"])
    bench.end()


def test_without_elicitation_the_client_gets_a_link_and_comes_back(bob: Page, house: House) -> None:
    before = {each["id"] for each in records(house, 100)}
    bench = connected(bob, OLDER, without="Give it a link")
    bench.run("count")
    expect(bench.calls.first).to_contain_text("The call waits for a person's approval and was not executed.")
    expect(bench.calls.first).to_contain_text(f"{house.server.url}/approvals/")
    with bob.expect_popup() as opened:
        bench.calls.first.get_by_role("link", name="Decide it here, signed in").click()
    press(opened.value.get_by_role("button", name="Approve"))
    expect(opened.value.get_by_text("Succeeded").first).to_be_visible()
    bob.get_by_role("button", name="Call", exact=True).click()
    expect(bench.calls).to_have_count(2)
    expect(bench.calls.first.get_by_text("Result", exact=True)).to_be_visible()
    # Coming back is not another call.
    (one,) = [each for each in records(house, 100) if each["id"] not in before]
    assert one["status"] == "succeeded"
    expect(bench.calls.first.locator("pre").first).to_have_text(str(one["result"]))
    bench.end()
