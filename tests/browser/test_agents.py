"""Seed 001: a supervisor has two workers do its work, one of them asks first; set up on pages, answered in one chat."""

import re
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.agent.cast import TOP, Cast
from tests.browser.chatting import Chat
from tests.browser.conftest import House, SharedModel, Visit
from tests.browser.looking import check
from tests.scripted_model import calls, text

pytestmark = pytest.mark.browser

REFUND: Final = {"task": "Refund order 1234, 50 EUR."}
NOTIFY: Final = {"task": "Tell the customer of order 1234."}


def new_agent(page: Page, name: str, *tools: str, description: str) -> None:
    """A published agent that is called without asking."""
    page.get_by_role("link", name="New agent").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Purpose", exact=True).fill(description)
    page.get_by_label("Instructions", exact=True).fill(f"You are careful. {description}")
    for tool in tools:
        page.get_by_label(tool, exact=True).check()
    page.get_by_label("When called", exact=True).select_option("DISABLED")
    page.get_by_label("Published: others can call it").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(f"{name} is saved.")).to_be_visible()


def make_agent(house: House, name: str, tool: str, does: str) -> None:
    """The same with one tool, over REST."""
    agent = {"name": name, "description": does, "instructions": f"You are careful. {does}", "tools": [tool]}
    assert house.alice.post("/api/agents", agent | {"hitlMode": "DISABLED", "published": True}).status_code == 201


@pytest.mark.slow("a long story of agents")
@pytest.mark.guarantee("gate:no-yes-no-run")
@pytest.mark.timeout(400)
def test_a_supervisor_and_two_workers_are_set_up_and_the_refund_waits_for_a_yes(
    author: Page, page: Page, chat: Chat, house: House, visit: Visit, model: SharedModel, new_name: str
) -> None:
    server = house.server
    supervisor, refunding, notifying = (f"{role}_{new_name}".replace("-", "_") for role in ("boss", "refund", "notify"))
    visit.watch(author).expect("status of 422")
    for worker, tool, does in ((refunding, "echo", "Refunds orders."), (notifying, "look", "Tells customers.")):
        make_agent(house, worker, tool, does)
    author.goto(f"{server.url}/studio/")
    author.get_by_role("navigation", name="More of the Studio").get_by_role("link", name="Agents").click()
    new_agent(author, supervisor, refunding, notifying, description="Handles complaints.")
    author.get_by_label("Name", exact=True).fill("echo")
    author.get_by_role("button", name="Save").click()
    expect(author.get_by_text("There is already a tool with this name.")).to_be_visible()
    check(author)
    author.goto(f"{server.url}/studio/agents/")
    for agent in (supervisor, refunding, notifying):
        expect(author.locator(".endpoints > li", has_text=agent).first).to_be_visible()
    check(author)

    cast = Cast(model)
    cast.plays(TOP, calls((supervisor, {"task": "Settle the complaint about order 1234."})), text("It is settled."))
    cast.plays(supervisor, calls((refunding, REFUND), (notifying, NOTIFY)), text("Both are done."))
    cast.plays(refunding, calls(("echo", {"text": "refund 1234"})), text("Refunded 50 EUR."))
    cast.plays(notifying, calls(("look", {"text": "dear customer"})), text("The customer knows."))
    chat.say("Settle the complaint about order 1234")
    card = chat.asked()
    expect(card.get_by_role("heading", level=3)).to_have_text("Say refund 1234")
    expect(card.locator(".through")).to_have_text(f"through {supervisor} → {refunding}")
    below = chat.call("executing").locator(".agent .agent")
    expect(below.first.locator("li")).to_contain_text(["Say “refund 1234”"])
    expect(below.last.locator("li")).to_contain_text(["dear customer"])
    check(page)

    page.goto(f"{server.url}/approvals/")
    line = page.locator("[data-line]", has_text=refunding)
    expect(line).to_contain_text(f"through {supervisor} → {refunding}")
    expect(line.get_by_role("link", name="Settle the complaint")).to_have_attribute(
        "href", re.compile(f"/chat/{chat.conversation}$")
    )
    check(page)
    chat.open()
    chat.approve()
    chat.said("It is settled.")
    done = chat.call("succeeded")
    done.locator("summary").first.click()
    expect(done.locator(".agent").first).to_contain_text(refunding)
    expect(done).to_contain_text("Both are done.")
    check(page)
    done.get_by_role("link", name="Show all").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(supervisor)
    page.locator("details.call", has_text=refunding).locator("summary").first.click()
    check(page)
    page.locator("details.call", has_text=refunding).get_by_role("link", name="Show all").click()
    expect(page.get_by_text("Refunded 50 EUR.")).to_be_visible()
    expect(page.get_by_text("Refund order 1234, 50 EUR.")).to_be_visible()
    check(page)


@pytest.mark.slow("another story of agents")
def test_stop_ends_the_agents_and_their_cards_go(chat: Chat, house: House, model: SharedModel, new_name: str) -> None:
    worker = new_name.replace("-", "_")
    make_agent(house, worker, "echo", "Works.")
    cast = Cast(model)
    cast.plays(TOP, calls((worker, {"task": "Say it."})))
    cast.plays(worker, calls(("echo", {"text": "hi"})))
    chat.say()
    chat.asked()
    chat.stop()
    expect(chat.cards).to_have_count(0)
    expect(chat.call("failed")).to_contain_text(worker)
    chat.call("failed").locator("summary").first.click()
    expect(chat.call("failed").locator(".agent")).to_contain_text("Withdrawn")
    expect(chat.call("failed")).to_contain_text("The agent was stopped before it finished.")
    assert house.bob.pending() == []
